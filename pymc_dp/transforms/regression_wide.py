"""Density of the released sums of a regression with many private predictors: errors in variables, without latents.

Let z = (1[c], t) with Gram matrix G, and let u have, over the rows of a cell, the best linear prediction γᵀz. With the
Gaussian closure of `responses`, η ~ N(m_c, v), m_c = a_c + x̄_cᵀβ, v = βᵀWβ / n,

- slopes of γ are k β, k = E g'(η) over all rows, and its constants E_c g(η) - k (m_c - a_c);
- Σ z u given the parameters and G is normal around G γ with covariance s G, s the residual variance of a row.

The release tells of G a mean Ĝ and variances C of the entries (`gram_estimate`). What (G - Ĝ) γ adds is

    B(γ) = diag(C γ²) + (C - diag C) ∘ γγᵀ

so that the noised Σ z u is N(Ĝγ, s Ĝ + N + B(γ)), N the variance of its own noise, that of Laplace noise included. A
Cholesky factor per gradient is spared: B is taken for proportional to its mean at a first estimate of γ, with
N + B(γ) = ρ(γ) (N + B_0), ρ = tr((N + B_0)⁻¹ (N + B(γ))) / D, and s Ĝ + ρ (N + B_0) is diagonal in one basis for all
parameters. This is an approximation; see `mechanisms.record` for how far its intervals cover, and
tests/transforms/test_regression_wide.py.

References
----------
Fuller (1987), Measurement Error Models, section 1.2; Bernstein, Sheldon (2019), doi 10.48550/arXiv.1910.13879,
section 3.3 (the same with fourth moments); Stein (1981), Ann. Statist. 9(6), lemma 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dp.families.gram import GramSums
from pymc_dp.families.normal_sums import LOG_2PI
from pymc_dp.families.polynomial import Response
from pymc_dp.inspection.rows import Array
from pymc_dp.mechanisms.noise import NOISES
from pymc_dp.transforms.gram_estimate import GramEstimate, gram_of_cells, gram_of_predictors
from pymc_dp.transforms.gram_layout import GramLayout
from pymc_dp.transforms.observed import held
from pymc_dp.transforms.responses import row_moments

STEPS, HALF = 60, 0.5
"""Of the first estimate: damped fixed point iterations."""
LEAST_NOISE = 1e-6
LEAST_RESIDUAL = 0.01


def errors_of(variances: Array, products: Array) -> Array:
    """B, given variances C of the entries of a Gram matrix and (the mean of) γγᵀ."""
    found: Array = variances * products
    np.fill_diagonal(found, variances @ np.diag(products))
    return found


def first_errors(estimate: GramEstimate, seen: Array, square: float, noise: float) -> Array:
    """B_0, the mean of B under a first estimate of γ: normal, the variance of its slopes fitted.

    Parameters
    ----------
    seen : (D,) array
        The noised Σ z u.
    square : float
        Mean of u² over rows, or what it is at most.
    noise : float
        Variance of the noise.
    """
    gram, count, n_slopes = estimate.gram, len(estimate.gram), len(estimate.within)
    slopes = np.arange(count) >= count - n_slopes
    line, products, prior = np.zeros(count), np.zeros((count, count)), 1.0
    for _ in range(STEPS):
        residual = max(square - line @ gram @ line / estimate.sizes.sum(), LEAST_RESIDUAL)
        spread = residual * gram + errors_of(estimate.variances, products) + max(noise, LEAST_NOISE) * np.eye(count)
        solved = np.linalg.solve(spread, gram)
        covariance = np.linalg.inv(gram @ solved + np.diag(slopes / prior))
        line = (1 - HALF) * line + HALF * covariance @ (solved.T @ seen)
        products = np.outer(line, line) + covariance
        # Two slopes of the size of the bounds are added, so that no prior is a point.
        prior = (1 - HALF) * prior + HALF * (np.diag(products)[slopes].sum() + 2) / (n_slopes + 2)
    return errors_of(estimate.variances, products)


@dataclass(frozen=True, kw_only=True, eq=False)
class Basis:
    """Where N + B_0 is the identity and Ĝ is diagonal.

    Attributes
    ----------
    values : (D,) array
        The diagonal of Ĝ.
    forth, back : (D, D) arrays
        A vector of sums x is ``forth @ x`` here, and ``Ĝ γ`` is ``values * (back @ γ)``.
    mixed : (D, D) array
        ``forth @ B_0``.
    trace : float
        Of the inverse of N + B_0.
    form : (D, D) array
        γᵀ form γ is the trace of (N + B_0)⁻¹ B(γ).
    log_root : float
        Half of the log determinant of N + B_0.
    """

    values: Array
    forth: Array
    back: Array
    mixed: Array
    trace: float
    form: Array
    log_root: float

    @classmethod
    def of(cls, estimate: GramEstimate, errors: Array, noise: float) -> Basis:
        """Diagonalise."""
        root = np.linalg.cholesky(errors + max(noise, LEAST_NOISE) * np.eye(len(errors)))
        inverse = np.linalg.inv(root)
        values, vectors = np.linalg.eigh(inverse @ estimate.gram @ inverse.T)
        precision = inverse.T @ inverse
        form = precision * estimate.variances
        np.fill_diagonal(form, estimate.variances @ np.diag(precision))
        return cls(
            values=np.maximum(values, 0.0),
            forth=vectors.T @ inverse,
            back=vectors.T @ root.T,
            mixed=vectors.T @ inverse @ errors,
            trace=float(np.trace(precision)),
            form=form,
            log_root=float(np.log(np.diag(root)).sum()),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class WideBlock:
    """Constants of the density of one vector (Σ z u, Σ u²), D + 1 numbers or D.

    Attributes
    ----------
    estimate : GramEstimate
    places : (D or D + 1,) array
        Where the numbers lie in the released vector; without a constant, D = d.
    noise : float
        Variance of the noise of every released sum.
    errors : (D, D) array
        B_0, at the first estimate.
    """

    estimate: GramEstimate
    places: Array
    noise: float
    errors: Array

    @classmethod
    def of(cls, estimate: GramEstimate, places: Array, noise: float, value: Array) -> WideBlock:
        """Find the first estimate from the released `value`."""
        count = len(estimate.gram)
        seen = value[places]
        square = float(seen[count]) if len(places) > count else estimate.sizes.sum()
        errors = first_errors(estimate, seen[:count], square / estimate.sizes.sum(), noise)
        return cls(estimate=estimate, places=places, noise=noise, errors=errors)

    @property
    def count(self) -> int:
        """Number D of columns of z."""
        return len(self.estimate.gram)

    @cached_property
    def basis(self) -> Basis:
        """Where the covariance is diagonal."""
        return Basis.of(self.estimate, self.errors, self.noise)

    def logp(
        self, value: TensorVariable, response: Response, source: Any, parameters: tuple[TensorVariable, ...]
    ) -> TensorVariable:
        """Log density at the released vector, of scaled parameters a (C,), w (d,), sd (): () tensor."""
        a, w, sd = parameters
        known, base, errors = _shared(self.estimate), _shared(self.basis), held(self.errors)
        seen, before = value[self.places], pt.zeros(self.count - len(self.estimate.within))
        sizes, n = known.sizes, known.sizes.sum()
        shift = known.means @ w
        spread = (w * (known.within @ w)).sum() / n
        row = row_moments(response, source, a + shift, spread + pt.zeros_like(shift), sd)

        def pooled(item: TensorVariable) -> TensorVariable:
            return (sizes * item).sum() / n

        def of_z(constants: TensorVariable, slopes: TensorVariable) -> TensorVariable:
            return constants @ known.constant + pt.concatenate([before, slopes])

        slope, residual = pooled(row.slope), pooled(row.variance)
        line = of_z(row.mean - slope * shift, slope * w)
        ratio = (self.noise * base.trace + (line * (base.form @ line)).sum()) / self.count
        variances = residual * base.values + ratio
        fitted = base.values * (base.back @ line)
        left = base.forth @ seen[: self.count] - fitted
        logp = -0.5 * (left**2 / variances + pt.log(variances)).sum() - base.log_root - 0.5 * self.count * LOG_2PI
        if len(self.places) == self.count:
            return logp
        joint = pooled(row.joint_slope)
        along = base.values * (base.back @ of_z(row.joint - joint * shift, joint * w)) + base.mixed @ line
        mean = n * pooled(row.square) + (along / variances * left).sum()
        variance = n * pooled(row.square_variance) + self.noise + (line * (errors @ line)).sum()
        variance = pt.maximum(variance - (along**2 / variances).sum(), self.noise + LEAST_NOISE)
        return logp - 0.5 * ((seen[self.count] - mean) ** 2 / variance + pt.log(variance) + LOG_2PI)


@dataclass(frozen=True, kw_only=True, eq=False)
class WideRegression:
    """Distribution of the sums with the response in one released vector, given the sums of predictors in it.

    To sample from its posterior is post-processing of the release: everything here was computed from that.

    Attributes
    ----------
    statistic : GramSums
    response : Response
    blocks : tuple of WideBlock
        One, or with slopes `apart` one per cell.
    scale : float
        Of the noise of every sum.
    """

    statistic: GramSums
    response: Response
    blocks: tuple[WideBlock, ...]
    scale: float

    @classmethod
    def of(
        cls, statistic: GramSums, response: Response, value: Array, sizes: Array, *, scale: float, noise: str
    ) -> WideRegression:
        """Compute constants from a release.

        Parameters
        ----------
        value : (1, count) array
            The release, in pure numbers.
        sizes : (n_cells,) array
            Public sizes; one number, the number of rows or a bound on it, where sizes were released.
        scale : float
            Of the noise of every sum.
        noise : {"gaussian", "laplace"}
        """
        if statistic.known:
            raise ValueError("Public predictors have an exact density: use RegressionDensity.")
        layout, seen, variance = GramLayout(statistic=statistic), value[0], NOISES[noise].deviation(scale) ** 2
        rows = np.broadcast_to(sizes, len(statistic.cells)).astype(float)
        if not statistic.sizes_known:
            rows = np.clip(seen[statistic.parts["sizes"]], 1.0, rows)
        cells = np.arange(len(rows))
        groups = [[cell] for cell in cells] if statistic.apart else [list(cells)]
        blocks = []
        for group, second, places in zip(groups, layout.second, layout.responses, strict=True):
            products = _symmetric(seen[second[: layout.pairs]], statistic.width)
            if statistic.constant:
                first = seen[layout.first[group, :-1]]
                found = gram_of_cells(products, variance, first, rows[group], sizes_noised=not statistic.sizes_known)
            else:
                found = gram_of_predictors(products, variance, float(rows[group].sum()))
            blocks.append(WideBlock.of(found, places, variance, seen))
        return cls(statistic=statistic, response=response, blocks=tuple(blocks), scale=scale)

    @property
    def signature(self) -> str:
        """Gufunc signature: intercepts, slopes, dispersion and a row of scales, to the released row."""
        return f"(c),{'(c,d)' if self.statistic.apart else '(d)'},(),(k)->(k)"

    def logp(
        self, value: TensorVariable, intercepts: TensorVariable, slopes: TensorVariable, dispersion: Any = 1.0, *_: Any
    ) -> TensorVariable:
        """Log density of the sums with the response, given a released vector (1, count): (1,) tensor.

        Parameters
        ----------
        intercepts : (n_cells,) tensor
        slopes : (d,) tensor, or (n_cells, d) where slopes are `apart`
            Both in natural units.
        dispersion : () tensor
            Standard deviation of a normal response; not used for others.
        """
        a, w, sd = pt.as_tensor(intercepts), pt.as_tensor(slopes), pt.as_tensor(dispersion, dtype="float64")
        a, w = a.reshape((-1,)), w.reshape((len(self.statistic.cells), -1) if self.statistic.apart else (-1,))
        sd = sd.reshape(())
        a, w, sd = self.statistic.scaled(a, w, sd, normal=self.response.likelihood == "normal")
        source, total = self.statistic.response, pt.zeros(())
        for cell, block in enumerate(self.blocks):
            given = (a[cell : cell + 1], w[cell], sd) if self.statistic.apart else (a, w, sd)
            total += block.logp(value[0], self.response, source, given)
        return total[None]

    def random(self, *_: Array, rng: np.random.Generator, size: Any = None) -> Array:
        """Refuse: predictors have no distribution here."""
        raise NotImplementedError("Draws of a release need a model of the predictors, which more than 20 do not have.")


def _shared(found: Any) -> Any:
    """Hold every number of a dataclass as a shared value."""
    return replace(found, **{name: held(item) for name, item in vars(found).items()})


def _symmetric(upper: Array, count: int) -> Array:
    found = np.zeros((count, count))
    found[np.triu_indices(count)] = upper
    return found + np.triu(found, 1).T


__all__ = ["Basis", "WideBlock", "WideRegression", "errors_of", "first_errors"]
