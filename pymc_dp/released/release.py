"""Released statistics alone: saved, loaded, taken out of models and traces, and made of tables of others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, TraceError
from pymc_dp.gradients.choice import NAME as GRADIENTS
from pymc_dp.inspection.rows import Array
from pymc_dp.release.published import PUBLISHED, published
from pymc_dp.release.record import ReleaseRecord, read_domain, read_record, written_release
from pymc_dp.release.several import apart, renamed
from pymc_dp.release.verdict import Verdict
from pymc_dp.release.written import is_network, sums_written
from pymc_dp.trace.accessor import PrivacyAccessor
from pymc_dp.trace.manifest import RECORD, check_cost, read_claim
from pymc_dp.trace.scrub import released_dataset
from pymc_dp.transforms.privatize import record_of

FORMATS = (".nc", ".json")
MANY_NUMBERS = 8
"""That two releases do not have in common by chance."""


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

    @classmethod
    def of_counts(
        cls,
        values: Any,
        scale: Any,
        *,
        noise: str,
        dims: Any = None,
        made_by: str,
        guarantee: str,
        budget: Budget | None = None,
        postprocessed: bool = False,
    ) -> Release:
        """Take noised counts or sums that others made, by OpenDP or Tumult, or a census's noisy measurements.

        Parameters
        ----------
        values : mapping of str to array, xarray.DataArray or xarray.Dataset
            Tables by their names. The first holds the cells, under the name of the likelihood that observes them:
            one number for each, with the noise added. Negative ones are normal. Further tables hold noised sums of the
            *same* cells: margins, totals. What counts something else is a release of its own.
        scale : number, array, or mapping of str to these
            Of the noise, as in ``idata.dp.release``: b of Laplace noise, the standard deviation of Gaussian noise; one
            for all cells, or one for each. 0 where a value is exact, as an invariant total is.
        noise : {"discrete gaussian", "discrete laplace", "gaussian", "laplace"}
            Independent of cell to cell. Geometric noise on counts is "discrete laplace".
        dims : str, sequence of str, or mapping of str to these
            Names of the axes of plain arrays, as in the model: a margin has some of the dims of the cells, a total has
            none, ``()``. A ``DataArray`` has its own; its coordinates are compared with those of the model, and a
            coordinate beside a dim (the region of each area) names groups, of which a further table holds sums.
        made_by, guarantee : str
            Who noised the tables, and what they say is guaranteed: the report quotes both.
        budget : Budget, optional
            ε and δ of all tables together, as the makers state them; without it they are unknown, and ε is inf.
        postprocessed : bool
            Whether values were changed after the noise was added: rounded, cut off at 0, or raked so that they add up.
            They are taken as they are, and the posterior is approximate. Without it, tables that were changed are
            refused where the values show it.

        Raises
        ------
        ArgumentError

        Notes
        -----
        **Guarantee.** None of this library: what the makers state. Nothing is charged, since nothing is read that was
        not published; whatever is computed of it is post-processing.

        **Likelihood.** By `condition`, on a model whose likelihood has the cells as its dims. Exact values are summed
        out: of Poisson, Binomial, NegativeBinomial, BetaBinomial, Bernoulli and Geometric counts by sums over all that
        they may be, of Normal sums by integrals. Further tables enter given the cells, by a normal distribution with
        the mean and the variance that the model gives to a sum of these. Where the last dim has the name of the
        likelihood, the table counts rows by its levels, and fits a model of rows.

        Examples
        --------
        >>> import numpy as np, pymc as pm, pymc_dp as dp
        >>> release = dp.Release.of_counts(
        ...     {"count": [12, -3, 45], "total": 61},
        ...     {"count": 4.0, "total": 1.0},
        ...     noise="discrete gaussian",
        ...     dims={"count": "area", "total": ()},
        ...     made_by="a statistics office",
        ...     guarantee="zCDP, rho = 0.53, one person",
        ... )
        >>> release
        Release(count: 3 cells x 1 statistic, total: 1 cell x 1 statistic; ε not stated, discrete Gaussian)
        >>> with pm.Model(coords={"area": ["a", "b", "c"]}) as model:
        ...     rate = pm.Gamma("rate", 2, 0.1, dims="area")
        ...     count = pm.Poisson("count", rate, dims="area", observed=np.zeros(3, dtype=int))
        >>> [var.name for var in dp.condition(model, release).observed_RVs]
        ['count', 'total']
        """
        record, tables = published(
            values,
            scale,
            noise=noise,
            dims=dims,
            made_by=made_by,
            guarantee=guarantee,
            budget=budget,
            postprocessed=postprocessed,
        )
        return cls(record=record, tables=tables)

    @property
    def epsilon(self) -> float:
        """Privacy loss of the release; of several, the most that a row of one data set has lost."""
        return self.record.epsilon

    @property
    def delta(self) -> float:
        """Failure probability of the release."""
        return self.record.delta

    @property
    def verdict(self) -> Verdict:
        """Whether intervals can be relied on, as in ``idata.dp.verdict``."""
        return Verdict.of(self.record.to_dict())

    @property
    def of_network(self) -> bool:
        """Whether the coefficients of a network were released, by ``dp.networks.FourierUpdates``."""
        return any(is_network(table.plan) for table in self.record.tables)

    @property
    def of_gradients(self) -> bool:
        """Whether noised gradients were released, by ``dp.Gradients``."""
        return any(table.plan.get("kind") == GRADIENTS for table in self.record.tables)

    @property
    def of_published(self) -> bool:
        """Whether it holds cells that others noised, see `of_counts`, and not yet rows of a likelihood."""
        return any(table.plan.get("kind") == PUBLISHED for table in self.record.tables)

    @property
    def about(self) -> tuple[str, ...]:
        """Names of the likelihoods that it is about; none where gradients were saved by an earlier version."""
        plan = self.record.tables[0].plan if self.record.tables else {}
        if self.of_network:
            return tuple(node["name"] for node in plan["nodes"])
        if self.of_gradients:
            return tuple(plan.get("responses", ()))
        return tuple(self.tables)[: 1 if self.of_published else None]

    @property
    def apart(self) -> list[tuple[str, Release]]:
        """The releases that it was made of, each with its label; none where it is one release alone."""
        found = []
        for one in apart(self.record):
            tables = tuple(renamed(table, one.names[table.name]) for table in one.record.tables)
            values = {own: self.tables[name] for name, own in one.names.items()}
            found.append((one.label, Release(record=replace(one.record, tables=tables), tables=values)))
        return found

    def same_as(self, other: Release) -> bool:
        """Whether the other one is a copy: chance makes the same few numbers now and then, but no line of a ledger."""
        if self is other or self.record.to_dict() != other.record.to_dict():
            return self is other
        many = sum(table.size for table in self.tables.values()) >= MANY_NUMBERS
        same = all(np.array_equal(table, other.tables[name]) for name, table in self.tables.items())
        return same and (many or self.record.ledger is not None)

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
        known = self.record.maker is None or self.record.maker["budget"]
        loss = f"ε = {self.epsilon:g}, δ = {self.delta:g}" if known else "ε not stated"
        return f"Release({', '.join(parts)}; {loss}, {self.record.noise})"


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


__all__ = ["Release"]
