"""The release as a random variable: draws follow the density, and projection is the nearest possible table."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.transforms.density import ReleaseDensity

N = 40
DELTAS = {"laplace": 0.0, "gaussian": 1e-4}
REPLACE, HIDDEN = dp.Domain(bounds={"y": (0, 10)}), dp.Domain(bounds={"y": (0, 10)}, neighbours="add_remove", n_max=60)


def density_of(kind, domain, epsilon=0.5, *, groups=1, noise_aware=True, noise="laplace"):
    """Density of the release of one observed variable."""
    index = np.resize(np.arange(groups), N)
    with pm.Model(coords={"group": range(groups), "level": range(3)}) as model:

        def at(parameter):
            return parameter[index] if groups > 1 else parameter

        dims = "group" if groups > 1 else None
        match kind:
            case "bernoulli":
                pm.Bernoulli("y", at(pm.Beta("p", 1, 1, dims=dims)), observed=np.zeros(N, dtype=int))
                domain = dp.Domain(neighbours=domain.neighbours, n_max=domain.n_max)
            case "categorical":
                q = pm.Dirichlet("q", np.ones(3), dims=("group", "level") if groups > 1 else "level")
                pm.Categorical("y", at(q), observed=np.zeros(N, dtype=int))
                domain = dp.Domain(neighbours=domain.neighbours, n_max=domain.n_max)
            case "poisson":
                pm.Poisson("y", at(pm.Gamma("rate", 2, 1, dims=dims)), observed=np.zeros(N, dtype=int))
            case "normal":
                pm.Normal("y", at(pm.Normal("mu", dims=dims)), pm.HalfNormal("s"), observed=np.zeros(N))
    plan = plan_release(inspect(model, domain).sums, dp.Statistics(noise), epsilon, DELTAS[noise])
    return ReleaseDensity.of(plan.tables[0], noise_aware=noise_aware)


PARAMETERS = {
    "bernoulli": [np.array([0.3])],
    "categorical": [np.array([[0.2, 0.3, 0.5]])],
    "poisson": [np.array([4.0])],
    "normal": [np.array([4.0]), np.array([2.0])],
}


def repeated(density, cells):
    """The same release, of many tables at once."""
    sizes = replace(density.sizes, bound=np.repeat(density.sizes.bound, cells))
    return replace(density, sizes=sizes)


def log_density(density, parameters, width):
    """Compiled log density of as many releases as the density has cells."""
    value = pt.matrix("value", shape=(len(density.sizes.bound), width))
    logp = density.logp(value, *[pt.constant(item) for item in parameters])
    return pytensor.function([value], logp, mode="FAST_COMPILE")


@pytest.mark.few(3)
@pytest.mark.parametrize("noise", DELTAS)
@pytest.mark.parametrize("kind", ["categorical", "poisson", "normal"])
@pytest.mark.parametrize("domain", [REPLACE, HIDDEN], ids=["replace", "add_remove"])
def test_draws_and_density_belong_together(kind, domain, noise, seed):
    """For draws from f, the mean of g/f is the integral of g: here g is f moved, which integrates to 1 as well."""
    density, parameters = repeated(density_of(kind, domain, noise=noise), 500), PARAMETERS[kind]
    draws = density.random(*parameters, rng=np.random.default_rng(seed))
    evaluate = log_density(density, parameters, draws.shape[1])
    own = evaluate(draws)
    for column, scale in enumerate(density.scales):
        shift = np.zeros(draws.shape[1])
        shift[column] = max(1.0, round(scale * 0.7))
        ratio = np.exp(evaluate(draws + shift) - own)
        error = ratio.std() / np.sqrt(len(ratio))
        assert ratio.mean() == pytest.approx(1, abs=5 * error + 0.02), (kind, column)


@pytest.mark.parametrize("kind", PARAMETERS)
def test_draws_have_the_mean_and_the_noise_they_should(kind, seed):
    y = {
        "bernoulli": stats.bernoulli(0.3).rvs, "poisson": stats.poisson(4).rvs, "normal": stats.norm(4, 2).rvs,
        "categorical": lambda n, random_state: random_state.choice(3, n, p=[0.2, 0.3, 0.5]),
    }[kind](200_000, random_state=np.random.default_rng(1))  # fmt: skip
    y = np.clip(y, 0, 10)
    rows = {
        "bernoulli": y[:, None], "poisson": y[:, None], "normal": np.stack([y - 5, (y - 5) ** 2], axis=1),
        "categorical": np.stack([y == level for level in range(3)], axis=1),
    }[kind]  # fmt: skip
    density = repeated(density_of(kind, REPLACE), 3000)
    draws = density.random(*PARAMETERS[kind], rng=np.random.default_rng(seed))
    noise = 1 / (2 * np.sinh(0.5 / density.scales) ** 2) if kind != "normal" else 2 * density.scales**2
    variance = N * rows.var(axis=0) + noise
    assert (np.abs(draws.mean(axis=0) - N * rows.mean(axis=0)) < 5 * np.sqrt(variance / 3000 + 0.01)).all()
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.25)
