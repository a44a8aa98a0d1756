"""``idata.dp``: what an annotated trace says about its privacy."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

import xarray as xr

from pymc_dp import _validate
from pymc_dp._display import Page, Shown, Table
from pymc_dp.errors import TraceError
from pymc_dp.release.record import uses_of
from pymc_dp.release.verdict import Verdict
from pymc_dp.trace.manifest import MADE_WITH, MANIFEST, PRIVACY, RELEASED, make_manifest, read_claim, unlisted
from pymc_dp.trace.report import Report

if TYPE_CHECKING:
    import pandas as pd


class PrivacyAccessor(Shown):
    """Privacy of a trace made by ``dp.sample`` or ``dp.scrub``; survives ``to_netcdf`` and ``to_zarr``.

    Raises
    ------
    TraceError
        From every attribute, if the tree has no ``/privacy`` group, or if that was edited: if it differs from what the
        manifest says about it, or if the events that were charged cost more than the ε and δ beside them.

    Notes
    -----
    These checks find what was changed by hand or by mistake. They are no signature: whoever can write the file can
    write a record, events and a manifest that agree with each other. Whoever publishes has to be trusted.

    Examples
    --------
    >>> xr.DataTree().dp.epsilon
    Traceback (most recent call last):
    pymc_dp.errors.TraceError: This DataTree has no /privacy group: ...
    """

    def __init__(self, tree: xr.DataTree) -> None:
        if not isinstance(tree, xr.DataTree):
            raise TraceError(
                f"tree must be an xarray.DataTree, got {_validate.shown(tree)}. Pass a trace of dp.sample or dp.scrub."
            )
        self._tree = tree

    @override
    def __repr__(self) -> str:
        try:
            report = self.report()
        except TraceError as error:
            return f"Privacy of a trace: {error}"
        kind = ", ".join(str(report.record[name]) for name in ("guarantee", "arithmetic", "neighbours"))
        return f"{report.headline} ({kind}; .report() says all of it)"

    @property
    @override
    def _page(self) -> Page:
        try:
            report = self.report()
        except TraceError as error:
            return Page(title="Privacy", headline=str(error), good=False, parts=[])
        record = report.record
        rows = [(name, str(record[name])) for name in ("guarantee", "arithmetic", "neighbours")]
        rows.append(("the rest", ".report() has every release and assumption; .publish(path) writes what was paid for"))
        return Page(
            title="Privacy", headline=report.headline, good=report.publishable, parts=[Table(title="", rows=rows)]
        )

    @property
    def _record(self) -> dict[str, Any]:
        return read_claim(self._tree)

    @property
    def epsilon(self) -> float:
        """Privacy loss ε of everything in the trace, for one row, whatever it changes to.

        It is what the events of the run cost at `delta`: at most what was asked for, and what the progress bar and
        ``epsilon_spent`` end with. A ledger states it too, beside what it adds to the total of the data set.

        For a trace under a metric it is ε per unit times the largest distance of two rows; inf where values have no
        bounds, and only `epsilon_per_unit` says something.
        """
        return float(self._record["epsilon"])

    @property
    def metric(self) -> str | None:
        """The distance ρ between rows that the guarantee is per unit of, in words; None where it is per row."""
        metric = self._record.get("metric")
        return None if metric is None else str(metric["metric"])

    @property
    def epsilon_per_unit(self) -> float:
        """Privacy loss ε of everything in the trace per unit of the metric."""
        metric = self._record.get("metric")
        if metric is None:
            raise TraceError("This trace was not made under a metric: its ε is per row, see .epsilon.")
        return float(metric["epsilon_per_unit"])

    @property
    def approximations(self) -> tuple[str, ...]:
        """What of the likelihood of the released statistics is approximate; empty where nothing is."""
        return tuple(text for table in self._record["tables"] for text in table.get("approximations", ()))

    @property
    def verdict(self) -> Verdict:
        """Whether intervals can be relied on: a word, and reasons with what to do about each.

        It is about the posterior, and not about its privacy. Of several releases it is the worst of theirs.
        """
        return Verdict.of(self._record, self._draws)

    @property
    def _draws(self) -> int | None:
        """How many draws of all chains there are."""
        sizes = self._tree["posterior"].sizes if "posterior" in self._tree.children else {}
        return sizes["chain"] * sizes["draw"] if {"chain", "draw"} <= set(sizes) else None

    @property
    def delta(self) -> float:
        """Failure probability δ of the guarantee."""
        return float(self._record["delta"])

    @property
    def guarantee(self) -> str:
        """One of "exact", "stepwise", "asymptotic", "stated" (by those who made the tables), "none"."""
        return str(self._record["guarantee"])

    @property
    def arithmetic(self) -> str:
        """One of "hardened", "float64", "stated"."""
        return str(self._record["arithmetic"])

    @property
    def neighbours(self) -> str:
        """One of "replace", "add_remove", "stated", "several" (where releases differ)."""
        return str(self._record["neighbours"])

    @property
    def history(self) -> pd.DataFrame:
        """One row per mechanism that was paid for: variable, likelihood, noise, sensitivity, its ε alone.

        Where there are several, `epsilon` is that of all together, which is at most the sum, and with a δ mostly less.
        """
        import pandas as pd

        columns = ("variable", "likelihood", "cells", "statistics", "noise_scale", "sensitivity", "epsilon")
        rows = [
            (table["name"], table["likelihood"], len(table["cells"]), tuple(table["columns"]), tuple(table["scales"]),
             "; ".join(table["sensitivities"]), table["epsilon"])
            for table in self._record["tables"]
        ]  # fmt: skip
        if sampler := self._record.get("sampler"):
            uses = uses_of(sampler["chains"], sampler["steps"])
            whole = {**sampler, "uses": uses, "epsilon": self.epsilon}
            rows += [
                (", ".join(part["variables"]), part["name"], 1, (part["uses"],), (), part["noise"], part["epsilon"])
                for part in sampler.get("parts") or [whole]
            ]
        return pd.DataFrame(rows, columns=list(columns))

    @property
    def release(self) -> xr.Dataset:
        """The released statistics and the scales of their noise."""
        if not self._record["tables"]:
            raise TraceError("This trace holds no released statistics: a private sampler drew it from the rows.")
        return self._tree[RELEASED].to_dataset()

    def report(self) -> Report:
        """Return the full report; it prints, renders in a notebook, and is saved as a document by ``.save(path)``."""
        record = self._record
        found = unlisted(self._tree)
        held = self._tree[RELEASED].to_dataset() if record["tables"] and not found.lines else {}
        return Report(
            record=record,
            additions=found.lines,
            changed=found.changed,
            rows=found.rows,
            by_row=found.by_row,
            made_with=json.loads(self._tree[PRIVACY].attrs.get(MADE_WITH, "{}")),
            draws=self._draws,
            released={table["name"]: held[table["name"]].values for table in record["tables"] if held},
        )

    def publish(self, path: str | Path) -> Path:
        """Write the trace to netCDF (``.nc``) or zarr (``.zarr``), if everything in it was paid for.

        Parameters
        ----------
        path : str or Path
            Ends in ``.nc`` or ``.zarr``.

        Returns
        -------
        Path

        Raises
        ------
        TraceError
            If anything was added to the trace or changed in it after it was made, or if its noise was seeded; the text
            names every such place. Nothing is written then.
        """
        if not isinstance(path, str | Path):
            raise TraceError(
                f"path must be a file name ending in .nc or .zarr, got {_validate.shown(path)}. Give a path."
            )
        target = Path(path)
        report = self.report()
        if report.record["guarantee"] == "none":
            raise TraceError(
                "The noise of this trace was seeded or left out by pymc_dp.testing, so it is not private. Sample "
                "again without."
            )
        if report.additions:
            raise TraceError(_refusal(report))
        if target.suffix not in (".nc", ".zarr"):
            raise TraceError(f"path must end in .nc or .zarr, got {str(target)!r}.")
        _validate.folder("path", target)
        # Rebuilt from values alone: an encoding (a file name, say) is on no manifest and stays behind.
        clean = xr.DataTree.from_dict(
            {
                node.path: node.to_dataset(inherit=False).copy(deep=False).drop_encoding()
                for node in self._tree.subtree
                if node.path != "/"
            }
        )
        clean[PRIVACY].attrs[MANIFEST] = make_manifest(clean)
        if target.suffix == ".nc":
            clean.to_netcdf(target)
        else:
            with warnings.catch_warnings():
                # Readers expect consolidated metadata, and warn without; zarr warns with.
                warnings.filterwarnings("ignore", message="Consolidated metadata")
                clean.to_zarr(target, mode="w")
        return target


FREE = (
    "is free, but cannot be checked: write it into the model as a pm.Deterministic, or save it yourself with to_netcdf."
)


def _refusal(report: Report) -> str:
    """Say what a trace holds that was not paid for, and where it may go instead."""
    as_it_was = "publish the trace as dp.sample returned it."
    if set(report.additions) == set(report.changed):
        what = f"{report.changed[0]} since the trace was made"
        return f"{what}. A selection or a computation from a trace {FREE} Or {as_it_was}"
    places = "\n".join(f"  - {place}" for place in report.additions)
    if named := [*report.rows, *report.by_row]:
        first = "This trace holds the private rows" if report.rows else "This trace holds draws made row by row"
        return (
            f"{first}, so that nothing was written:\n{places}\nNo file that others may read should hold this tree. "
            f"Drop these groups, idata.drop_nodes({named}), or {as_it_was} Predictive draws of the release are free: "
            "draw them from dp.condition(model, dp.Release.of(idata)), which holds no row."
        )
    return (
        f"The trace holds what was not paid for:\n{places}\nDrop it, or {as_it_was} What is computed from the trace "
        "alone, or drawn from the model of its release, dp.condition(model, dp.Release.of(idata)), is free as well, "
        "but cannot be checked: save it yourself, in a file of its own, with to_netcdf."
    )


__all__ = ["MANIFEST", "PrivacyAccessor"]
