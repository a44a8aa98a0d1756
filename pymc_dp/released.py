"""Released statistics alone: saved, loaded, and fitted by anyone with a model of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, Problem, TraceError, UnsupportedModelError
from pymc_dp.gradients.choice import NAME as GRADIENTS
from pymc_dp.inspection.findings import Inspection, Observed
from pymc_dp.inspection.inspect import context_model, inspect
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord, TableRecord, make_tables, read_domain, read_record, written_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import Drawn, ReleasePlan, TablePlan
from pymc_dp.release.written import is_network, read, read_network, released_rows, sums_written
from pymc_dp.trace.accessor import PrivacyAccessor
from pymc_dp.trace.manifest import RECORD, check_cost, read_claim
from pymc_dp.trace.scrub import released_dataset
from pymc_dp.transforms.privatize import complete, prepare, record_of, warn_of_bounds
from pymc_dp.transforms.trial import Trial

FORMATS = (".nc", ".json")


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Noised tables and the public record of how they were made. Holds no row; anyone may have it.

    Made by `Release.of` from a private model or a trace, by `Release.load` from a file.

    Attributes
    ----------
    record : ReleaseRecord
        Guarantee, cost, assumptions, and the plan of every table.
    tables : mapping of str to (n_cells, n_statistics) array
        Released values, in units of the data.

    Notes
    -----
    **Guarantee.** That of the release it was taken from: whatever is done with it costs nothing more (post-processing).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1, 0, 1]))
    >>> Release.of(dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(1.0)))
    Release(y: 1 cell x 1 statistic; ε = 1, δ = 0, discrete Laplace)
    """

    record: ReleaseRecord
    tables: Mapping[str, Array]

    @classmethod
    def of(cls, source: Model | xr.DataTree) -> Release:
        """Take the release out of a private model, or out of a trace of ``dp.sample`` or ``dp.scrub``.

        Raises
        ------
        ArgumentError
            If `source` is neither.
        TraceError
            If it holds no released statistics.
        """
        if isinstance(source, Model):
            found = record_of(source)
            if found is None:
                raise ArgumentError("The model is not private: take the release of what dp.privatize returns.")
            return cls(record=found[0], tables=found[1])
        if not isinstance(source, xr.DataTree):
            raise ArgumentError(f"source must be a private model or a trace, got {_validate.shown(source)}.")
        held = PrivacyAccessor(source).release
        record = read_record(read_claim(source))
        return cls(record=record, tables={table.name: held[table.name].to_numpy() for table in record.tables})

    @property
    def epsilon(self) -> float:
        """Privacy loss of the release."""
        return self.record.epsilon

    @property
    def delta(self) -> float:
        """Failure probability of the release."""
        return self.record.delta

    @property
    def of_network(self) -> bool:
        """Whether the coefficients of a network were released, by ``dp.networks.FourierUpdates``."""
        return any(is_network(table.plan) for table in self.record.tables)

    @property
    def of_gradients(self) -> bool:
        """Whether noised gradients were released, by ``dp.Gradients``."""
        return any(table.plan.get("kind") == GRADIENTS for table in self.record.tables)

    def marginals(self) -> xr.Dataset:
        """Return the tables of a network's nodes that the released coefficients make: they agree with each other.

        Returns
        -------
        xarray.Dataset
            One array per node, called ``<node>_table``: estimated counts, an axis for each of its parents and one for
            its own levels. They add up to the number of rows and the increment of
            ``dp.networks.FourierUpdates(t)``; cells may be below 0.

        Raises
        ------
        ArgumentError
            If it was not `FourierUpdates` that made the release.

        Notes
        -----
        **Guarantee.** That of the release.
        """
        if not self.of_network:
            raise ArgumentError("The tables of this release were not made of coefficients: they are in .tables.")
        (record,) = self.record.tables
        sums, plan, values = sums_written(record.plan), record.plan, self.tables[record.name]
        n_rows = (plan["n_rows"] if plan["counted"] else float(values[0, 0])) + plan["increment"]
        network, found = sums.network, {}
        for place, table in enumerate(sums.tables(values[:, 0], n_rows)):
            names = [network.nodes[member].name for member in network.family(place)]
            found[f"{names[-1]}_table"] = (names, table.reshape(network.shape(place)))
        return xr.Dataset(found, coords={node.name: np.arange(node.n_levels) for node in network.nodes})

    @property
    def domain(self) -> Domain:
        """What was public about a row."""
        return read_domain(self.record.domain)

    def to_dataset(self) -> xr.Dataset:
        """Return the tables and the scales of their noise, the record as an attribute."""
        return released_dataset(self.record, self.tables).assign_attrs({RECORD: json.dumps(self.record.to_dict())})

    def save(self, path: str | Path) -> Path:
        """Write to a file that ends in ``.nc`` (netCDF) or ``.json``.

        Raises
        ------
        ArgumentError
            For another ending.
        """
        path = _validate.path("path", path, FORMATS)
        _validate.folder("path", path)
        if path.suffix == ".nc":
            self.to_dataset().to_netcdf(path)
        else:
            path.write_text(json.dumps(written_release(self.record, self.tables), indent=1, ensure_ascii=False))
        return path

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read what `save` wrote.

        Raises
        ------
        ArgumentError
            For another ending.
        TraceError
            If the file holds no release, or its events cost more than the ε and δ that it says.
        """
        path = _validate.path("path", path, FORMATS)
        try:
            if path.suffix == ".json":
                return cls.from_dict(json.loads(path.read_text()), path.name)
            with xr.open_dataset(path) as held:
                record = json.loads(held.attrs[RECORD])
                tables = {table["name"]: held[table["name"]].to_numpy() for table in record["tables"]}
            return cls.from_dict({"record": record, "tables": tables}, path.name)
        except FileNotFoundError:
            raise ArgumentError(
                f"path names no file: {_validate.shown(path)}. Give one that Release.save wrote."
            ) from None
        except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
            raise TraceError(f"{path.name} holds no release that dp.Release.save wrote.") from error

    @classmethod
    def from_dict(cls, written: Mapping[str, Any], name: str = "What was given") -> Release:
        """Read what a stored ledger keeps, or the contents of a ``.json`` file of `save`.

        Parameters
        ----------
        written : mapping
        name : str
            What it is called, for texts.

        Raises
        ------
        TraceError
            If its events cost more than the ε and δ that it says.
        """
        record = read_record(written["record"])
        release = cls(record=record, tables=_checked(record, written["tables"]))
        check_cost(written["record"], name)
        return release

    def __repr__(self) -> str:
        parts = [
            f"{table.name}: {_many(len(table.cells), 'cell')} x {_many(len(table.columns), 'statistic')}"
            for table in self.record.tables
        ]
        return f"Release({', '.join(parts)}; ε = {self.epsilon:g}, δ = {self.delta:g}, {self.record.noise})"


def condition(
    model: Model | None,
    release: Release | xr.DataTree,
    *,
    noise_aware: bool = True,
    covariates: Mapping[str, Any] | None = None,
    n_rows: int | None = None,
) -> Model:
    """Fit a model to released statistics, or to draws of ``dp.OPS``: its rows are replaced by them, and never read.

    Parameters
    ----------
    model : pymc.Model or None
        Any priors, and likelihoods with the statistics that were released, under the same names and indexed by columns
        of the same names. Its rows are dummies: only their dtypes and the lengths of dims count, and the labels of dims
        that columns index, which must be those of the release. None: the model of the context.
    release : Release or xarray.DataTree
        Released statistics; or a trace of ``dp.sample(step=dp.OPS())``, whose draws are then the data: outputs of a
        known mechanism at a known temperature. `model` is then the one that was sampled, priors included.
    noise_aware : bool
        As in `Statistics`. Draws are always accounted for as they are.
    covariates : mapping of str to array or distribution, optional
        For draws only: of private columns that no likelihood observes, as for ``dp.plan``; uniform within their bounds
        by default. Where draws are few, the width of the posterior depends on them.
    n_rows : int, optional
        For draws only: the number of rows where that is private (``add_remove``); give one that is public or released.

    Returns
    -------
    pymc.Model
        As `privatize` returns it. For draws, its observed variable is ``released_draws``, and a free variable
        ``released_draws_score`` stands for what is random in the table; see `draw_intervals` for what it says, and
        ``approximations`` of the record for what is approximate.

    Raises
    ------
    UnsupportedModelError
        Where the model cannot be fitted to these tables or draws, with every problem.
    TraceError
        If a trace holds no draws of ``dp.OPS``, or was changed.
    ArgumentError
        For arguments of another kind.

    Notes
    -----
    **Guarantee.** That of the release: the model is computed from it alone, so that nothing more is spent.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> def build(prior, rows):
    ...     with pm.Model() as model:
    ...         pm.Bernoulli("y", prior("p"), observed=rows)
    ...     return model
    >>> owner = build(lambda name: pm.Beta(name, 1, 1), np.array([0, 1, 1, 0, 1]))
    >>> release = Release.of(dp.privatize(owner, epsilon=1.0, ledger=dp.Ledger(1.0)))
    >>> other = build(lambda name: pm.Uniform(name, 0.2, 0.8), np.zeros(2, dtype=int))
    >>> [var.name for var in condition(other, release).free_RVs]
    ['p']
    """
    _validate.flag("noise_aware", noise_aware)
    if isinstance(release, xr.DataTree):
        if not noise_aware:
            raise ArgumentError("noise_aware=False is for released statistics; release is a trace. Leave it out.")
        from pymc_dp.from_draws.private_model import condition_on_draws  # which imports SciPy

        return condition_on_draws(model, release, covariates=covariates, n_rows=n_rows)
    if not isinstance(release, Release):
        shown = _validate.shown(release)
        raise ArgumentError(
            f"release must be a dp.Release or a trace of dp.OPS(), got {shown}. Write dp.Release.load(path)."
        )
    if covariates is not None or n_rows is not None:
        raise ArgumentError("covariates and n_rows are for draws of dp.OPS(); a dp.Release needs none. Leave them out.")
    source = context_model(model)
    if record_of(source) is not None:
        raise ArgumentError("The model is private already. Give the model with (dummy) rows.")
    if release.of_gradients:
        from pymc_dp.gradients.fit import refit  # Numba, which most users of releases never need

        (held,) = release.tables.values()
        return refit(source, read_domain(release.record.domain, set(source.named_vars)), release.record, held)
    inspection, tables = planned(source, release)
    plan = ReleasePlan(
        tables=tables,
        neighbours=inspection.domain.neighbours,
        statistics=Statistics(noise=tables[0].kind, noise_aware=noise_aware),
        epsilon=release.epsilon,
        delta=release.delta,
    )
    new, parameters = prepare(inspection, plan)
    guarantee: Literal["exact", "none"] = "exact" if release.record.guarantee == "exact" else "none"
    plans = {table.name: table.plan for table in release.record.tables}
    values = {table.name: release.tables[table.name][released_rows(plans[table.name], table)] for table in tables}
    record = _for_model(release, plan, inspection.dropped)
    drawn = Drawn(plan=plan, values=values, guarantee=guarantee)
    complete(new, parameters, drawn, record)
    warn_of_bounds(drawn)
    Trial().check(new)
    return new


def planned(model: Model, release: Release) -> tuple[Inspection, tuple[TablePlan, ...]]:
    """Inspect a model and match its likelihoods with released tables.

    Raises
    ------
    UnsupportedModelError
        Where they do not fit, with every problem.
    """
    inspection = inspect(model, read_domain(release.record.domain, set(model.named_vars)), per_person=True).sums
    if release.of_network:
        inspection.require()
        network = read_network(release.record.tables[0].plan, inspection)
        if isinstance(network, tuple):
            raise UnsupportedModelError(network)
        return inspection, (network,)
    problems, tables = list(inspection.problems), []
    records = {table.name: table for table in release.record.tables}
    for observed in inspection.observed:
        found = _table(records.get(observed.name), observed)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            tables.append(found)
    if problems:
        raise UnsupportedModelError(problems)
    return inspection, tuple(tables)


def _table(record: TableRecord | None, observed: Observed) -> TablePlan | Problem:
    if record is None:
        return Problem(
            where=observed.name,
            what="no table of this name was released",
            remedy="Name the likelihood as in the release, or leave it out.",
        )
    return read(record.plan, record.columns, observed)


def _for_model(release: Release, plan: ReleasePlan, dropped: tuple[str, ...]) -> ReleaseRecord:
    records = {table.name: table for table in release.record.tables}
    kept = make_tables(plan) if release.of_network else tuple(records[table.name] for table in plan.tables)
    return replace(release.record, tables=kept, noise_aware=plan.statistics.noise_aware, left_out=dropped)


def _checked(record: ReleaseRecord, tables: Mapping[str, Array]) -> dict[str, Array]:
    """Return the tables of a record that were read from a file, if they have its shape and hold finite numbers."""
    found = {table.name: np.asarray(tables[table.name], dtype=np.float64) for table in record.tables}
    for table in record.tables:
        if (
            found[table.name].shape != (len(table.cells), len(table.columns))
            or not np.isfinite(found[table.name]).all()
        ):
            raise ValueError(f"{table.name} is not the table that its record describes")
    return found


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


__all__ = ["Release", "condition", "planned"]
