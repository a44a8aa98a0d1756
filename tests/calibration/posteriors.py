"""Rows simulated from the prior, sent through the real release path, and the posterior of what came out.

Posteriors are computed in units of the prior's distribution function: with u = F(parameter) the prior is uniform on
(0, 1), a grid of u is a grid of prior quantiles, and the posterior probability of {u <= true u} is uniform over
simulations if, and only if, inference is calibrated (Cook, Gelman, Rubin 2006).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy import stats

import pymc_dp as dp
from pymc_dp.inspection.rows import unwrap
from pymc_dp.release.statistics import Statistics
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.privatize import plan_for
from tests.paid import draw_release

Array = np.ndarray
N_GROUPS = 3


@dataclass(frozen=True)
class Likelihood:
    """One likelihood with its prior.

    Attributes
    ----------
    quantiles : maps (n_points, n_parameters) prior probabilities to as many parameters
    build : adds prior and likelihood to the model of the context, given data and the private group or None
    simulate : draws one row per row of parameters
    """

    n_parameters: int
    dtype: str
    quantiles: Callable[[Array], Array]
    build: Callable[[Any, Any], None]
    simulate: Callable[[np.random.Generator, Array], Array]
    bounds: tuple[float, float] | None = None


def _at(parameter: Any, group: Any) -> Any:
    return parameter if group is None else parameter[group]


def _shape(group: Any) -> int | None:
    return None if group is None else N_GROUPS


def _bernoulli(rows: Any, group: Any) -> None:
    p = pm.Beta("p", 1, 1, shape=_shape(group))
    pm.Bernoulli("y", _at(p, group), observed=rows)


def _poisson(rows: Any, group: Any) -> None:
    rate = pm.Gamma("rate", 2, 1, shape=_shape(group))
    pm.Poisson("y", _at(rate, group), observed=rows)


def _normal(rows: Any, group: Any) -> None:
    mu = pm.Normal("mu", 0, 1, shape=_shape(group))
    sigma = pm.LogNormal("sigma", 0, 0.5, shape=_shape(group))
    pm.Normal("y", _at(mu, group), _at(sigma, group), observed=rows)


def _categorical(rows: Any, group: Any) -> None:
    p = pm.Dirichlet("p", np.ones(5), dims=("level",) if group is None else ("cell", "level"))
    pm.Categorical("y", _at(p, group), observed=rows)


LIKELIHOODS = {
    "Bernoulli": Likelihood(
        n_parameters=1,
        dtype="int64",
        quantiles=lambda u: u,
        build=_bernoulli,
        simulate=lambda rng, p: (rng.random(len(p)) < p[:, 0]).astype(np.int64),
    ),
    "Poisson": Likelihood(
        n_parameters=1,
        dtype="int64",
        quantiles=lambda u: stats.gamma.ppf(u, 2),
        build=_poisson,
        simulate=lambda rng, p: rng.poisson(p[:, 0]),
        bounds=(0, 6),
    ),
    "Normal": Likelihood(
        n_parameters=2,
        dtype="float64",
        quantiles=lambda u: np.stack([stats.norm.ppf(u[:, 0]), np.exp(0.5 * stats.norm.ppf(u[:, 1]))], axis=1),
        build=_normal,
        simulate=lambda rng, p: rng.normal(p[:, 0], p[:, 1]),
        bounds=(-4, 4),
    ),
    "Categorical": Likelihood(
        n_parameters=5,
        dtype="int64",
        quantiles=lambda p: p,
        build=_categorical,
        simulate=lambda rng, p: (rng.random((len(p), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1),
    ),
}


class Releaser:
    """The release path of one model, planned once; every call sends other rows through it."""

    def __init__(
        self, likelihood: Likelihood, n_rows: int, epsilon: float, *, grouped: bool = False, n_max: int | None = None
    ) -> None:
        with pm.Model(coords={"level": range(5), "cell": range(N_GROUPS)}) as model:
            group = pm.Data("group", np.zeros(n_rows, dtype=np.int64)) if grouped else None
            likelihood.build(pm.Data("rows", np.zeros(n_rows, dtype=likelihood.dtype)), group)
        bounds = {} if likelihood.bounds is None else {"y": likelihood.bounds}
        domain = dp.Domain(bounds=bounds) if n_max is None else dp.Domain(
            bounds=bounds, neighbours="add_remove", n_max=n_max
        )  # fmt: skip
        _, self.plan = plan_for(model, epsilon=epsilon, delta=0.0, domain=domain, statistics=Statistics())
        (self.table,) = self.plan.tables
        self.leaves = {name: unwrap(model[name]) for name in (("rows", "group") if grouped else ("rows",))}

    def __call__(self, **columns: Array) -> Array:
        for name, leaf in self.leaves.items():
            leaf.set_value(columns[name].astype(leaf.type.dtype), borrow=True)
        return draw_release(self.plan).values["y"]

    def log_density(self, *, noise_aware: bool = True) -> Callable[[Array, Array], Array]:
        """Log density of the first cell's part of a release, at many parameters: (n_points,) array.

        It takes the release, (n_cells, n_columns), of which other cells say how unequal sizes are, and the parameters,
        (n_points, n_parameters).
        """
        whole = ReleaseDensity.of(self.table, noise_aware=noise_aware)
        rate: Any = pt.scalar("rate of the prior of sizes")
        density = replace(whole, sizes=replace(whole.sizes, bound=whole.sizes.bound[:1], rate=rate))
        value = pt.matrix("value", shape=(1, len(self.table.labels)))
        if density.family.event_ndims == (1,):
            inputs = [pt.matrix("p", shape=(None, 5))]
        else:
            inputs = [pt.vector(f"parameter_{i}") for i in range(len(density.family.event_ndims))]
        # Compiled loops pay only where the size and more is integrated out at every point.
        many = inputs[0].ndim == 2 or len(inputs) > 1
        mode = None if many and not density.sizes.public and noise_aware else "FAST_COMPILE"
        function = pytensor.function(
            [value, rate, *inputs], density.graph(value, *inputs), mode=mode, on_unused_input="ignore"
        )

        def evaluate(release: Array, parameters: Array) -> Array:
            release = np.atleast_2d(release)
            known = whole.of_release(release, at_most=self.plan.neighbours == "add_remove").sizes.rate
            held = release[:1] if noise_aware else density.project(release[:1])
            arguments = [parameters] if len(inputs) == 1 and inputs[0].ndim == 2 else list(parameters.T)
            with np.errstate(all="ignore"):
                return np.broadcast_to(function(held, known, *arguments), len(parameters))

        return evaluate


def posterior_below(
    likelihood: Likelihood, log_density: Callable[[Array, Array], Array], release: Array, truth: Array
) -> Array:
    """Posterior probability that each parameter lies below its true value, on a grid refined once.

    Parameters
    ----------
    release : (n_cells, n_columns) array
    truth : (n_parameters,) array
        Of the first cell, in prior probabilities.
    """
    count = {1: 400, 2: 24}[likelihood.n_parameters]
    low, high = np.zeros(likelihood.n_parameters), np.ones(likelihood.n_parameters)
    for _ in range(3):
        middles = (np.arange(count) + 0.5) / count
        axes = [a + (b - a) * middles for a, b in zip(low, high, strict=True)]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        logp = log_density(release, likelihood.quantiles(points))
        weights = np.exp(logp - logp.max()).reshape([count] * likelihood.n_parameters)
        weights /= weights.sum()
        masses = [
            weights.sum(axis=tuple(j for j in range(likelihood.n_parameters) if j != i))
            for i in range(likelihood.n_parameters)
        ]
        below = np.array(
            [
                np.interp(t, np.linspace(a, b, count + 1), np.concatenate([[0], mass.cumsum()]))
                for t, a, b, mass in zip(truth, low, high, masses, strict=True)
            ]
        )
        held = [np.flatnonzero(mass > 1e-7) for mass in masses]
        width = (high - low) / count
        low, high = (
            np.array([max(a + (h[0] - 1) * w, 0) for a, h, w in zip(low, held, width, strict=True)]),
            np.array([min(a + (h[-1] + 2) * w, 1) for a, h, w in zip(low, held, width, strict=True)]),
        )
        if all(len(h) > count / 3 for h in held):
            break
    return below


def simplex_below(
    rng: np.random.Generator, log_density: Callable[[Array, Array], Array], release: Array, truth: Array
) -> tuple[Array, float]:
    """Posterior probability that each part of a probability vector is below its true value; effective sample size.

    Importance sampling from Dirichlet proposals, each fitted to the draws of the round before (whose weights are
    flattened until a fifth of the draws count) and mixed with a tenth of the Dirichlet(1) prior.
    """
    levels = len(truth)
    prior = stats.dirichlet.logpdf(np.full(levels, 1 / levels), np.ones(levels))
    shape = np.ones(levels)
    for size in [600] * 6 + [4000] * 6:
        draws = rng.dirichlet(np.ones(levels), size=size)
        fitted = rng.random(size) < 0.9
        draws[fitted] = rng.dirichlet(shape, size=fitted.sum())
        draws = np.maximum(draws, 1e-12)
        draws /= draws.sum(axis=1, keepdims=True)
        proposal = np.logaddexp(np.log(0.9) + stats.dirichlet.logpdf(draws.T, shape), np.log(0.1) + prior)
        log_weights = log_density(release, draws) + prior - proposal
        weights = _normalised(log_weights)
        effective = float(1 / np.sum(weights**2))
        if size == 4000 and effective > 100:
            break
        flat, power = weights, 1.0
        while 1 / np.sum(flat**2) < 0.2 * size:
            power *= 0.7
            flat = _normalised(power * log_weights)
        mean = flat @ draws
        variance = np.maximum(flat @ (draws - mean) ** 2, 1e-14)
        concentration = np.quantile(mean * (1 - mean) / variance, 0.25) - 1
        shape = np.maximum(mean * np.clip(0.6 * concentration, levels, 1e9), 0.3)
    return weights @ (draws <= truth), effective


def _normalised(log_weights: Array) -> Array:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def simulate(
    likelihood: Likelihood, rng: np.random.Generator, n_rows: int, *, grouped: bool = False
) -> tuple[Mapping[str, Array], Array]:
    """Draw parameters from the prior, sizes of groups from a uniform split, and rows: columns and true parameters.

    The true parameters are prior probabilities (a probability vector for categories), one row per group.
    """
    groups = N_GROUPS if grouped else 1
    if likelihood.n_parameters == 5:
        truth = rng.dirichlet(np.ones(5), size=groups)
    else:
        truth = rng.random((groups, likelihood.n_parameters))
    split = rng.dirichlet(np.ones(groups))
    group = rng.choice(groups, size=n_rows, p=split)
    rows = likelihood.simulate(rng, likelihood.quantiles(truth)[group])
    return {"rows": rows, "group": group}, truth
