"""``idata.dp``: what an annotated trace says about its privacy.

The report of a trace: what is guaranteed, for what price, on which assumptions; for terminals and notebooks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, override

import xarray as xr

from pymc_dp import _validate
from pymc_dp._display import Listing, Page, Shown, Table, shorten
from pymc_dp.domain import Unit
from pymc_dp.errors import TraceError
from pymc_dp.release.record import ALL_OF_IT, uses_of
from pymc_dp.trace.manifest import MANIFEST, PRIVACY, RELEASED, make_manifest, read_claim, unlisted

if TYPE_CHECKING:
    import pandas as pd


MEANING = {
    "exact": "the release itself is the mechanism; no convergence is needed",
    "stepwise": "every step of the chain is paid for; no convergence is needed",
    "asymptotic": "holds only if the chain has converged, which nothing can prove",
    "none": "NONE: privacy noise was seeded or left out by pymc_dp.testing",
}
ARITHMETIC = {
    "hardened": "exact integer sums and exact discrete noise",
    "float64": "idealised real numbers; floating-point attacks are not covered",
}
NEIGHBOURS = {
    "replace": "data sets differ in the private values of one row; the number of rows is public",
    "add_remove": "one row more or fewer; the number of rows is private",
}
OF_ROWS = "One row is protected. A person with m rows is protected with m times the ε."
OF_PERSONS = (
    "A person is protected, with all rows of that person, as far as {column} tells who that is. Someone with two "
    "values of it is protected as two people.",
    "Rows of one person count as independent given the parameters, as the model says: where they are not, intervals "
    "are too narrow. That is a limit of the posterior, not of the privacy.",
)
LIMITS = (
    "What is listed as assumed public was taken as known beforehand; computing any of it from the rows would break "
    "the guarantee.",
    "Running times, memory and the process that held the rows are not covered.",
    "Every other release from the same rows adds its ε to this one; a dp.Ledger keeps the sum.",
)
PER_UNIT = (
    "ε is per unit of ρ: a row is hard to tell from one nearby, and easier to tell from one far away. Twice the "
    "distance is twice the ε."
)


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What a trace guarantees; prints as text, and as HTML in a notebook.

    Attributes
    ----------
    record : dict
        The record of the release, as written in the trace.
    additions : tuple of str
        Everything in the trace that was not paid for; empty for a trace that may be published.
    """

    record: dict[str, Any]
    additions: tuple[str, ...]

    @property
    def publishable(self) -> bool:
        """Whether everything in the trace is covered."""
        return not self.additions and self.record["guarantee"] != "none"

    @property
    @override
    def _page(self) -> Page:
        record = self.record
        parts: list[Table | Listing] = [Table(title="", rows=self._facts())]
        if record["tables"]:
            events = [_event_row(table) for table in record["tables"]]
            columns = (*EVENT_COLUMNS[:-1], "ε of a whole row") if record.get("metric") else EVENT_COLUMNS
            parts.append(Table(title="Released", columns=columns, rows=events))
        approximate = [text for table in record["tables"] for text in table.get("approximations", ())]
        if approximate:
            parts.append(Listing(title="Approximate (in the posterior, not in the privacy)", lines=approximate))
        if sampler := record.get("sampler"):
            parts.append(Table(title="Sampled", rows=_sampler_rows(sampler)))
        if self.additions:
            title = "Not paid for (dropping these makes the trace publishable)"
            parts.append(Listing(title=title, lines=self.additions))
        parts.append(Listing(title="Assumed public", lines=record["assumptions"]))
        if record["left_out"]:
            parts.append(Listing(title="Left out, because computed from rows", lines=record["left_out"]))
        parts.append(Listing(title="Limits", lines=[*_protects(record), *LIMITS]))
        return Page(title="Privacy report", headline=self._headline(), good=self.publishable, parts=parts)

    def _headline(self) -> str:
        delta = f", δ = {self.record['delta']:g}" if self.record["delta"] else ""
        metric = self.record.get("metric")
        loss = f"ε = {self.record['epsilon']:g}{delta}"
        if metric:
            loss = f"ε = {metric['epsilon_per_unit']:g} per unit of ρ ({metric['metric']})"
        if self.record["guarantee"] == "none":
            return "Not private: the noise was seeded or left out. Never publish this trace."
        if self.additions:
            return f"The release cost {loss}, but this trace holds more than was paid for. Do not publish it as it is."
        whom = "one row of the table" if (unit := _unit(self.record)) is None else str(unit)
        return f"Everything in this trace is covered by {loss}{'' if metric else f' for {whom}'}."

    def _facts(self) -> list[tuple[str, str]]:
        record = self.record
        metric = record.get("metric")
        losses = [("ε, δ", f"{record['epsilon']:g}, {record['delta']:g}")] if not metric else _losses(record, metric)
        posterior = POSTERIOR[bool(record["noise_aware"])] if record["tables"] else SAMPLED
        return [
            *losses,
            *_budget(record),
            ("guarantee", f"{record['guarantee']}: {MEANING[record['guarantee']]}"),
            ("arithmetic", f"{record['arithmetic']}: {ARITHMETIC[record['arithmetic']]}"),
            ("neighbours", f"{record['neighbours']}: {_neighbours(record)}"),
            ("noise", record["noise"]),
            *([("released", record["chosen"])] if record.get("chosen") else []),
            *([("ledger", _ledger(record["ledger"]))] if record.get("ledger") else []),
            ("posterior", posterior),
        ]


