"""Probabilities of bins against SciPy, their derivatives, and the densities of the release that follow from them."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.pytensorf import rewrite_pregrad
from scipy import stats

import pymc_dp as dp
from pymc_dp.families.histogram import Bins
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import rebuild
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.testing import without_noise
from pymc_dp.transforms.bins import bin_probabilities
from pymc_dp.transforms.density import ReleaseDensity
from tests.transforms.zoo import log_likelihoods, points, privatize

A = 0.5
EDGES = (-40.0, -3.0, -1.0, 0.0, 0.25, 0.5, 1.0, 2.5, 7.0, 40.0, 1e3)
X, K = np.ones(5), np.ones(5, dtype=int)


class Law:
    """A distribution function that SciPy has in parts."""

    def __init__(self, cdf):
        self.cdf = cdf


def zero_inflated(law):
    return Law(lambda x: np.where(x >= 0, 1 - A, 0) + A * law.cdf(x))


def hurdle(law, zero=0.0):
    return Law(lambda x: np.where(x >= 0, 1 - A + A * (law.cdf(x) - zero) / (1 - zero), 0))


def truncated(law, low, high):
    return Law(lambda x: np.clip((law.cdf(x) - law.cdf(low)) / (law.cdf(high) - law.cdf(low)), 0, 1))


def mixed(*laws):
    return Law(lambda x: sum(weight * law.cdf(x) for weight, law in zip((0.3, 0.7), laws, strict=True)))


def logistic_logcdf(value, mu, s):
    return pm.logcdf(pm.Logistic.dist(mu, s), value)


def logistic_logp(value, mu, s):
    return pm.logp(pm.Logistic.dist(mu, s), value)


WEIGHTS = (0.3, 0.7)
LAWS = {
    "Normal": (lambda n, a: pm.Normal(n, a, 1, observed=X), stats.norm(A, 1)),
    "StudentT": (lambda n, a: pm.StudentT(n, 3.0, mu=a, sigma=1, observed=X), stats.t(3, A, 1)),
    "Cauchy": (lambda n, a: pm.Cauchy(n, a, 1, observed=X), stats.cauchy(A, 1)),
    "Logistic": (lambda n, a: pm.Logistic(n, a, 1, observed=X), stats.logistic(A, 1)),
    "Gumbel": (lambda n, a: pm.Gumbel(n, a, 1, observed=X), stats.gumbel_r(A, 1)),
    "ExGaussian": (lambda n, a: pm.ExGaussian(n, a, 1, nu=2.0, observed=X), stats.exponnorm(2, A, 1)),
    "SkewStudentT": (
        lambda n, a: pm.SkewStudentT(n, a=2.0, b=2.0, mu=a, sigma=1, observed=X),
        stats.jf_skew_t(2, 2, A, 1),
    ),
    "Moyal": (lambda n, a: pm.Moyal(n, a, 1.0, observed=X), stats.moyal(A, 1)),
    "LogNormal": (lambda n, a: pm.LogNormal(n, a, 1, observed=X), stats.lognorm(1, scale=np.exp(A))),
    "HalfCauchy": (lambda n, a: pm.HalfCauchy(n, a, observed=X), stats.halfcauchy(scale=A)),
    "Gamma": (lambda n, a: pm.Gamma(n, a, 1.5, observed=X), stats.gamma(A, scale=1 / 1.5)),
    "Weibull": (lambda n, a: pm.Weibull(n, a, 1.5, observed=X), stats.weibull_min(A, scale=1.5)),
    "Wald": (lambda n, a: pm.Wald(n, a, 1.5, observed=X), stats.invgauss(A / 1.5, scale=1.5)),
    "Pareto": (lambda n, a: pm.Pareto(n, a, 0.4, observed=X), stats.pareto(A, scale=0.4)),
    "Uniform": (lambda n, a: pm.Uniform(n, a - 0.6, a + 3.1, observed=X), stats.uniform(A - 0.6, 3.7)),
    "TruncatedNormal": (
        lambda n, a: pm.TruncatedNormal(n, mu=a, sigma=1, lower=-0.7, upper=2, observed=X),
        stats.truncnorm(-1.2, 1.5, A, 1),
    ),
    "Kumaraswamy": (
        lambda n, a: pm.Kumaraswamy(n, a, 2.0, observed=X),
        Law(lambda x: 1 - (1 - np.clip(x, 0, 1) ** A) ** 2),
    ),
    "Poisson": (lambda n, a: pm.Poisson(n, a, observed=K), stats.poisson(A)),
    "NegativeBinomial": (lambda n, a: pm.NegativeBinomial(n, mu=a, alpha=2.0, observed=K), stats.nbinom(2, 0.8)),
    "Geometric": (lambda n, a: pm.Geometric(n, a, observed=K), stats.geom(A)),
    "BetaBinomial": (lambda n, a: pm.BetaBinomial(n, a, 2.0, 8, observed=K), stats.betabinom(8, A, 2)),
    "HyperGeometric": (
        lambda n, a: pm.HyperGeometric(n, 20, 5 + 0 * pt.cast(a, "int64"), 6, observed=K),
        Law(lambda x: stats.hypergeom(20, 5, 6).cdf(np.clip(np.floor(x), -1, 6))),
    ),
    "ZeroInflatedPoisson": (
        lambda n, a: pm.ZeroInflatedPoisson(n, a, 3.0, observed=K),
        zero_inflated(stats.poisson(3)),
    ),
    "ZeroInflatedNegativeBinomial": (
        lambda n, a: pm.ZeroInflatedNegativeBinomial(n, a, 3.0, 2.0, observed=K),
        zero_inflated(stats.nbinom(2, 0.4)),
    ),
    "HurdlePoisson": (
        lambda n, a: pm.HurdlePoisson(n, a, 3.0, observed=K),
        hurdle(stats.poisson(3), stats.poisson(3).pmf(0)),
    ),
    "HurdleGamma": (lambda n, a: pm.HurdleGamma(n, a, 3.0, 2.0, observed=X), hurdle(stats.gamma(3, scale=0.5))),
    "NormalMixture": (
        lambda n, a: pm.NormalMixture(n, pt.stack(WEIGHTS), pt.stack([a, 2.0]), pt.stack([1.0, 2.0]), observed=X),
        mixed(stats.norm(A, 1), stats.norm(2, 2)),
    ),
    "Mixture": (
        lambda n, a: pm.Mixture(
            n, pt.stack(WEIGHTS), [pm.StudentT.dist(3.0, mu=a, sigma=1), pm.Gumbel.dist(2.0, 2.0)], observed=X
        ),
        mixed(stats.t(3, A, 1), stats.gumbel_r(2, 2)),
    ),
    "Censored": (
        lambda n, a: pm.Censored(n, pm.Normal.dist(a, 1), lower=-0.7, upper=2.1, observed=X),
        Law(lambda x: np.where(x < -0.7, 0, np.where(x >= 2.1, 1, stats.norm(A, 1).cdf(x)))),
    ),
    "Truncated": (
        lambda n, a: pm.Truncated(n, pm.Logistic.dist(a, 1), lower=-0.7, upper=2.1, observed=X),
        truncated(stats.logistic(A, 1), -0.7, 2.1),
    ),
    "Truncated counts": (
        lambda n, a: pm.Truncated(n, pm.Poisson.dist(a * 4), lower=1, upper=6, observed=K),
        truncated(stats.poisson(2), 0, 6),
    ),
    "CustomDist": (
        lambda n, a: pm.CustomDist(n, a, 1.0, logp=logistic_logp, logcdf=logistic_logcdf, observed=X),
        stats.logistic(A, 1),
    ),
    "CustomDist of a transform": (
        lambda n, a: pm.CustomDist(
            n, a, 1.0, dist=lambda mu, s, size: pm.math.exp(pm.Logistic.dist(mu, s, size=size)), observed=X
        ),
        Law(lambda x: stats.logistic(A, 1).cdf(np.log(np.maximum(x, 1e-300)))),
    ),
}
HIGHEST = 1e-7
"""PyMC takes some constants of the normal law, sqrt(2) among them, as 32-bit floats."""


QUICK = (
    *("Normal", "StudentT", "Gumbel", "LogNormal", "HalfCauchy", "Weibull", "Uniform", "Poisson", "Geometric"),
    *("ZeroInflatedPoisson", "HurdleGamma", "NormalMixture", "Censored", "Truncated", "CustomDist of a transform"),
)
WEIGHTED = np.linspace(1, 2, len(EDGES) + 1)


def compiled(names):
    """Probabilities, and derivatives of their sum with weights, of several laws by one function of their parameter."""
    with pm.Model() as model:
        a = pm.Normal("a")
        for name in names:
            LAWS[name][0](name.replace(" ", "_") + "_y", a)
    plan = plan_release(inspect(model).sums, Statistics(mechanism=dp.Histogram(EDGES)), 1.0)
    at = pt.dscalar()
    graphs = [
        rebuild([bin_probabilities(table.observed, table.cells, table.statistic)], {a: at})[0][0]
        for table in plan.tables
    ]
    totals = [rewrite_pregrad((graph[0] * WEIGHTED).sum()) for graph in graphs]  # as PyMC does
    slopes = [pytensor.grad(total, at, disconnected_inputs="ignore", return_disconnected="zero") for total in totals]
    function = plain_function([at], [*graphs, *slopes])

    def evaluate(value):
        with np.errstate(all="ignore"):
            found = function(value)
        return np.array([item[0] for item in found[: len(names)]]), np.array(found[len(names) :])

    return evaluate, [table.observed.title for table in plan.tables]


@pytest.fixture(scope="module")
def quick():
    return compiled(QUICK)


def check_probabilities(names, found):
    for name, p in zip(names, found, strict=True):
        with np.errstate(all="ignore"):
            expected = np.diff([0, *LAWS[name][1].cdf(np.array(EDGES)), 1])
        assert (p >= 0).all() and p.sum() == pytest.approx(1, abs=1e-12), name
        np.testing.assert_allclose(p, expected, rtol=0, atol=HIGHEST, err_msg=name)
        lower = np.array(EDGES) <= -1  # where the distribution function itself is small, so are errors
        np.testing.assert_allclose(p[:-1][lower], expected[:-1][lower], rtol=2e-5, atol=1e-300, err_msg=name)


def check_slopes(names, evaluate, step=1e-6):
    slopes = evaluate(A)[1]
    expected = (evaluate(A + step)[0] - evaluate(A - step)[0]) @ WEIGHTED / (2 * step)
    for name, slope, other in zip(names, slopes, expected, strict=True):
        assert slope == pytest.approx(other, rel=5e-3, abs=1e-6), name
    for extreme in (A, 1e-8, 300.0):
        assert np.isfinite(evaluate(extreme)[1]).all()


@pytest.mark.slow
def test_probabilities_are_those_of_scipy_far_into_the_tails(quick):
    check_probabilities(QUICK, quick[0](A)[0])


@pytest.mark.slow
def test_derivatives_are_finite_outside_of_the_support_too(quick):
    check_slopes(QUICK, quick[0])


@pytest.mark.slow
def test_all_other_likelihoods_with_a_distribution_function():
    names = [name for name in LAWS if name not in QUICK]
    assert len(names) > 15
    evaluate, _ = compiled(names)
    check_probabilities(names, evaluate(A)[0])
    check_slopes(names, evaluate)


def grouped_model(rng, n=90):
    group, region = rng.integers(0, 3, n), rng.permutation(np.resize(np.arange(2), n))
    with pm.Model(coords={"three": range(3), "two": range(2)}) as model:
        mu, s, psi = pm.Normal("mu", dims="three"), pm.HalfNormal("s"), pm.Beta("psi", 2, 2, dims="two")
        g, r = pm.Data("g", group), pm.Data("r", region)
        pm.StudentT("t", 4.0, mu=mu[g], sigma=s, observed=rng.normal(size=n))
        pm.ZeroInflatedPoisson("zip", psi[r], pm.math.exp(mu[g]), observed=rng.integers(0, 4, n))
        pm.Censored("c", pm.Normal.dist(mu[g], s), lower=-1.0, upper=1.0, observed=rng.normal(size=n).clip(-1, 1))
        pm.Normal("x", mu[g], s, observed=rng.normal(size=n))
    return model


DOMAIN = {"bounds": dict.fromkeys(("t", "c", "x"), (-3, 3)) | {"zip": (0, 5)}}


@pytest.mark.slow
def test_without_noise_the_plug_in_density_is_that_of_the_counts(rng):
    """Each row then adds the log-probability of the bin that holds it, at the parameters of its own group."""
    model = grouped_model(rng)
    bins = {name: dp.Histogram((-1.5, 0.0, 0.5, 2.0)) for name in ("t", "zip", "c", "x")}
    with without_noise():
        private = privatize(
            model, domain=dp.Domain(public=["r"], **DOMAIN), statistics=Statistics(noise_aware=False, mechanism=bins)
        )
    found = log_likelihoods(private, points(private, rng, 3))
    for name, likelihood in zip(found, model.observed_RVs, strict=True):
        data = np.asarray(model.rvs_to_values[likelihood].data)
        edges = np.array([-np.inf, -1.5, 0.0, 0.5, 2.0, np.inf])
        place = np.searchsorted(edges[1:-1], data, side="left")
        ends = []
        for cut in (edges[place], edges[place + 1]):
            value = pt.constant(np.where(np.isinf(cut), np.sign(cut) * 1e6, np.floor(cut) if name == "zip" else cut))
            ends.append(pt.exp(pm.logcdf(likelihood, value.astype(likelihood.dtype), warn_rvs=False)))
        rows = pt.log(ends[1] - ends[0]).sum()
        evaluate = model.compile_fn(
            model.replace_rvs_by_values([rows]), inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore"
        )
        start = points(private, np.random.default_rng(5), 2)
        expected = [float(np.squeeze(evaluate(point))) for point in start]
        ours = log_likelihoods(private, start, (name,))[name]
        assert ours[0] - ours[1] == pytest.approx(expected[0] - expected[1], rel=1e-6), name
        assert ours[0] == pytest.approx(expected[0], rel=1e-6), name


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("noise", "domain"),
    [("laplace", {"public": ["r", "g"]}), ("gaussian", {"neighbours": "add_remove", "n_max": 200})],
    ids=["public", "add_remove"],
)
def test_every_release_of_bins_has_a_density_and_draws(noise, domain, rng):
    private = privatize(
        grouped_model(rng),
        3.0,
        delta=0.0 if noise == "laplace" else 1e-6,
        domain=dp.Domain(**domain, **DOMAIN),
        statistics=Statistics(noise, mechanism={"x": dp.Histogram(6)}),
    )
    at = private.initial_point()
    values = log_likelihoods(private, [at, {name: value + 0.3 for name, value in at.items()}])
    for name, found in values.items():
        assert np.isfinite(found).all() and found[0] != found[1], name
        shape = np.shape(private.rvs_to_values[private[name]].get_value())
        assert pm.draw(private[name], random_seed=1, mode="FAST_COMPILE").shape == shape


def test_the_sizes_of_groups_are_not_read_off_bins():
    """Counts of a class say how large its groups are; counts of its values in bins are other numbers."""
    y = np.array([0, 1, 2, 3, 1, 0])
    with pm.Model() as model:
        held = pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=y)
        pm.Bernoulli("z", pm.Beta("p", 1, 1, shape=4)[held], observed=y % 2)
    domain = dp.Domain(bounds={"y": (0, 3)})
    private = privatize(model, domain=domain, statistics=Statistics(mechanism={"y": dp.Histogram()}))
    assert private["y"].type.shape[-1] in (4, None)
    plan = plan_release(inspect(model, domain).sums, Statistics(mechanism={"y": dp.Histogram()}), 1.0)
    assert isinstance(plan.tables[0].statistic, Bins) and plan.tables[0].statistic.n_levels == 4
    assert ReleaseDensity.of(plan.tables[1], noise_aware=True).sizes.seen is None
