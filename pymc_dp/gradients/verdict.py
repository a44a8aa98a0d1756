"""Whether a posterior of noised gradients can be relied on: by released numbers and public ones alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from pymc_dp._display import scalar_names, shorten
from pymc_dp.gradients.approximations import UNCALIBRATED
from pymc_dp.gradients.bent import APART
from pymc_dp.gradients.curvature import MOST_FULL
from pymc_dp.gradients.interface import Interface
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.misfit import LEVEL, Misfit
from pymc_dp.gradients.private_model import Quadratic
from pymc_dp.gradients.walk import Found
from pymc_dp.inspection.rows import Array
from pymc_dp.release.verdict import Reason

FARTHEST = 4.0
"""Standard deviations, root mean square over parameters, from a walk's end to the posterior mean where it arrived."""
MOVED, FAR = 0.5, 3.0
"""How far a posterior mean may move, in standard deviations, if the gradients from farthest away are left out."""
BEYOND = 3.0
"""Times as far as noise moves it if so many gradients are left out."""
DISPERSED = 1.5
"""Times as much as the model says that scores may vary."""
CUT = 0.01
"""Share of responses that may be at a bound beyond what the model expects."""
WIDE, PRIOR = 3.0, 0.8
"""Times the standard deviation without privacy, and share of the prior's, above which a parameter is named."""
NAMED = 6


def reasons(
    found: Found,
    quadratic: Quadratic,
    far: float,
    prior: Prior,
    labels: Sequence[str],
    *,
    local: bool,
    robust: bool,
) -> list[Reason]:
    """Say why the posterior should not simply be relied on.

    Parameters
    ----------
    found : Found
    quadratic : Quadratic
        The likelihood that is published.
    far : float
        How far apart means with bent and with straight scores are, in standard deviations.
    prior : Prior
        Of the path, in the coordinates of the walk.
    labels : sequence of str
        Names of the parameters.
    local : bool
        Whether the posterior is within a trust region around the end of the walk.
    robust : bool
        Whether the variance of scores was released.

    Notes
    -----
    χ² says whether the gradients are those of one quadratic. That alone warned of fine releases: what counts is
    whether the posterior mean moves if the gradients from farthest away are left out.

    **Guarantee.** Post-processing.
    """
    if local:
        return list(_fit(found.misfit, robust=robust))
    many = list(_many(len(found.end)))
    plain = replace(quadratic, scale=np.ones(len(found.end)))
    try:
        mean, covariance = plain.posterior(prior.mean, prior.precision)
        said = [*_arrived(found, mean, covariance), *_straight(found, quadratic, covariance), *_bent(far)]
        wide = list(_wide(found, covariance, prior, labels))
    except (np.linalg.LinAlgError, ArithmeticError, ValueError):
        what = "Released numbers are too large or too small to compute a posterior from"
        remedy = "Rescale the columns, so that all bounds are of a similar size, and release again"
        return [Reason(word="do not use", what=what, remedy=remedy)]
    return [*said, *_fit(found.misfit, robust=robust), *many, *wide]


def _many(size: int) -> Iterator[Reason]:
    if size > MOST_FULL:
        remedy = "Use fewer groups, or see with dp.rehearse(idata) by how much to widen intervals, at no cost"
        yield Reason(word="doubtful", what=UNCALIBRATED.format(size), remedy=remedy)


def _arrived(found: Found, mean: Array, covariance: Array) -> Iterator[Reason]:
    away = mean - found.end
    far = float(np.sqrt(away @ np.linalg.solve(covariance, away) / len(away)))
    if not far <= FARTHEST:
        what = (
            f"The iterations ended {far:.3g} standard deviations away from the posterior mean, and the log-likelihood "
            "is only known where they ended"
        )
        remedy = "Use narrower priors, fewer parameters or a larger ε; dp.plan simulates each of them at no cost"
        yield Reason(word="do not use", what=what, remedy=remedy)


