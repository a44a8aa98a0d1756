"""Moments of clamped rows against SciPy's quantiles and high precision; plug-in against the density of the rows."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace
from scipy import stats

import pymc_dp as dp
from pymc_dp.families import FAMILIES
from pymc_dp.families.features import TRANSFORMS
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.likelihoods import likelihood_of
from pymc_dp.kernel.shapes import GRID

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


@dataclass(frozen=True)
class Case:
    """A likelihood of two free numbers at most, in PyMC's words and as SciPy's distribution of the same numbers."""

    build: Callable[..., object]
    scipy: Callable[..., object]
    bounds: tuple[float, float] | None
    points: tuple[tuple[float, ...], ...]
    names: tuple[str, ...]


def of(build, scipy, bounds, names, *points) -> Case:
    held = tuple(tuple(map(float, point)) for point in points)
    return Case(build=build, scipy=scipy, bounds=bounds, points=held, names=tuple(names))


CASES = {
    "gamma": of(
        lambda y, a, b: pm.Gamma("y", a, b, observed=y), lambda a, b: stats.gamma(a, scale=1 / b), (0.2, 8), "ab",
        (0.3, 0.2), (2, 1), (40, 10), (300, 100), (1e4, 3e3), (2, 1e-3), (2, 1e3), (0.01, 0.05), (1e4, 1e5),
    ),
    "gamma, rate": of(
        lambda y, b: pm.Gamma("y", 2.0, b, observed=y), lambda b: stats.gamma(2, scale=1 / b), (0.2, 8), "b", (0.5,),
    ),
    "gamma, shape": of(
        lambda y, a: pm.Gamma("y", a, 2.0, observed=y), lambda a: stats.gamma(a, scale=0.5), (0.2, 8), "a", (9,),
    ),
    "inverse gamma": of(
        lambda y, a, b: pm.InverseGamma("y", a, b, observed=y), lambda a, b: stats.invgamma(a, scale=b), (0.1, 10),
        "ab", (0.5, 0.3), (3, 2), (200, 300), (2, 1e4), (3, 1e-3), (0.02, 0.05),
    ),
    "beta": of(
        lambda y, a, b: pm.Beta("y", a, b, observed=y), lambda a, b: stats.beta(a, b), (0.01, 0.98), "ab",
        (0.3, 0.4), (2, 3), (80, 20), (1, 50), (0.01, 0.02), (5e3, 2e3), (1e3, 1), (0.5, 2e3),
    ),
    "exponential": of(
        lambda y, r: pm.Exponential("y", r, observed=y), lambda r: stats.expon(scale=1 / r), (0, 6), "r",
        (0.02,), (1,), (80,), (1e-5,), (1e5,),
    ),
    "half-normal": of(
        lambda y, s: pm.HalfNormal("y", s, observed=y), lambda s: stats.halfnorm(scale=s), (0, 5), "s",
        (0.05,), (2,), (40,), (1e-5,), (1e5,),
    ),
    "log-normal": of(
        lambda y, m, s: pm.LogNormal("y", m, s, observed=y), lambda m, s: stats.lognorm(s, scale=np.exp(m)), (0.1, 20),
        "ms", (0, 1), (2, 0.1), (-1, 3), (5, 0.5), (-9, 0.5), (1, 1e-4), (0, 300), (3, 0.01),
    ),
    "log-normal, mean": of(
        lambda y, m: pm.LogNormal("y", m, 0.7, observed=y), lambda m: stats.lognorm(0.7, scale=np.exp(m)), (0.1, 20),
        "m", (0.3,),
    ),
    "log-normal, scale": of(
        lambda y, s: pm.LogNormal("y", 0.4, s, observed=y), lambda s: stats.lognorm(s, scale=np.exp(0.4)), (0.1, 20),
        "s", (0.6,),
    ),
    "laplace": of(
        lambda y, b: pm.Laplace("y", 1.0, b, observed=y), lambda b: stats.laplace(1.0, b), (-3, 6), "b",
        (0.05,), (1,), (20,), (1e-5,), (1e5,),
    ),
    "laplace beyond the bounds": of(
        lambda y, b: pm.Laplace("y", 9.0, b, observed=y), lambda b: stats.laplace(9.0, b), (-3, 6), "b", (0.2,), (5,),
    ),
    "weibull": of(
        lambda y, b: pm.Weibull("y", 1.7, b, observed=y), lambda b: stats.weibull_min(1.7, scale=b), (0.01, 6), "b",
        (0.05,), (2,), (20,), (1e-4,), (1e4,),
    ),
    "weibull, steep": of(
        lambda y, b: pm.Weibull("y", 20.0, b, observed=y), lambda b: stats.weibull_min(20.0, scale=b), (0.8, 1.2), "b",
        (0.9,), (1.4,), (3,),
    ),
    "weibull, flat": of(
        lambda y, b: pm.Weibull("y", 0.3, b, observed=y), lambda b: stats.weibull_min(0.3, scale=b), (0.01, 6), "b",
        (0.05,), (2,),
    ),
    "von mises": of(
        lambda y, m, k: pm.VonMises("y", m, k, observed=y), lambda m, k: stats.vonmises(k, loc=m), None, "mk",
        (0.5, 0.01), (3, 2), (-1, 50), (0, 2000), (0.3, 1e6),
    ),
    "geometric": of(
        lambda y, p: pm.Geometric("y", p, observed=y), stats.geom, (1, 30), "p", (0.01,), (0.3,), (0.99,),
    ),
    "geometric, wide": of(
        lambda y, p: pm.Geometric("y", p, observed=y), stats.geom, (1, 5000), "p", (0.001,), (0.3,), (1e-6,),
    ),
    "negative binomial": of(
        lambda y, m: pm.NegativeBinomial("y", mu=m, alpha=2.5, observed=y),
        lambda m: stats.nbinom(2.5, 2.5 / (2.5 + m)), (2, 40), "m", (0.1,), (5,), (90,), (1e-5,), (1e5,),
    ),
    "binomial": of(
        lambda y, p: pm.Binomial("y", 12, p, observed=y), lambda p: stats.binom(12, p), None, "p", (0.01,), (0.6,),
    ),
}  # fmt: skip


def model_of(case: Case, values) -> pm.Model:
    """Free numbers with flat priors, so that the density is the likelihood's."""
    with pm.Model() as model:
        case.build(values, *[pm.Flat(name) for name in case.names])
    return model


