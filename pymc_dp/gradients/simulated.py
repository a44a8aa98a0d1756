"""Public constants of a release, and how curvatures change on the way, from rows that are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.gradients.clipping import Responses
from pymc_dp.gradients.interface import Interface
from pymc_dp.gradients.row_parts import Expected, Limits, expected
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.inspection.plain import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.husk import husk, husk_with
from pymc_dp.transforms.simulated_rows import draw_covariates, draw_prior, not_drawn

DRAWS, ROWS = 100, 60
"""Draws from the prior, and rows for each."""
ON_THE_WAY = 400
"""Rows by which curvatures are carried from point to point."""
LEAST_NUMBERS = 0.5
"""Least share of made-up rows with scores that are numbers."""
UNLIMITED = 1e300


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
    """

    rows: RowScores
    parameters: Array
    columns: tuple[Array, ...]

    @classmethod
    def of(cls, rows: RowScores, covariates: Mapping[str, Any], rng: np.random.Generator) -> Simulated:
        """Make up rows. Reads no private value.

        Parameters
        ----------
        rows : RowScores
        covariates : mapping of str to array or distribution
            Of private columns that no likelihood observes, as `transforms.simulated_rows.draw_tables` takes them.
        rng : numpy.random.Generator

        Raises
        ------
        UnsupportedModelError
            Where a private covariate has neither a distribution nor bounds, or the prior cannot be drawn from.
        """
        inspection = rows.interface.inspection
        if problems := not_drawn(husk(inspection)):
            raise UnsupportedModelError(problems)
        columns = draw_covariates(inspection, covariates, n_rows=DRAWS * ROWS, rng=rng)
        return cls(rows=rows, parameters=parameter_draws(rows.interface, DRAWS, rng), columns=columns)

    def limits(self) -> Limits:
        """Return D, C and C_F: see Notes.

        Notes
        -----
        D_j = (median over the prior of the mean over rows of E s_j²)^-1/2, C the median of ‖D s‖, C_F the .75 quantile
        of ‖f‖_F, f the curvature of a row whose score is clipped to C. A C_F that is too large makes intervals too
        narrow, one that is too small too wide.

        Raises
        ------
        UnsupportedModelError
            If expectations over the responses of most made-up rows are no numbers: such rows would add nothing.
        """
        scale = self._scale()
        found = list(self._at_draws(scale))
        _require_numbers(found)
        norms = [np.sqrt(np.maximum(_squares(one), 0.0)) for one in found]
        weights = [one.responses.weights for one in found]
        clip_norm = _quantile(np.concatenate(norms).ravel(), np.concatenate(weights).ravel(), 0.5)
        open_limits = Limits(scale=scale, clip_norm=clip_norm, clip_curvature=UNLIMITED)
        curvatures = np.concatenate([_curvatures(one, open_limits) for one in found])
        return Limits(
            scale=scale, clip_norm=clip_norm, clip_curvature=_quantile(curvatures, np.ones(len(curvatures)), 0.75)
        )

    def diagonals(self, at: Array, limits: Limits) -> tuple[Array, Array]:
        """Return the diagonals of slope and variance of the sum of scores over made-up rows at a position, (d,) each.

        Parameters
        ----------
        at : (d,) array
            Interface parameters η; the diagonals are in the coordinates η / D.
        limits : Limits
        """
        with np.errstate(all="ignore"):
            rows = [column[:ON_THE_WAY] for column in self.columns]
            part = _without_padding(expected(self.rows, rows, at, limits.scale), len(rows[0]))
            found = part.clipped(limits)
            own = np.matmul(found.factors.transpose(0, 2, 1), part.jacobian)
            slopes = (own**2).sum(axis=1)
            spread = np.einsum("nqd,nqp,npd->nd", part.jacobian, found.variances, part.jacobian)
        return _finite(slopes).sum(axis=0), _finite(spread).sum(axis=0)

    def shares(self, at: Array, limits: Limits) -> Array:
        """Return the variance of a score over its slope at a position, (d,): 1 where nothing is clipped, never more."""
        slope, variance = self.diagonals(at, limits)
        with np.errstate(all="ignore"):
            return np.nan_to_num(variance / slope, nan=1.0)

    def _scale(self) -> Array:
        ones = np.ones(self.rows.interface.size)
        squares = np.array([_mean_squares(one) for one in self._at_draws(ones)])
        with np.errstate(all="ignore"):
            middle = np.nanmedian(np.where(np.isfinite(squares), squares, np.nan), axis=0)
            mean = np.nanmean(np.where(np.isfinite(squares), squares, np.nan), axis=0)
        found = np.nan_to_num(np.where(middle > 0, middle, mean))
        for part in self.rows.interface.parts:  # what no made-up row has reached is as its neighbours are
            own = found[part.start : part.start + part.size]
            known = own[own > 0]
            own[own <= 0] = np.median(known) if len(known) else 1.0
        return np.asarray(found**-0.5)

    def _at_draws(self, scale: Array) -> list[Expected]:
        found = []
        for place, at in enumerate(self.parameters):
            own = [column[place * ROWS : (place + 1) * ROWS] for column in self.columns]
            with np.errstate(all="ignore"):
                found.append(_without_padding(expected(self.rows, own, at, scale), ROWS))
        return found