def _straight(found: Found, quadratic: Quadratic, covariance: Array) -> Iterator[Reason]:
    """Leave out the gradients from farthest away, if they do not agree with one quadratic."""
    if not found.too_curved or len(found.path) < 4:
        return
    weights = np.array([weight for weight, *_ in found.path])
    slopes = np.array([gradient + found.curvature @ at for _, at, gradient in found.path])
    away = np.array([float((at - found.end) @ found.curvature @ (at - found.end)) for _, at, _ in found.path])
    near = away <= np.median(away)
    moved = weights[near] @ slopes[near] / weights[near].sum() - weights @ slopes / weights.sum()
    gain = covariance @ np.linalg.solve(quadratic.covariance, quadratic.curvature).T
    shift, left = gain @ moved, float(weights[near].sum() / weights.sum())
    far = float(np.sqrt(shift @ np.linalg.solve(covariance, shift) / len(shift)))
    by_noise = float(np.trace(np.linalg.solve(covariance, gain @ found.noise @ gain.T))) * (1 / left - 1) / len(shift)
    if far > max(MOVED, BEYOND * math.sqrt(by_noise)):
        what = (
            f"Released gradients disagree with one quadratic (χ² = {found.chi_squared:.3g} per degree of freedom). "
            f"Estimates move by {far:.2g} standard deviations if the gradients from farthest away are left out"
        )
        remedy = "Choose priors that leave out implausible values, so that fewer gradients are taken far away"
        yield Reason(word="do not use" if far > FAR else "doubtful", what=what, remedy=remedy)


def _bent(far: float) -> Iterator[Reason]:
    if far > APART:
        what = f"Two approximations of the log-likelihood give estimates that are {far:.3g} standard deviations apart"
        remedy = "More rows or a larger ε make the posterior narrower, so that both agree"
        yield Reason(word="doubtful", what=what, remedy=remedy)


def _fit(misfit: Misfit | None, *, robust: bool) -> Iterator[Reason]:
    if misfit is None:
        return
    if not robust and misfit.dispersion - LEVEL * misfit.deviation > DISPERSED:
        what = (
            f"Rows vary {misfit.dispersion:.2g} times as much as the model says. With or without privacy, its "
            f"intervals are too narrow by a factor of about {misfit.dispersion**0.5:.2g}"
        )
        remedy = "Use a likelihood with a variance of its own (NegativeBinomial, StudentT), or Gradients(robust=True)"
        yield Reason(word="doubtful", what=what, remedy=remedy)
    at = [
        f"about {min(share, 1.0):.0%} of the responses are at their {end} bound"
        for share, end in zip(misfit.at_bounds, ("lower", "upper"), strict=True)
        if share - LEVEL * misfit.share_deviation > CUT
    ]
    if at:
        what = f"Beyond what the model expects, {' and '.join(at)}: estimates are those of the clamped responses"
        remedy = "Use a wider bound, if one is public, or a likelihood that knows the bound (pm.Censored)"
        yield Reason(word="doubtful", what=what, remedy=remedy)


def _wide(found: Found, covariance: Array, prior: Prior, labels: Sequence[str]) -> Iterator[Reason]:
    own = np.sqrt(np.diag(covariance))
    whole = np.sqrt(np.diag(np.linalg.inv(prior.precision + found.curvature)))
    before = np.sqrt(np.diag(np.linalg.inv(prior.precision)))
    hidden = (own > PRIOR * before) & (whole < PRIOR * before / 2)
    wide = (own > WIDE * whole) & ~hidden
    if hidden.any():
        names = ", ".join(shorten([labels[place] for place in np.flatnonzero(hidden).tolist()], NAMED))
        what = f"Noise hides what the rows say about {names}: these intervals are mostly those of the prior"
        remedy = "More rows, fewer parameters or a larger ε would show it"
        yield Reason(word="wide but ok", what=what, remedy=remedy)
    if wide.any():
        names = ", ".join(shorten([labels[place] for place in np.flatnonzero(wide).tolist()], NAMED))
        ratio = float((own / whole)[wide].max())
        what = f"Intervals of {names} are up to {ratio:.2g} times as wide as without privacy"
        remedy = "dp.plan simulates how wide they would be at another ε, at no cost"
        yield Reason(word="wide but ok", what=what, remedy=remedy)


def labels_of(interface: Interface) -> tuple[str, ...]:
    """Name every parameter as ArviZ does: by the labels of its dims, where it has these, else by its places."""
    model, found = interface.inspection.model, list[str]()
    for part in interface.parts:
        dims = model.named_vars_to_dims.get(part.name) or ()
        known = [model.coords.get(dim) for dim in dims if dim is not None]
        texts = [[str(label) for label in labels] for labels in known if labels is not None]
        if tuple(map(len, texts)) != part.shape:  # no dims, or fewer numbers on the unconstrained scale
            found += scalar_names([part])
            continue
        found += [f"{part.name}[{', '.join(at)}]" if at else part.name for at in product(*texts)]
    return tuple(found)


__all__ = ["labels_of", "reasons"]