def values_of(case: Case, point, rng, count=60):
    drawn = case.scipy(*point).rvs(count, random_state=rng)
    if case.bounds is None:
        return (drawn + np.pi) % (2 * np.pi) - np.pi if "k" in case.names else drawn
    return np.clip(drawn, *case.bounds)


def private(case: Case, values, **options) -> pm.Model:
    domain = dp.Domain() if case.bounds is None else dp.Domain(bounds={"y": case.bounds})
    return dp.privatize(model_of(case, values), epsilon=1.0, domain=domain, **options)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", CASES)
def test_plug_in_is_the_density_of_the_rows_up_to_a_constant(name, rng):
    case = CASES[name]
    values = values_of(case, case.points[0], rng)
    with dp.testing.without_noise():
        released = private(case, values, statistics=dp.Statistics(noise_aware=False))
    found = []
    whole, sums = (model.compile_logp(mode="FAST_COMPILE") for model in (model_of(case, values), released))
    for point in case.points:
        at = dict(zip(case.names, point, strict=True))
        found.append(float(sums(at)) - float(whole(at)))
        assert abs(found[-1] - found[0]) < 1e-6 * (1 + abs(float(whole(at))))


@cache
def quantiles(count):
    """Nodes in (0, 1), denser at the ends, and their weights."""
    u, weights = np.polynomial.legendre.leggauss(count)
    u = (u + 1) / 2
    return u**2 * (3 - 2 * u), weights * 3 * u * (1 - u)


def reference(case: Case, statistic, point):
    """Mean and covariance of the clamped statistic in units of its scales."""
    drawn = case.scipy(*point)
    if statistic.kind == "moments":  # whole numbers: every value
        x = np.arange(statistic.low, statistic.high + 1)
        weights = np.diff(drawn.cdf(x[:-1]), prepend=0, append=1)
        weights[-1] = drawn.sf(x[-2])
        t = ((x - statistic.centre) / statistic.half_width)[None]
    else:
        u, weights = quantiles(1000 if case.bounds is not None else 300)  # of angles they take long
        with np.errstate(all="ignore"):  # quantiles beyond all numbers
            x = drawn.ppf(u)
        x = np.clip((x + np.pi) % (2 * np.pi) - np.pi if case.bounds is None else x, statistic.low, statistic.high)
        t = np.stack([TRANSFORMS[f.transform].of_array(x, f.argument) / f.half_width for f in statistic.features])
    mean = t @ weights
    return mean, (t - mean[:, None]) * weights @ (t - mean[:, None]).T