def _unit(record: dict[str, Any]) -> Unit | None:
    """Return whom ε protects; None where that is a row."""
    found = (record.get("domain") or {}).get("unit")
    return None if found is None else Unit(**found)


def _neighbours(record: dict[str, Any]) -> str:
    if (unit := _unit(record)) is None:
        return NEIGHBOURS[record["neighbours"]]
    counted = f"{unit.max_rows} row{'s' * (unit.max_rows != 1)}"
    return (
        f"one person ({unit.column}) more or fewer, with any number of rows, of which at most {counted} count; the "
        "numbers of persons and of rows are private"
    )


def _protects(record: dict[str, Any]) -> list[str]:
    """Say what is protected, and what is not."""
    if (unit := _unit(record)) is not None:
        return [line.format(column=unit.column) for line in OF_PERSONS]
    return [*([PER_UNIT] * bool(record.get("metric"))), OF_ROWS]


def _ledger(head: dict[str, Any]) -> str:
    return f"{head['dataset']}, line {head['line']}, {head['hash'][:16]}… (ledger {head['ledger'][:8]})"


def _budget(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what was asked for, what the run costs, and what would use the rest."""
    metric, asked = record.get("metric"), record.get("asked")
    if asked is None:  # by an earlier version
        return []
    cost, unit = (metric["epsilon_per_unit"], " per unit of ρ") if metric else (record["epsilon"], "")
    if cost > asked:  # what was paid for before counts too
        return [("budget", f"ε = {asked:g} was asked for, beside what was paid for before")]
    costs = "that" if f"{cost:g}" == f"{asked:g}" else f"{cost:g}"
    left = f", {asked - cost:.3g} is left" if cost < ALL_OF_IT * asked else ""
    rest = f": {record['rest']}" if record.get("rest") else ""
    return [("budget", f"ε = {asked:g}{unit} was asked for, the run costs {costs}{left}{rest}")]


def _losses(record: dict[str, Any], metric: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what ε is per unit of a metric, and what that is for whole rows."""
    diameter = metric["diameter"]
    used = "clamped" + (f", and rounded ({', '.join(metric['grids'])})" if metric["grids"] else "")
    whole = (
        (f"{record['epsilon']:g}, because rows are at most {diameter:.6g} apart") if diameter is not None else UNBOUNDED
    )
    return [
        ("ε per unit of ρ", f"{metric['epsilon_per_unit']:g}, δ = 0"),
        ("ρ", f"{metric['metric']}, between rows as they are used: {used}; tables are Σ ρ(x_i, y_i) apart"),
        ("ε for a whole row", whole),
    ]


UNBOUNDED = "none: values have no bounds, so that rows may be at any distance"
POSTERIOR = {
    True: "accounts for the noise",
    False: "plug-in: treats the noised statistics as exact, and is overconfident",
}
SAMPLED = "drawn by a private sampler that held the rows; every state of its chains was paid for"
EVENT_COLUMNS = ("variable", "likelihood", "cells x statistics", "noise scale", "sensitivity", "ε")


def _sampler_rows(sampler: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("sampler", sampler["name"]),
        ("variables", ", ".join(sampler["variables"])),
        ("chains x steps", f"{sampler['chains']} x {sampler['steps']}"),
        *[(str(name), str(text)) for name, text in sampler["facts"]],
    ]


def _event_row(table: dict[str, Any]) -> tuple[str, ...]:
    scales = shorten([f"{scale:.4g}" for scale in dict.fromkeys(table["scales"])])
    return (
        table["name"],
        table["likelihood"],
        f"{len(table['cells'])} x {', '.join(shorten(table['columns']))}",
        ", ".join(scales),
        "; ".join(table["sensitivities"]),
        f"{table['epsilon']:.6g}",
    )


class PrivacyAccessor:
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
    def delta(self) -> float:
        """Failure probability δ of the guarantee."""
        return float(self._record["delta"])

    @property
    def guarantee(self) -> str:
        """One of "exact", "stepwise", "asymptotic", "none"."""
        return str(self._record["guarantee"])

    @property
    def arithmetic(self) -> str:
        """One of "hardened", "float64"."""
        return str(self._record["arithmetic"])

    @property
    def neighbours(self) -> str:
        """One of "replace", "add_remove"."""
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
        """Return the full report; it prints in a terminal and renders in a notebook."""
        return Report(record=self._record, additions=tuple(unlisted(self._tree)) if self._record else ())

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
            places = "\n".join(f"  - {place}" for place in report.additions)
            raise TraceError(
                f"The trace holds what was not paid for:\n{places}\nDrop it, or publish the trace as dp.sample "
                "returned it."
            )
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


__all__ = ["MANIFEST", "PrivacyAccessor"]
