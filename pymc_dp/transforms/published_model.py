"""A likelihood that observes cells, on tables of them that others noised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.families.quadrature import SMALL
from pymc_dp.inspection.findings import title_of
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord, TableRecord
from pymc_dp.transforms.published_cells import SUPPORTS, Noised, PublishedCells, PublishedSums
from pymc_dp.transforms.released_logp import add_release, held

KNOWN = "Poisson, Binomial, NegativeBinomial, BetaBinomial, Bernoulli, Geometric or Normal"
MOST_TERMS = 1_000_000
"""Terms of the sums over exact counts, of all cells together."""
MOST_SUMS = 300
"""Noised sums that overlap: their covariance is a full matrix."""
MOST_PRODUCTS = 5_000_000
"""Cells times sums."""
NORMAL = (
    "{}: sums of cells are treated as normal given the published cells, with their mean and variance under the model "
    "(central limit theorem over the cells of a sum). Where a sum has few cells, and these hold less than some tens, "
    "the posterior is closer without it."
)
IGNORED = "{}: the plug-in form takes the published cells for exact, and leaves sums of them out."


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedModel:
    """What a model says about the cells of published tables. Everything in it is public.

    Attributes
    ----------
    record : ReleaseRecord
        Of the tables, the cells first.
    values : mapping of str to (n_cells, 1) array
        By the names in the record.
    density : PublishedCells
    parameters : list of Variable
        Of the exact cells: (n_cells,) graphs over the model's free variables.
    trials : array or None
        Known numbers of trials.
    dropped, kept_data : tuple of str
        Deterministics that the private model leaves out, and data that it keeps.
    hidden : frozenset of Variable
        Dummies, which it must not reach.
    """

    record: ReleaseRecord
    values: Mapping[str, Array]
    density: PublishedCells
    parameters: list[Variable]
    trials: Array | None
    dropped: tuple[str, ...]
    kept_data: tuple[str, ...]
    hidden: frozenset[Variable]

    @classmethod
    def of(
        cls, model: Model, name: str, record: ReleaseRecord, values: Mapping[str, Array], *, noise_aware: bool
    ) -> PublishedModel:
        """Match the likelihood called `name` with the first table of a record.

        Raises
        ------
        UnsupportedModelError
            With every problem.
        """
        cells, *others = record.tables
        rv = next((one for one in model.observed_RVs if one.name == name), None)
        problems = list(_misfits(model, rv, name, cells))
        if problems or rv is None:
            raise UnsupportedModelError(problems)
        op, shape = rv.owner.op, tuple(cells.plan["shape"])
        parameters = [pt.broadcast_to(one, shape).ravel() for one in op.dist_params(rv.owner)]
        known = op.name not in ("binomial", "beta_binomial") or not set(model.free_RVs) & set(ancestors(parameters[:1]))
        density = PublishedCells(
            op=op, noise=Noised.of(cells, record.noise), known_trials=known, noise_aware=noise_aware
        )
        trials = np.asarray(parameters[0].eval()) if known and SUPPORTS.get(op.name, (0, 0))[1] == "n" else None
        if problems := list(_too_large(name, density, cells, others)):
            raise UnsupportedModelError(problems)
        tables = (
            replace(cells, likelihood=f"{title_of(rv)}, published"),
            *(replace(one, approximations=(*one.approximations, *_approximate(density, one))) for one in others),
        )
        if not noise_aware:
            tables = tables[:1]
            if others:
                said = (*cells.approximations, IGNORED.format(cells.name))
                tables = (replace(tables[0], approximations=said),)
        observed = set(model.observed_RVs)
        dropped = [det for det in model.deterministics if observed & set(ancestors([det]))]
        ends = [*parameters, *model.free_RVs, *model.potentials]
        ends += [det for det in model.deterministics if det not in dropped]
        hidden = frozenset(model.rvs_to_values[one] for one in model.observed_RVs)
        reached = set(ancestors(ends))
        return cls(
            record=replace(
                record, tables=tables, noise_aware=noise_aware, left_out=tuple(str(det.name) for det in dropped)
            ),
            values={table.name: values[table.name] for table in tables},
            density=density,
            parameters=parameters,
            trials=trials,
            dropped=tuple(str(det.name) for det in dropped),
            kept_data=tuple(str(var.name) for var in model.data_vars if var in reached and var not in hidden),
            hidden=hidden,
        )

    def observe(self, new: Model, parameters: Sequence[Variable]) -> None:
        """Make the tables observed variables of a model that has the priors of the parameters."""
        cells, *others = self.record.tables
        given: list[Any] = list(parameters)
        for table in self.record.tables:
            new.add_coords({table.cell_dim: table.cells, table.column_dim: table.columns})
        value = self.values[cells.name]
        if not self.density.noise_aware:
            value = self.density.projected(value, self.trials)
        with new:
            add_release(cells, [*given, held(self.density.noise.scales[:, None])], self.density, value)
        if others:
            _, mean, variance = self.density.moments(held(value[:, 0]), given)
            self._observe_sums(new, others, mean, variance)

    def _observe_sums(
        self, new: Model, tables: Sequence[TableRecord], mean: TensorVariable, variance: TensorVariable
    ) -> None:
        """Add noised sums of cells, each table given those before it.

        A table holds each cell in one sum, so that its own sums are independent given the cells. Those of further
        tables are not, given sums that were seen: their normal distribution is conditional on these.
        """
        seen: list[tuple[Any, Any, Array]] = []  # matrix, residual, variance of noise
        for table in tables:
            noise, matrix = Noised.of(table, self.record.noise), held(_membership(table))
            value = self.values[table.name]
            middle = matrix @ mean
            if not seen:
                spread = matrix @ variance
            else:
                before = pt.concatenate([one for one, _, _ in seen])
                residual = pt.concatenate([one for _, one, _ in seen])
                known = (before * variance) @ before.T + pt.diag(
                    held(np.concatenate([one for *_, one in seen]) + SMALL)
                )
                shared = (matrix * variance) @ before.T
                gain = pt.linalg.solve(known, shared.T, assume_a="pos").T
                middle = middle + gain @ residual
                spread = (matrix * variance) @ matrix.T - gain @ shared.T
            seen.append((matrix, held(value[:, 0]) - matrix @ mean, noise.variances))
            density = PublishedSums(noise=noise, overlapping=len(seen) > 1)
            with new:
                add_release(table, [middle, spread, held(noise.scales[:, None])], density, value)


def _membership(table: TableRecord) -> Array:
    """Return which sum each cell is in, as a matrix of 0 and 1: (n_sums, n_cells)."""
    places = np.asarray(table.plan["places"])
    return (np.arange(len(table.cells))[:, None] == places).astype(np.float64)


def _misfits(model: Model, rv: Any, name: str, cells: TableRecord) -> Iterator[Problem]:
    """Say why an observed variable cannot have the cells of a table."""
    dims, shape = tuple(cells.plan["dims"]), tuple(cells.plan["shape"])
    if rv is None:
        free = any(one.name == name for one in model.free_RVs)
        yield Problem(
            where=name,
            what="it has no observed= in the model" if free else "the model has no likelihood of this name",
            remedy=f"Write it with dims={dims} and observed=np.zeros({shape}, dtype=int): dummies, of which only "
            "the shape counts. Exact values are summed out.",
        )
        return
    op = rv.owner.op
    if not isinstance(op, RandomVariable) or op.name not in (*SUPPORTS, "normal"):
        yield Problem(
            where=name,
            what=f"exact values of a {title_of(rv)} likelihood cannot be summed out",
            remedy=f"Use {KNOWN}, or sums with a Normal distribution.",
        )
    own = tuple(model.named_vars_to_dims.get(name) or ())
    if own != dims:
        yield Problem(
            where=name, what=f"its dims are {own}, those of the published table {dims}", remedy=f"Write dims={dims}."
        )
        return
    for dim, size in zip(dims, shape, strict=True):
        length = int(model.dim_lengths[dim].eval())
        labels, known = cells.plan["labels"].get(dim), model.coords.get(dim)
        if length != size:
            what = f"{dim!r} has {length} cells in the model, and {size} in the published table"
            yield Problem(where=name, what=what, remedy="Give both the same cells, in the same order.")
        elif labels is not None and known is not None and (differ := _first_other(list(known), labels)) is not None:
            what = f"cell {differ} of {dim!r} is {known[differ]!r} in the model, and {labels[differ]!r} in the table"
            yield Problem(where=name, what=what, remedy="Give both the same cells, in the same order.")
    if any(set(model.observed_RVs) & set(ancestors([one])) for one in model.potentials):
        yield Problem(where=name, what="a pm.Potential depends on what is observed", remedy="Leave it out.")


def _first_other(own: list[Any], labels: list[Any]) -> int | None:
    """Return the first place where labels differ."""
    pairs = zip(own, labels, strict=True)
    return next((place for place, (one, other) in enumerate(pairs) if str(one) != str(other)), None)


def _too_large(
    name: str, density: PublishedCells, cells: TableRecord, others: Sequence[TableRecord]
) -> Iterator[Problem]:
    """Say what would take too long."""
    if not density.closed and (2 * density.reach + 1) * len(cells.cells) > MOST_TERMS:
        yield Problem(
            where=name,
            what=f"a sum over {2 * density.reach + 1} exact counts for each of {len(cells.cells)} cells is too long",
            remedy="Use a Poisson likelihood, or a Binomial one with known n, whose sums are closed; the rate may have "
            "a random effect for each cell.",
        )
    count = sum(len(table.cells) for table in others)
    if len(others) > 1 and sum(len(table.cells) for table in others[1:]) > MOST_SUMS:
        yield Problem(
            where=name,
            what=f"there are more than {MOST_SUMS} sums beside the first table of sums",
            remedy="Give the table with the most sums first, after the cells, and leave others out.",
        )
    if count * len(cells.cells) > MOST_PRODUCTS:
        yield Problem(where=name, what=f"there are {count} sums of {len(cells.cells)} cells", remedy="Leave some out.")
    elif (exact := _determined(density, others)) is not None:
        yield Problem(
            where=exact,
            what="it is exact (scale 0), and follows from exact sums or cells before it",
            remedy="Leave it out: it says nothing more.",
        )


def _determined(density: PublishedCells, tables: Sequence[TableRecord]) -> str | None:
    """Return the first table with exact sums that others determine."""
    noised = density.noise.scales > 0
    known = np.zeros((0, int(noised.sum())))
    for table in tables:
        exact = np.broadcast_to(np.array(table.scales) == 0, (len(table.cells),))
        known = np.concatenate([known, _membership(table)[exact][:, noised]])
        if len(known) and np.linalg.matrix_rank(known) < len(known):
            return table.name
    return None


def _approximate(density: PublishedCells, table: TableRecord) -> tuple[str, ...]:
    """Say what is approximate about noised sums; nothing is where everything is normal."""
    plain = density.op.name == "normal" and density.noise.kind == "gaussian"
    return () if plain else (NORMAL.format(table.name),)


__all__ = ["PublishedModel"]