@pytest.mark.parametrize("name", CASES)
def test_moments_are_those_of_the_clamped_row(name, rng):
    case = CASES[name]
    model = model_of(case, values_of(case, case.points[-1], rng))
    domain = dp.Domain() if case.bounds is None else dp.Domain(bounds={"y": case.bounds})
    (observed,) = inspect(model, domain).sums.observed
    family = FAMILIES[observed.distribution]
    statistic = family.statistic(observed, sizes_known=True)
    inputs = [pt.dscalar(f"{n}_in") for n in case.names]
    given = dict(zip(model.free_RVs, inputs, strict=True))
    parameters = [
        clone_replace(pt.atleast_1d(parameter), given, rebuild_strict=False)
        for parameter in likelihood_of(model["y"])[1]
    ]
    mean, covariance = family.moments(parameters, statistic)
    evaluate = plain_function(inputs, [pt.stack(mean), pt.stack([pt.stack(row) for row in covariance])])
    for point in case.points:
        means, covariances = (item[..., 0] for item in evaluate(*point))
        expected_mean, expected = reference(case, statistic, point)
        size = np.sqrt(np.diag(expected)) + 1e-9
        assert (np.abs(means - expected_mean) < 0.005 * size + 1e-6).all(), point
        assert (np.abs(covariances - expected) < 0.02 * np.outer(size, size) + 1e-9).all(), point


LOW, HIGH = 5.0, 100.0


def statistic(low, high, powers):
    half_width = (high - low) / 2
    return BoundedMoments(
        low=low, high=high, centre=(low + high) / 2, unit=half_width / GRID, half_width=half_width, powers=powers
    )


def compiled(family, bounded, count):
    """Means, then the covariance row by row, and the gradient of their sum."""
    inputs = [pt.vector(f"p{i}") for i in range(count)]
    mean, covariance = family.moments(inputs, bounded)
    flat = [*mean, *itertools.chain.from_iterable(covariance)]
    return pytensor.function(inputs, [*flat, *pt.grad(sum(item.sum() for item in flat), inputs)], mode="FAST_COMPILE")


def exact_clamped_normal(mean, sd):
    """E t, E t^2, and the covariance matrix of (t, t^2), t clamped to [-1, 1]."""
    with mpmath.workdps(90):
        a, b = (-1 - mpmath.mpf(mean)) / sd, (1 - mpmath.mpf(mean)) / sd
        inside = [mpmath.ncdf(b) - mpmath.ncdf(a), mpmath.npdf(a) - mpmath.npdf(b)]
        for k in range(2, 5):
            inside.append((k - 1) * inside[k - 2] + a ** (k - 1) * mpmath.npdf(a) - b ** (k - 1) * mpmath.npdf(b))
        atoms = [(-1) ** k * mpmath.ncdf(a) + mpmath.ncdf(-b) for k in range(5)]
        m = [
            sum(
                mpmath.binomial(k, i) * mpmath.mpf(mean) ** (k - i) * mpmath.mpf(sd) ** i * inside[i]
                for i in range(k + 1)
            )
            + atoms[k]
            for k in range(5)
        ]
        return [
            float(x) for x in (m[1], m[2], m[2] - m[1] ** 2, m[3] - m[1] * m[2], m[3] - m[1] * m[2], m[4] - m[2] ** 2)
        ]


MEANS = [-1e9, -1e4, -200, 0, 4.9, 5, 20, 52.5, 99.9, 150, 1e9]
SDS = [1e-9, 1e-4, 0.5, 20, 47.4, 47.6, 300, 1e5, 1e9]


@pytest.mark.slow
def test_clamped_normal_has_the_moments_of_its_distribution():
    """Absolute error in half widths; the closed form alone gave a variance of 3e14 at mean -1e9, sd 1e9."""
    evaluate = compiled(FAMILIES["normal"], statistic(LOW, HIGH, (1, 2)), 2)
    grid = np.array(list(itertools.product(MEANS, SDS)))
    *found, slope_mean, slope_sd = evaluate(*grid.T.copy())
    exact = np.array([exact_clamped_normal((mean - 52.5) / 47.5, sd / 47.5) for mean, sd in grid]).T
    np.testing.assert_allclose(np.array(found), exact, atol=1e-11, rtol=1e-8)
    assert (found[2] >= 0).all()
    assert (found[5] >= 0).all()
    assert np.isfinite([slope_mean, slope_sd]).all()
