"""Public constants of a release, and how curvatures change on the way, from rows that are made up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.gradients.clipping import UNLIMITED, factored
from pymc_dp.gradients.curvature import Blocks, Levels, blocks_of, levels_of
from pymc_dp.gradients.interface import Interface
from pymc_dp.gradients.made_up import evened, finite, idle, median
from pymc_dp.gradients.moments import Moments
from pymc_dp.gradients.persons import added
from pymc_dp.gradients.row_parts import Expected, RowParts, expected
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array, shape_of
from pymc_dp.simulation.columns import draw_columns, loose_columns, narrowed, undeclared
from pymc_dp.simulation.prior import draw_prior, not_drawn, split
from pymc_dp.transforms.prior_model import prior_model, prior_model_with

DRAWS, ROWS = 100, 60
"""Draws from the prior, and rows for each."""
FEW, PER_PARAMETER, ON_THE_WAY, LEAST_PER_PARAMETER = 200, 40, 400, 4
"""Rows by which curvatures are carried from point to point: per parameter, within these, and at least per parameter."""
RELATING, APART, OFTEN = 40, 0.01, 0.1
"""Draws from the prior that say which parameters rows relate, from what correlation on, in what part of the draws."""
MORE = 10
"""Made-up rows that say along which directions none changes, over those usually."""
CORNERS, MOVED, CORNER_SEED = 4096, 0.9, 20_261_128
"""Rows at ends of bounds that are tried for the largest score, and the share of each column that is moved there."""
CUT, ROOMY = 0.01, 1.5
"""Share of the curvatures of made-up rows that a limit may cut, and by what it is raised, as rows of tables differ."""
MOMENT_SEED = 20_261_129
LEAST_NUMBERS = 0.5
"""Least share of made-up rows with scores that are numbers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulated:
    """Made-up rows and parameters. All of it is public.

    Attributes
    ----------
    rows : RowScores
    parameters : (n_draws, d) array
        Interface parameters, drawn from the prior.
    columns : tuple of (n_rows, ...) arrays
        Rows with covariates as declared.
    loose : mapping of int to float or (...) array
        Columns of which nothing but bounds or a norm is known, and what they are centred at.
    few : bool
        Whether somebody stated fewer rows of a column than there are parameters: what they lack others may have.
    """

    rows: RowScores
    parameters: Array
    columns: tuple[Array, ...]
    loose: Mapping[int, float | Array] = field(default_factory=dict)
    few: bool = False

    @classmethod
    def of(cls, rows: RowScores, covariates: Mapping[str, Any], rng: np.random.Generator) -> Simulated:
        """Make up rows. Reads no private value.

        Parameters
        ----------
        rows : RowScores
        covariates : mapping of str to array or distribution
            Of private columns that no likelihood observes, as `draw_columns` takes them.
        rng : numpy.random.Generator

        Raises
        ------
        UnsupportedModelError
            Where a private covariate has neither a distribution nor bounds, or the prior cannot be drawn from.
        """
        inspection = rows.interface.inspection
        if problems := [*not_drawn(prior_model(inspection)), *undeclared(inspection, covariates, "dp.Gradients")]:
            raise UnsupportedModelError(problems)
        held = draw_columns(inspection, covariates, n_rows=DRAWS * ROWS, rng=rng)
        columns = tuple(  # what is observed does not matter
            held[one.leaf] if one.leaf in held else one.clamped(np.zeros((DRAWS * ROWS, *shape_of(one.leaf)[1:])))
            for one in inspection.columns
        )
        drawn = parameter_draws(rows.interface, DRAWS, rng)
        loose = loose_columns(inspection, covariates)
        if inspection.weight is not None:  # made-up rows are not weighed
            loose.pop(inspection.weight, None)
        stated = (len(np.atleast_1d(one)) for one in covariates.values() if not isinstance(one, Variable))
        few = min(stated, default=drawn.shape[1]) < drawn.shape[1]
        return cls(rows=rows, parameters=drawn, columns=columns, loose=loose, few=few)

    @cached_property
    def scale(self) -> Array:
        """D, (d,): D_j = (median over the prior of the mean over rows of E s_j²)^-1/2.

        Raises
        ------
        UnsupportedModelError
            If expectations over the responses of most made-up rows are no numbers: such rows would add nothing.
        """
        squares = np.array([_mean_squares(one) for one in self._drawn])
        if self.levels is not None:  # a level is met by few of these rows
            squares = np.array([self.levels.pooled(one) for one in squares])
        return self._scale(squares)

    def scaled(self, at: Array) -> Simulated:
        """Return the same rows, with the scale of parameters as it is at a position η."""
        own = _mean_squares(self._expected(at, np.ones(len(at)), 0, ON_THE_WAY))
        squares = own if self.levels is None else self.levels.pooled(own)
        return self._with(self._scale(squares[None]))

    def _with(self, scale: Array, **changes: Any) -> Simulated:
        """Return it with changes, and a scale; what else follows from rows as they are declared stays."""
        found = replace(self, **changes)
        vars(found).update({"scale": scale, "levels": self.levels, "blocks": self.blocks})
        return found

    @cached_property
    def levels(self) -> Levels | None:
        """Parameters that rows meet one at a time, where there are so many that it matters; see `levels_of`."""
        met = np.concatenate([one.of_rows((one.jacobian != 0).any(axis=1)) for one in self._drawn])
        return levels_of(self.rows.interface.parts, met)

    @cached_property
    def blocks(self) -> Blocks:
        """Places of parameters that no row relates to others: a location and a scale of a symmetric distribution.

        Of made-up rows alone: what noise says of the curvature between two blocks is left out. Where bounds of the
        responses are met often, a location and a scale are related after all.
        """
        if self.levels is not None:
            return ()
        related = [_related(one) > APART for one in self._drawn[:RELATING]]
        return blocks_of(np.mean(related, axis=0) > OFTEN)

    @cached_property
    def _drawn(self) -> list[Expected]:
        """Made-up rows at parameters drawn from the prior."""
        ones = np.ones(self.rows.interface.size)
        found = [self._expected(at, ones, place * ROWS, ROWS) for place, at in enumerate(self.parameters)]
        _require_numbers(found)
        return found

    @cached_property
    def steepness(self) -> tuple[float, float]:
        """Median norm of a score, and median over the prior of the largest curvature of a row's mean log-likelihood.

        In the coordinates η / D.
        """
        norms, shares, tops = list[Array](), list[Array](), list[float]()
        for place, at in enumerate(self.parameters):
            found = self._expected(at, self.scale, place * ROWS, ROWS)
            weights, scores = found.responses.weights, found.responses.scores
            with np.errstate(all="ignore"):
                norms.append(found.of_rows(np.einsum("nbi,nij,nbj->nb", scores, found.gram, scores)).ravel())
                shares.append(found.of_rows(weights).ravel())
                own = factored(finite(found.responses.moments))
                bent = found.of_rows(finite(np.matmul(own.transpose(0, 2, 1), found.jacobian))).reshape(-1, len(at))
            tops.append(float(np.linalg.norm(bent, 2)) ** 2 / len(found.observed))
        size, top = median(np.concatenate(norms), np.concatenate(shares)), float(np.median(tops))
        return size**0.5 if size > 0 else 1.0, top if top > 0 else 1.0

    def first(self, at: Array) -> Limits:
        """Return the limits of a first curvature, released at a position: its mean size over made-up rows.

        Parameters
        ----------
        at : (d,) array
            Interface parameters η.

        Notes
        -----
        Bounds that are too wide make them too large, which costs accuracy of that one matrix only: what it says of
        the size of rows sets the limits of all that is released later.
        """
        limits = self._unlimited
        if self.levels is not None:
            limits = replace(limits, basis=np.diag(self.levels.raised(np.ones(len(at)))))
        own, _ = self._curved(at, limits)
        edges = self.units(len(own))
        with np.errstate(all="ignore"):
            units = (own[start:end].reshape(-1, own.shape[2]) for start, end in pairwise(edges))
            sizes = np.array([np.sqrt(((one @ one.T) ** 2).sum()) for one in units])
        size = float(finite(sizes).mean())
        return replace(limits, clip_curvature=size if size > 0 else 1.0)

    def bend(self, at: Array) -> Array:
        """Return the curvature of made-up rows at a position, in the coordinates η / D: of levels its diagonal.

        Notes
        -----
        The bounds of continuous responses are moved, so that the median of each row is in their middle. Far from the
        truth it may lie beyond them; a clamped response is certain there and has no curvature at all, and walks of
        five parameters at ε = 100 ended up to 104 standard deviations off. Without bounds, heavy tails say too much.
        """
        own, _ = self._moved._curved(at, self._unlimited)
        own = evened(finite(own))
        return (own**2).sum(axis=(0, 1)) if self.levels is not None else self._summed(own)

    def shares(self, at: Array, relaxing: tuple[float, float] = (1.0, 1.0)) -> Array:
        """Return the variance of a whitened score over its slope at a position, (d,): 1 where nothing is clipped.

        Notes
        -----
        Of made-up rows, or persons with one, ..., m of them each, in *their* whitened coordinates, clipped as the rows
        of the table are in theirs: what share of the scores is clipped depends on how their norms vary, not on how
        large they are.
        """
        plain = self._unlimited
        own = finite(self._curved(at, plain)[0])
        curvature = self._summed(own)
        if not np.diag(curvature).all():
            return np.ones(len(at))
        limits = plain.whitened(curvature, len(self.units(len(own))) - 1).relaxed(*relaxing)
        own, roots = map(finite, self._curved(at, limits))
        slope, variance = (limits.curvature(self._summed(one)) for one in (own, roots))
        with np.errstate(all="ignore"):
            return np.nan_to_num(np.diag(variance) / np.diag(slope), nan=1.0)

    def narrowed(self, factor: float) -> Simulated:
        """Return the same rows, of which columns that only have bounds are drawn towards the middle of these."""
        columns = (
            narrowed(column, self.loose[place], factor) if place in self.loose else column
            for place, column in enumerate(self.columns)
        )
        return self._with(self.scale, columns=tuple(columns))

    def informed(self, moments: Moments, released: Array, deviation: float) -> Simulated:
        """Return made-up rows with the moments of the table, as far as they were released."""
        columns, known = moments.drawn(self.columns, released, deviation, np.random.default_rng(MOMENT_SEED))
        kept = (one.clamped(own) for one, own in zip(self.rows.interface.inspection.columns, columns, strict=True))
        loose = {place: middle for place, middle in self.loose.items() if place not in known}
        return self._with(self.scale, columns=tuple(kept), loose=loose)

    def mean(self, at: Array) -> Array:
        """Return the mean curvature of made-up rows at a position, (d, d), in the coordinates η / D."""
        own = self.spread(at)
        return self._summed(own) / len(own)

    def unidentified(self, at: Array) -> Array:
        """Return directions along which no made-up row changes, (d, k), orthonormal, in the coordinates η / D.

        Of ``a[g] + b[h]`` one: what a raises and b lowers by the same. Rows have no curvature there, whatever they are,
        and what is released of it is noise. None of levels, as few made-up rows meet each, and of `few` rows.
        """
        none = np.zeros((len(at), 0))
        if self.few or self.levels is not None or not idle(self.spread(at)).shape[1]:
            return none
        return idle(self.clipped(at, self._unlimited, MORE))  # fewer rows may lack what relates two parameters

    def spread(self, at: Array) -> Array:
        """Return factors of the curvatures of made-up rows at a position, (n_rows, q, d), in coordinates η / D."""
        return finite(self._curved(at, self._unlimited)[0])

    def widest(self, at: Array, limits: Limits) -> float:
        """Return a limit of curvatures that cuts next to nothing of those of made-up rows, over their mean trace.

        Parameters
        ----------
        at : (d,) array
            In the coordinates of the walk, η / D.
        limits : Limits
        """
        if self.rows.interface.inspection.domain.unit is not None:
            return math.inf
        free = replace(limits, clip_norm=UNLIMITED, clip_curvature=UNLIMITED, weighing=False)
        own = finite(self._curved(at, free)[0])
        grams = np.matmul(own, own.transpose(0, 2, 1))
        sizes = np.sort(np.sqrt((grams**2).sum(axis=(1, 2))))[::-1]
        trace = float(np.trace(grams, axis1=1, axis2=2).mean())
        if not trace > 0:
            return math.inf
        cut = np.cumsum(sizes) - np.arange(1, len(sizes) + 1) * sizes  # by a limit at each size
        place = int(np.searchsorted(cut, CUT * sizes.sum(), side="right")) - 1
        return ROOMY * float(sizes[max(place, 0)]) / trace

    def largest(self, at: Array, limits: Limits) -> float:
        """Return the largest norm of a score that was found at the ends of bounds, in the coordinates of some limits.

        Parameters
        ----------
        at : (d,) array
            In the coordinates of the walk, η / D.
        limits : Limits

        Notes
        -----
        Of rows, with numbers at the ends of their bounds and as they are made up, times how many of one person count:
        infinity where a column has no bounds.
        """
        inspection = self.rows.interface.inspection
        if any(one.bounds is None and np.dtype(one.leaf.type.dtype).kind == "f" for one in inspection.columns):
            return math.inf
        free = replace(limits, clip_norm=UNLIMITED, clip_curvature=UNLIMITED, weighing=False)
        scores = RowParts(rows=self.rows).scores(self._cornered, at, free) * UNLIMITED
        found = inspection.domain.rows_of_one * float(np.max(np.linalg.norm(scores, axis=1), initial=0.0))
        return found if np.isfinite(found) else math.inf

    @cached_property
    def _cornered(self) -> list[Array]:
        """Made-up rows, some numbers of which are moved to ends of their bounds."""
        rng, found = np.random.default_rng(CORNER_SEED), list[Array]()
        for column, one in zip(self.columns, self.rows.interface.inspection.columns, strict=True):
            some = np.resize(column, (CORNERS, *column.shape[1:])).copy()
            if one.bounds is not None:
                low, high = (np.broadcast_to(end, some.shape[1:]) for end in one.bounds)
                ends = np.where(rng.random(some.shape) < 0.5, low, high).astype(some.dtype)
                some = np.where(rng.random((CORNERS, *[1] * (some.ndim - 1))) < MOVED, ends, some)
            found.append(one.clamped(some))
        return found

    def clipped(self, at: Array, limits: Limits, times: int = 1) -> Array:
        """Return factors of clipped curvatures, of several times as many rows, in the coordinates of some limits.

        Of persons there is one array each, where limits are finite.
        """
        return finite(self._curved(at, limits, times)[0])

    def units(self, count: int) -> Array:
        """Return from which made-up row to the next those of one unit are: rows, or persons with 1, ..., m of them."""
        most = self.rows.interface.inspection.domain.rows_of_one
        turns = -(-2 * count // (most * (most + 1)))
        edges = np.cumsum([0, *np.tile(np.arange(1, most + 1), turns)])
        return np.append(edges[edges < count], count)

    @cached_property
    def _moved(self) -> Simulated:
        """The same rows, with the bounds of continuous responses around what the model expects."""
        interface = self.rows.interface
        moving = tuple(replace(one, moves=True) for one in interface.responses)
        return self._with(self.scale, rows=replace(self.rows, interface=replace(interface, responses=moving)))

    @cached_property
    def _unlimited(self) -> Limits:
        return Limits(
            scale=self.scale, clip_norm=UNLIMITED, clip_curvature=UNLIMITED, levels=self.levels, blocks=self.blocks
        )

    def _summed(self, factors: Array) -> Array:
        """Return the sum of curvatures, (d, d): its diagonal alone of levels, each of which few made-up rows meet."""
        if self.levels is None:
            return np.einsum("nqd,nqe->de", factors, factors)
        flat = factors.reshape(-1, factors.shape[2])
        alone = self.levels.groups < 0
        found = np.diag(self.levels.pooled((flat**2).sum(axis=0)))
        found[np.ix_(alone, alone)] = flat[:, alone].T @ flat[:, alone]
        return found

    def _curved(self, at: Array, limits: Limits, times: int = 1) -> tuple[Array, Array]:
        """Return factors of curvatures and of variances of scores, (n_rows, q, d) each; of persons if clipped."""
        count = max(min(max(FEW, PER_PARAMETER * len(at)), ON_THE_WAY), LEAST_PER_PARAMETER * len(at))
        found = self._expected(at, limits.scale, 0, times * count).turned(limits)
        with np.errstate(all="ignore"):
            if self.rows.interface.inspection.domain.unit is not None and limits.clip_norm < UNLIMITED:
                return added([found], self.units(len(found.observed)), limits, curved=True)[1:]
            part = found.clipped(limits)
            return tuple(
                np.matmul(factors.transpose(0, 2, 1), found.of_rows(found.jacobian))
                for factors in (part.factors, factored(part.variances))
            )

    def _expected(self, at: Array, scale: Array, start: int, count: int) -> Expected:
        """Evaluate some made-up rows; one of rows that are alike."""
        alone = self.rows.alike and self.rows.interface.inspection.domain.unit is None
        rows = [column[start : start + (1 if alone else count)] for column in self.columns]
        with np.errstate(all="ignore"):
            return expected(self.rows, rows, at, scale)

    def _scale(self, squares: Array) -> Array:
        with np.errstate(all="ignore"):
            middle = np.nanmedian(np.where(np.isfinite(squares), squares, np.nan), axis=0)
            mean = np.nanmean(np.where(np.isfinite(squares), squares, np.nan), axis=0)
        found = np.nan_to_num(np.where(middle > 0, middle, mean))
        for part in self.rows.interface.parts:  # what no made-up row has reached is as its neighbours are
            own = found[part.start : part.start + part.size]
            known = own[own > 0]
            own[own <= 0] = np.median(known) if len(known) else 1.0
        return np.asarray(found**-0.5)


def parameter_draws(interface: Interface, count: int, rng: np.random.Generator) -> Array:
    """Draw interface parameters from the prior: (count, d) array. Reads no private value."""
    new, at = interface_parameters(interface)
    drawn = draw_prior(new, rng, count)
    return at(drawn.positions, drawn.shapes)


def interface_parameters(interface: Interface) -> tuple[Model, Callable[[Array, Sequence[tuple[int, ...]]], Array]]:
    """Return the model without its rows, and its interface parameters as a function: (n_points, d) arrays.

    The function takes (n_points, n_elements) positions of value variables, raveled, and the shapes of these.
    """
    new, (flat,) = prior_model_with(interface.inspection, [interface.flat])
    function = plain_function(new.value_vars, new.replace_rvs_by_values([flat])[0])

    @np.errstate(all="ignore")
    def at(positions: Array, shapes: Sequence[tuple[int, ...]]) -> Array:
        return np.array([function(*parts) for parts in zip(*split(positions, shapes), strict=True)])

    return new, at


def _require_numbers(found: Sequence[Expected]) -> None:
    parts = [(one, one.responses.weights, one.responses.scores) for one in found]
    numbers = [
        one.of_rows(np.isfinite(weights).all(axis=1) & np.isfinite(scores).all(axis=(1, 2)))
        for one, weights, scores in parts
    ]
    share = float(np.mean(numbers))
    if share < LEAST_NUMBERS:
        what = f"{1 - share:.0%} of the rows that are simulated from its prior have scores that are not finite"
        remedy = "Give responses bounds within which they have a density, and free variables narrower priors."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])


def _mean_squares(one: Expected) -> Array:
    """Mean over rows of E s_j², (d,)."""
    with np.errstate(all="ignore"):
        found = np.einsum("nqd,nqp,npd->nd", one.jacobian, one.responses.moments, one.jacobian)
        return one.of_rows(finite(found)).mean(axis=0)


def _related(one: Expected) -> Array:
    """Return the sum over rows of the absolute curvatures of pairs of parameters, over that of both alone, (d, d)."""
    found = np.zeros((one.jacobian.shape[2],) * 2)
    with np.errstate(all="ignore"):
        for moments, jacobian in zip(one.of_rows(one.responses.moments), one.of_rows(one.jacobian), strict=True):
            found += np.abs(finite(jacobian.T @ moments @ jacobian))
        root = np.sqrt(np.diag(found))
        return np.nan_to_num(found / np.outer(root, root))


__all__ = ["Simulated", "interface_parameters", "parameter_draws"]
