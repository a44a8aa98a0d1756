"""Exact draws from posteriors of rows held one by one: from a grid, or by rejection where they are log-concave."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self, override

import numpy as np

from pymc_dp.draws.log_concave import LogConcave, RowCurvatures
from pymc_dp.draws.log_concave_ball import draw_in_ball
from pymc_dp.draws.log_concave_box import draw_in_box, worst_acceptance_in_box
from pymc_dp.draws.log_concave_shells import worst_acceptance
from pymc_dp.inspection.priors import BALL, OWN_TRANSFORM
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.certificates import Certificates
from pymc_dp.step_methods.ops.grid import GridDraws, by_name, grid_of
from pymc_dp.step_methods.ops.row_density import Held, RowDensity
from pymc_dp.step_methods.ops.row_proofs import Fit
from pymc_dp.step_methods.row_functions import Bound, NodeBound, Nodes

CELLS = {1: 4096, 2: 256}
"""Cells per axis."""
MOST_WORK = 1e13
"""Multiplications that a draw may need in the worst case, over all data sets; typical ones need far fewer."""

MOST_MOMENTS = 4e12
"""Number of rows times the fourth power of the dimension up to which rows are looked at one by one."""
NORMAL = ("normal", "halfnormal")


@dataclass(frozen=True, kw_only=True, eq=False)
class RowGridPosterior(GridDraws):
    """A posterior on a grid, of rows that are held one by one."""

    density: RowDensity
    bound: Bound | None
    nodes: Nodes | None = None

    @classmethod
    def of(cls, density: RowDensity, cells: int | None, fit: Fit | None) -> Self | str:
        """Lay out the grid, or say what is in the way. Nothing is enforced on rows without a `fit`."""
        priors = density.priors
        if density.dimension > 2 or any(prior.distribution == "dirichlet" for prior in priors):
            return f"a grid needs at most 2 scalar parameters (there are {density.dimension})"
        if any(prior.distribution == BALL for prior in priors):
            return "the cells of a grid do not form a ball"
        if any(prior.distribution.endswith(OWN_TRANSFORM) for prior in priors):
            return "a grid needs priors without transforms set by hand"
        if not all(prior.bounded for prior in priors):
            return "a grid needs bounded parameters"
        points, widths = grid_of(priors, cells or CELLS[density.dimension])
        bound = None if fit is None else fit.over(points)
        return cls(priors=priors, density=density, points=points, widths=widths, bound=bound)

    def on(self, nodes: Nodes, charge: float) -> Self:
        """Return the same for rows that count for public nodes, where `charge` is per unit of a metric."""
        return replace(self, nodes=nodes, bound=NodeBound(nodes=nodes, most=charge))

    def read(self) -> Held:
        """Hold the rows, or count them at nodes. Reads private data."""
        return self.density.read(self.nodes)

    @override
    def log_densities(self, held: Held) -> tuple[Array, Array]:
        return self.density.held_sums(self.points, held, self.bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class LogConcavePosterior:
    """A posterior proved log-concave, drawn by rejection from a proved envelope about its mode."""

    density: RowDensity
    certificates: Certificates
    n_rows: int
    bound: Bound | None = None
    words = "independent and exact: rejection from a proved envelope of the log-concave posterior"
    exact = True

    @classmethod
    def of(cls, density: RowDensity, certificates: Certificates, n_rows: int) -> Self | str:
        """Check what the envelope needs, or say what is in the way."""
        if not certificates.concave or not certificates.log_concave_prior:
            return "; ".join(certificates.reasons) or "log-concavity is not proved"
        if density.dimension > 1 and not certificates.modulus > 0:
            return "; ".join(certificates.reasons) or "the prior is not strongly log-concave"
        if any(prior.distribution == "dirichlet" or OWN_TRANSFORM in prior.distribution for prior in density.priors):
            return "a simplex, or a prior with a transform set by hand, has no density on all real numbers"
        if any(prior.distribution == BALL for prior in density.priors):
            if len(density.priors) > 1 or len(density.priors[0].shape) > 1:
                return "a vector in a ball is drawn where it is the only parameter (an intercept: a column of ones)"
            return cls(density=density, certificates=certificates, n_rows=n_rows)
        if density.dimension > 1 and any(prior.distribution not in NORMAL for prior in density.priors):
            return "rejection in several dimensions needs normal priors, truncated or not"
        return cls(density=density, certificates=certificates, n_rows=n_rows)

    def within(self, fit: Fit) -> Self:
        """Return the same with a bound enforced on rows; the box of the priors is bounded."""
        return replace(self, bound=fit.about(self._start()[None]))

    def obstacle(self, inverse: float, temper_prior: bool) -> str:
        """Say whether a draw could take too long for some data set, from public numbers; empty if not."""
        dimension = self.density.dimension
        if dimension == 1:
            return ""
        share = self.share(inverse, (inverse if temper_prior else 1.0) * self._strong())
        if math.log(self.n_rows + 1) + math.log(dimension) - share <= math.log(MOST_WORK):
            return ""
        tries = f"1e{-share / math.log(10):.0f}" if math.isfinite(share) else "any number of"
        return (
            f"rejection may need {tries} proposals for {dimension} parameters and {self.n_rows} rows; fewer covariates "
            "or a narrower prior need fewer"
        )

    def share(self, inverse: float, strong: Array) -> float:
        """Return the logarithm of a share of the proposals that is accepted at least, whatever the data."""
        n_rows, curvature = self.n_rows, self.certificates.curvature
        if np.isfinite(self._box()).any():
            return worst_acceptance_in_box(
                n_rows=n_rows, inverse_temperature=inverse, curvature=curvature, strong=strong
            )
        return worst_acceptance(
            n_rows=n_rows,
            inverse_temperature=inverse,
            curvature=curvature,
            radius=1.0,
            strong=strong,
            self_concordance=self._self_concordance(),
            dimension=self.density.dimension,
        )

    def read(self) -> Held:
        """Hold the rows. Reads private data."""
        return self.density.read()

    def draw(self, rng: np.random.Generator, held: Held, inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Draw all free variables from the posterior with the likelihood to the power `inverse`."""
        power = inverse if temper_prior else 1.0

        def value(points: Array) -> Array:
            prior, likelihood = self.density.held_sums(points, held, self.bound)
            return power * prior + inverse * likelihood

        def gradient(point: Array) -> Array:
            prior, likelihood = self.density.slopes(point, held)
            return power * prior + inverse * likelihood

        rows = self._rows(held, inverse)

        def hessian(point: Array) -> Array:
            return inverse * self.density.bend(point, held) if rows is None else -rows(point).curvature

        radius = self.density.priors[0].radius
        low, high = self._box() if radius is None else (None, None)
        strong = power * self._strong() if self.density.dimension > 1 else np.ones(1)
        target = LogConcave(
            dimension=self.density.dimension,
            value=value,
            gradient=gradient,
            hessian=hessian,
            strong=strong,
            self_concordance=self._self_concordance(),
            rows=rows,
            low=low,
            high=high,
        )
        with np.errstate(all="ignore"):  # a warning could depend on a row
            if radius is not None:
                return by_name(self.density.priors, draw_in_ball(rng, target, radius))
            return by_name(self.density.priors, draw_in_box(rng, target, self._start()))

    def _rows(self, held: Held, inverse: float) -> Callable[[Array], RowCurvatures] | None:
        """Return what tightens the envelope, by orders of magnitude in ten dimensions or more."""
        moments = (len(held[1]) + 1) * self.density.dimension**4
        predictor = self.density.predictor if self.density.dimension > 1 and moments < MOST_MOMENTS else None
        return None if predictor is None else lambda point: predictor.at(point, inverse, *held)

    def _self_concordance(self) -> float | None:
        found = self.certificates.self_concordance
        return found if math.isfinite(found) else None

    def _strong(self) -> Array:
        return np.concatenate([self.certificates.strong[prior.name].ravel() for prior in self.density.priors])

    def _box(self) -> tuple[Array, Array]:
        priors = self.density.priors
        low = [np.full(p.shape, -np.inf) if p.low is None else p.low for p in priors]
        high = [np.full(p.shape, np.inf) if p.high is None else p.high for p in priors]
        return tuple(np.concatenate([end.ravel() for end in ends]).astype(float) for ends in (low, high))  # type: ignore[return-value]

    def _start(self) -> Array:
        """Return a public point inside of all supports: 0, or what lies inside of the bounds."""
        low, high = self._box()
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isfinite(low) & np.isfinite(high), low / 2 + high / 2, 0.0)
        return np.where(np.isfinite(middle) & (low < middle) & (middle < high), middle, _inside(low, high))


def _inside(low: Array, high: Array) -> Array:
    return np.where(np.isfinite(low), low + 1.0, np.where(np.isfinite(high), high - 1.0, 0.0))


__all__ = ["LogConcavePosterior", "RowGridPosterior"]
