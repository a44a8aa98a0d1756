"""Regressions on continuous columns: releases from the rows to the private model."""

import numpy as np
import pymc as pm
import pytensor
import pytest
from pytensor.compile.mode import Mode

import pymc_dp as dp

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


PLUG_IN = ["linear, bounds", "linear, norm", "linear, public", "groups", "public groups", LINKS[0]]


@pytest.mark.few(4, cases="all")
@pytest.mark.parametrize("name", PLUG_IN)
def test_the_plug_in_form_of_exact_sums_is_the_likelihood_of_the_rows(name, rng):
    """Of links within what a polynomial is off by."""
    noise = "laplace" if name in LINKS else "gaussian"
    with dp.testing.without_noise():
        private, _ = released(name, statistics=dp.Statistics(noise, noise_aware=False))
    model, _ = build(name)
    if name == "linear, norm":
        x = model["X"].get_value()
        model["X"].set_value(x * np.minimum(1, 2 / np.linalg.norm(x, axis=1, keepdims=True)))
    start = model.initial_point()
    points = [{key: value + 0.3 * rng.normal(size=value.shape) for key, value in start.items()} for _ in range(4)]
    found, exact = (np.diff([logp_of(source, point) for point in points]) for source in (private, model))
    assert np.abs(found - exact).max() < (0.4 if name in LINKS else 1e-4) * np.abs(exact).max()


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