def parameter_draws(interface: Interface, count: int, rng: np.random.Generator) -> Array:
    """Draw interface parameters from the prior: (count, d) array. Reads no private value."""
    new, (flat,) = husk_with(interface.inspection, [interface.flat])
    positions, _ = draw_prior(new, rng, count)
    start = new.initial_point(0)
    shapes = [np.shape(start[value.name]) for value in new.value_vars]
    ends = np.cumsum([int(np.prod(shape, dtype=int)) for shape in shapes])[:-1]
    function = plain_function(new.value_vars, new.replace_rvs_by_values([flat])[0])
    with np.errstate(all="ignore"):
        return np.array(
            [
                function(*(part.reshape(shape) for part, shape in zip(np.split(one, ends), shapes, strict=True)))
                for one in positions
            ]
        )


def _require_numbers(found: Sequence[Expected]) -> None:
    parts = [one.responses for one in found]
    numbers = [np.isfinite(one.weights).all(axis=1) & np.isfinite(one.scores).all(axis=(1, 2)) for one in parts]
    share = float(np.mean(numbers))
    if share < LEAST_NUMBERS:
        what = f"of rows that are made up from its prior, {1 - share:.0%} have scores that are no numbers"
        remedy = "Give responses bounds within which they have a density, and free variables narrower priors."
        raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])


def _without_padding(one: Expected, count: int) -> Expected:
    return Expected(
        jacobian=one.jacobian[:count],
        gram=one.gram[:count],
        responses=Responses(weights=one.responses.weights[:count], scores=one.responses.scores[:count]),
        observed=one.observed[:count],
    )


def _squares(one: Expected) -> Array:
    """Squared norms of the scores of all values of the responses, (n_rows, n_nodes)."""
    with np.errstate(all="ignore"):
        return np.einsum("nbi,nij,nbj->nb", one.responses.scores, one.gram, one.responses.scores)


def _mean_squares(one: Expected) -> Array:
    """Mean over rows of E s_j², (d,)."""
    with np.errstate(all="ignore"):
        moment = np.einsum("nb,nbi,nbj->nij", one.responses.weights, one.responses.scores, one.responses.scores)
        return _finite(np.einsum("nqd,nqp,npd->nd", one.jacobian, moment, one.jacobian)).mean(axis=0)


def _curvatures(one: Expected, limits: Limits) -> Array:
    """Frobenius norms of the curvatures of rows."""
    with np.errstate(all="ignore"):
        factors = one.clipped(limits).factors
        inner = np.matmul(np.matmul(factors.transpose(0, 2, 1), one.gram), factors)
        return np.sqrt((inner**2).sum(axis=(1, 2)))


def _quantile(values: Array, weights: Array, level: float) -> float:
    """Return the quantile of weighted values, of those that are numbers; 1 where there is none above 0."""
    kept = np.isfinite(values) & np.isfinite(weights) & (weights > 0)
    if not kept.any():
        return 1.0
    order = np.argsort(values[kept])
    total = np.cumsum(weights[kept][order])
    place = min(int(np.searchsorted(total, level * total[-1])), len(order) - 1)
    found = float(values[kept][order][place])
    return found if found > 0 else 1.0


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)


__all__ = ["Simulated", "parameter_draws"]
