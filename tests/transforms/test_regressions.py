"""Regressions: the density of released products, and releases from the rows to the private model."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from scipy import stats

import pymc_dp as dp
from pymc_dp.families.gram import GramSums, Response, Source, quadratic, quadratic_error
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.transforms.regression import RegressionDensity

CENTRES, HALVES = np.array([0.1, -0.2, 0.0]), np.array([1.0, 2.0, 0.5])
SOURCE = Source(name="x", centres=tuple(CENTRES), halves=tuple(HALVES))
RESPONSES = {
    "normal": (Source(name="y", centres=(0.5,), halves=(40.0,)), Response(likelihood="normal")),
    "clamped": (Source(name="y", centres=(0.5,), halves=(2.5,)), Response(likelihood="normal")),
    "bernoulli": (Source(name="y", centres=(0.5,), halves=(0.5,)), Response(likelihood="bernoulli", mean=pt.sigmoid)),
    "poisson": (Source(name="y", centres=(4.0,), halves=(4.0,)), Response(likelihood="poisson", mean=pt.exp)),
}
A, W, SD = np.array([0.4]), np.array([1.2, -0.8, 0.9]), 1.1


def density(kind: str, **options) -> RegressionDensity:
    source, response = RESPONSES[kind]
    shape = {"square": response.likelihood == "normal"}
    shape.update(
        {key: options.pop(key) for key in ("known", "sizes_known", "apart", "cells", "constant") if key in options}
    )
    settings = {"sizes": np.array([300]), "scale": 3.0, "noise": "gaussian", **options}
    return RegressionDensity(
        statistic=GramSums(sources=(SOURCE,), response=source, **shape), response=response, **settings
    )


def products(t, u, square):
    pairs = [t[:, i] * t[:, j] for i, j in zip(*np.triu_indices(t.shape[1]), strict=True)]
    return np.array([*t.sum(0), u.sum(), *(item.sum() for item in pairs), *(u @ t), *([u @ u] if square else [])])


def draw_response(rng, kind, eta):
    source, _ = RESPONSES[kind]
    y = {
        "normal": lambda: eta + SD * rng.normal(size=eta.shape),
        "clamped": lambda: eta + SD * rng.normal(size=eta.shape),
        "bernoulli": lambda: (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
    }[kind]()
    return np.clip((y - source.centres[0]) / source.halves[0], -1, 1)


def normal_predictors(rng, n):
    """Rows of exactly the same mean and covariance every time."""
    z = rng.normal(size=(n, 3))
    z -= z.mean(0)
    z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / n)).T
    return z @ np.array([[0.3, 0.1, 0.0], [0.0, 0.25, 0.1], [0.0, 0.0, 0.2]]) + [0.2, -0.1, 0.0]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("kind", "tolerance"), [("normal", 0.06), ("bernoulli", 0.06), ("poisson", 0.12), ("clamped", 0.2)]
)
def test_sums_with_the_response_have_the_stated_mean_and_covariance(rng, kind, tolerance):
    """Of any predictors where a normal response is not clamped; of normal ones else."""
    n, repeats = 300, 1200
    fixed = rng.uniform(-1, 1, (n, 3))
    sums = []
    for _ in range(repeats):
        t = fixed if kind == "normal" else normal_predictors(rng, n)
        u = draw_response(rng, kind, A + (CENTRES + HALVES * t) @ W)
        sums.append([u.sum(), *(u @ t), *([u @ u] if kind in ("normal", "clamped") else [])])
    rows = np.concatenate([np.ones((n, 1)), t], axis=1)
    _, mean, covariance = density(kind, known=True, gram=(rows.T @ rows)[None])._plain(A, W, SD)
    root = np.linalg.cholesky(covariance[0])
    white = np.linalg.solve(root, (np.array(sums) - mean[0]).T)
    assert np.abs(white.mean(axis=1)).max() < 5 / np.sqrt(repeats)
    assert np.abs(np.linalg.eigvalsh(np.cov(white)) - 1).max() < tolerance + 5 * np.sqrt(2 / repeats)


def test_the_plug_in_form_of_exact_sums_is_the_likelihood_of_the_rows(rng):
    t = rng.uniform(-1, 1, (300, 3))
    u = draw_response(rng, "normal", A + (CENTRES + HALVES * t) @ W)
    made = density("normal", noise_aware=False, scale=0.0)
    value = products(t, u, True)[None]
    np.testing.assert_allclose(made.project(value), value, rtol=1e-9, atol=1e-9)
    function = compiled(made)
    y, x = 0.5 + 40 * u, CENTRES + HALVES * t
    points = [(A, W, SD), (A + 0.3, W * 0.9, 1.4), (A - 1, W + 0.2, 0.8)]
    found = [function(value, a, w, sd)[0] for a, w, sd in points]
    expected = [stats.norm.logpdf(y, a + x @ w, sd).sum() for a, w, sd in points]
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8)


@pytest.mark.parametrize("link", [pt.sigmoid, lambda eta: 0.5 * pt.erfc(-eta / np.sqrt(2))])
def test_the_plug_in_form_of_a_bernoulli_response_is_within_the_stated_error(rng, link):
    t = rng.uniform(-1, 1, (300, 3))
    eta = A + (CENTRES + HALVES * t) @ W
    u = draw_response(rng, "bernoulli", eta)
    source, _ = RESPONSES["bernoulli"]
    response, reach = Response(likelihood="bernoulli", mean=link), 4.0
    made = density("bernoulli", noise_aware=False, scale=0.0, reach=reach)
    made = RegressionDensity(**{**vars(made), "response": response})
    found = compiled(made)(products(t, u, False)[None], A, W, SD)[0]
    p = plain_function([], link(pt.as_tensor(eta)))()
    exact = np.log(np.where(u > 0, p, 1 - p)).sum()
    constant, line = quadratic(response, reach)
    found += 300 * constant[0] + line[0] * (u > 0).sum()
    assert np.abs(eta).max() < reach
    error = quadratic_error(response, source, reach)
    assert 1e-3 < abs(found - exact) / 300 < error < 1.0


def compiled(made, gradient=False):
    value = pt.matrix("value", shape=(1, made.statistic.count))
    a, w, sd = pt.vector("a"), pt.matrix("w") if made.statistic.apart else pt.vector("w"), pt.scalar("sd")
    latents = [pt.tensor(key, shape=shape, dtype="float64") for key, shape in made.latent_shapes.items()]
    coordinates = () if made.covariates is None else plain_coordinates(made)
    scales = np.full(made.statistic.count, made.scale)
    logp = made.logp(value, a, w, sd, pt.as_tensor(scales), *latents, *coordinates)
    inputs = [value, a, w, sd, *latents]
    if gradient:
        return plain_function(inputs, [logp, *pytensor.grad(logp.sum(), inputs[1:])])
    return plain_function(inputs, logp)


def plain_coordinates(made):
    """Coordinates in which unknown numbers are what they are."""
    (count,) = made.latent_shapes["covariates"]
    return pt.as_tensor(np.zeros(count)), pt.as_tensor(np.eye(count))


@pytest.fixture(scope="module")
def private():
    """Two cells of private sizes, and the log density with its gradient."""
    made = density("clamped", noise="laplace", sizes_known=False, cells=("a", "b"))
    return made, compiled(made, gradient=True)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_density_is_that_of_noise_about_known_and_normal_sums(rng, private, noise):
    made, function = private
    laplace = noise == "laplace"
    if not laplace:
        made = density("clamped", sizes_known=False, cells=("a", "b"))
        function = compiled(made)
    numbers = rng.normal(size=made.latent_shapes["covariates"])
    shares, variances = np.array([0.4, 0.6]), rng.exponential(size=(1, 6))
    latents = [shares, numbers, *([variances] if laplace else [])]
    a, n = np.array([0.4, -0.2]), 300 * shares
    _, mean, covariance = made._plain(a, W, SD, *latents)
    moments = made.covariates.moments({"shares": shares, "covariates": numbers}, np)
    second = sum(size * (moments.within[0] + np.outer(m, m)) for size, m in zip(n, moments.means, strict=True))
    first, value = n[:, None] * moments.means, mean[0] + 5 * rng.normal(size=6)
    pairs = second[np.triu_indices(3)]
    released = np.array([*n, *first[0], value[0], *first[1], value[1], *pairs, *value[2:]])
    jitter = 5 * rng.normal(size=released.size)
    jitter[[5, 9, *range(16, 20)]] = 0.0
    alone = (stats.laplace if laplace else stats.norm)(scale=3.0).logpdf(jitter[jitter != 0]).sum()
    spread = np.diag(18.0 * variances[0] if laplace else np.full(6, 9.0))
    expected = alone + stats.multivariate_normal(mean[0], covariance[0] + spread).logpdf(value)
    found = np.ravel(function((released + jitter)[None], a, W, SD, *latents)[0])
    assert found[0] == pytest.approx(expected, rel=1e-9)


N = 120
RNG = np.random.default_rng(11)
X, PLACE = RNG.normal(size=(N, 2)), RNG.uniform(size=N)
GROUP = RNG.integers(0, 3, N)
Y = 1 + X @ [1.0, -0.5] + RNG.normal(size=N)
B = (Y > 1).astype(int)
BOUNDS = {"X": (-3, 3), "w": (0, 1), "y": (-6, 8)}


def linear():
    eta = pm.Normal("a", 0, 1) + pm.Data("X", X) @ pm.Normal("b", 0, 1, shape=2)
    pm.Normal("y", eta, pm.HalfNormal("s", 1), observed=Y)


def grouped():
    effect = pm.HalfNormal("tau", 1) * pm.Normal("z", 0, 1, shape=3)
    eta = effect[pm.Data("group", GROUP)] + pm.Normal("c", 0, 1) * pm.Data("w", PLACE)
    pm.Normal("y", eta, pm.HalfNormal("s", 1), observed=Y)


def varying():
    a, c, group = pm.Normal("a", 0, 1, shape=3), pm.Normal("c", 0, 1, shape=3), pm.Data("group", GROUP)
    pm.Bernoulli("y", logit_p=a[group] + c[group] * pm.Data("w", PLACE), observed=B)


def counts():
    pm.Poisson("y", pm.math.exp(pm.Normal("a", 0, 1) + pm.Normal("c", 0, 1) * pm.Data("w", PLACE)), observed=B)


CASES = {
    "linear, bounds": (linear, {}),
    "linear, norm": (linear, {"norms": {"X": 2.0}, "bounds": {"y": (-6, 8)}}),
    "linear, public": (linear, {"public": ("X",), "bounds": {"y": (-6, 8)}}),
    "linear, add_remove": (linear, {"neighbours": "add_remove", "n_max": 500}),
    "groups": (grouped, {}),
    "public groups": (grouped, {"public": ("group",)}),
    "varying slopes": (varying, {}),
    "counts": (counts, {"bounds": {"w": (0, 1), "y": (0, 4)}}),
}
GAUSSIAN = dp.Statistics(noise="gaussian")


def build(name):
    make, given = CASES[name]
    with pm.Model() as model:
        make()
    bounds = {key: ends for key, ends in BOUNDS.items() if key in model.named_vars}
    if model["y"].type.dtype != "float64":
        bounds.pop("y", None)
    return model, dp.Domain(**{"bounds": bounds, **given})


LINKS = ("varying slopes", "counts")
"""Cases whose sums put a polynomial in place of the likelihood: at δ = 0 only."""


def released(name, **options):
    model, domain = build(name)
    statistics = options.get("statistics", dp.Statistics() if name in LINKS else GAUSSIAN)
    delta = 0.0 if statistics.noise == "laplace" else 1e-5
    ledger = dp.Ledger(1.0, delta, neighbours=domain.neighbours)
    settings = {"statistics": statistics, "ledger": ledger, "delta": delta, **options}
    return dp.privatize(model, epsilon=1.0, domain=domain, **settings), domain


def at_start(private):
    """Log density at the start, by graphs as they were written: rewriting them would take longer than anything else."""
    return logp_of(private, private.initial_point())


def logp_of(model, point):
    values = model.value_vars
    function = pytensor.function(values, model.logp(), mode=Mode(linker="py", optimizer=None), on_unused_input="ignore")
    return float(function(*[point[value.name] for value in values]))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["linear, bounds", "linear, public", "groups", "varying slopes"])
def test_release_fits_another_model_as_it_does_the_first(name, tmp_path):
    private, _ = released(name)
    model, _ = build(name)
    path = dp.Release.of(private).save(tmp_path / "release.json")
    again = dp.condition(model, dp.Release.load(path))
    np.testing.assert_allclose(at_start(again), at_start(private), rtol=1e-9)


def test_without_noise_sums_are_those_of_clamped_scaled_rows():
    with dp.testing.without_noise():
        private, _ = released("linear, bounds")
    (table,) = dp.Release.of(private).tables.values()
    t, u = np.clip(X, -3, 3) / 3, np.clip((Y - 1) / 7, -1, 1)
    i, j = np.triu_indices(2)
    expected = [*t.sum(0), u.sum(), *(t[:, i] * t[:, j]).sum(0), *(u @ t), u @ u]
    np.testing.assert_allclose(table[0], expected, atol=N * 2.0**-19)


def test_without_noise_the_density_is_that_of_the_rows():
    with dp.testing.without_noise():
        private, _ = released("linear, bounds")
    model, _ = build("linear, bounds")
    points = [
        {"a": 1.0, "b": np.array([0.9, -0.4]), "s_log__": 0.1},
        {"a": 0.5, "b": np.array([1.2, 0.0]), "s_log__": 0.4},
    ]
    found = [np.subtract(*[logp_of(source, point) for point in points]) for source in (model, private)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4)


@pytest.mark.parametrize("form", [True, False], ids=["noise-aware", "plug-in"])
@pytest.mark.parametrize("name", LINKS)
def test_links_under_gaussian_noise_are_refused_before_anything_is_charged(name, form):
    (model, domain), ledger = build(name), dp.Ledger(1.0, 1e-5)
    asked = {"epsilon": 1.0, "delta": 1e-5, "statistics": dp.Statistics("gaussian", noise_aware=form)}
    for call in (dp.privatize, dp.sample):
        with pytest.raises(dp.errors.UnsupportedModelError, match="gradients of the likelihood itself") as caught:
            call(model=model, domain=domain, ledger=ledger, **asked)
        (problem,) = caught.value.problems
        assert "dp.sample(model=model, epsilon=..., delta=..., statistics=dp.Gradients())" in problem.remedy
        assert "at delta=0, sums with Laplace noise" in problem.remedy
    assert not ledger.history
