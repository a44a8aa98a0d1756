"""Clamping bounds what any row adds, changes nothing else, and goes with truncation, samplers and inspection."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from tests.zoo.every import ZOO
from tests.zoo.kind import N, people

FAST = "FAST_COMPILE"
Y = np.array([-0.3, 0.2, 0.9, 1.4, 7.0, 30.0])


def location():
    with pm.Model(coords={"row": range(6)}) as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        pm.Deterministic("twice", 2 * mu)
        pm.Normal("y", mu, 1.0, observed=Y, dims="row")
    return model


def by_hand(model, low, high):
    """Log-likelihood terms of all rows, clipped with NumPy."""
    terms = model.compile_logp(vars=model.observed_RVs, sum=False, jacobian=False, mode=FAST)

    def clipped(point):
        rows = [term.reshape(len(term), -1).sum(axis=1) for term in terms(point)]
        return [np.clip(np.nan_to_num(row, nan=low, neginf=low, posinf=high), low, high) for row in rows]

    return clipped


def points(model, rng, count=3):
    start = model.initial_point()
    return [
        {name: value + rng.normal(0, 0.7, size=np.shape(value)) for name, value in start.items()} for _ in range(count)
    ]


MODELS = "linear normal_mixture censored ordinal_regression several_outcomes votes_of_a_row logistic density_by_hand"


@pytest.mark.few(5)
@pytest.mark.parametrize("name", MODELS.split())
def test_terms_of_rows_are_those_of_the_model_clipped(name, rng):
    model = ZOO[name].build(people())
    new = dp.clamp(model, -2.0, -0.4)
    expected = by_hand(model, -2.0, -0.4)
    terms = new.compile_logp(vars=new.observed_RVs, sum=False, jacobian=False, mode=FAST)
    for point in points(model, rng):
        for found, term in zip(terms(point), expected(point), strict=True):
            assert found.shape == (N,)
            np.testing.assert_allclose(found, term, rtol=1e-6)
            assert found.min() >= -2.0 and found.max() <= -0.4


GARBAGE = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0])


@pytest.mark.parametrize(
    "likelihood",
    [
        lambda x, b: pm.Normal("y", b * x, 1.0, observed=np.arange(6.0)),
        lambda x, b: pm.Normal("y", 0.0, b * x, observed=np.arange(6.0)),
        lambda x, b: pm.Exponential("y", pt.exp(b), observed=x),
        lambda x, b: pm.Beta("y", pt.exp(b), x, observed=np.array([0, 1, 0.5, 0, 2, -1])),
        lambda x, b: pm.NegativeBinomial("y", mu=x, alpha=pt.exp(b), observed=np.array([-1, 0, 5, 2**60, 3, 4])),
        lambda x, b: pm.Bernoulli("y", p=x * b, observed=np.array([-1, 0, 1, 1, 0, 1])),
    ],
)
def test_no_row_leaves_the_bounds_whatever_it_holds(likelihood, rng):
    with pm.Model() as model:
        b = pm.Normal("b")
        x = pm.Data("x", np.ones(6))
        likelihood(x, b)
    new = dp.clamp(model, -5.0, 1.5)
    terms = new.compile_logp(vars=new.observed_RVs, sum=False, jacobian=False, mode=FAST)
    new["x"].set_value(GARBAGE)
    before = []
    for point in (0.3, -0.7, 60.0):
        (found,) = terms({"b": np.array(point)})
        assert (found >= -5.0).all() and (found <= 1.5).all(), "NaN is neither"
        before.append(found)
    changed = GARBAGE.copy()
    changed[3] = -4.0
    new["x"].set_value(changed)
    for point, term in zip((0.3, -0.7, 60.0), before, strict=True):
        (found,) = terms({"b": np.array(point)})
        np.testing.assert_array_equal(np.delete(found, 3), np.delete(term, 3), "one row decides for itself alone")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, 0, "must both be given"),
        (-1, None, "must both be given"),
        (0, 0, "low must be < high, got 0 and 0 for 'y'"),
        (1, -1, "low must be < high"),
        (-np.inf, 0, "low must be finite"),
        (-1, np.nan, "high must be finite"),
        ("a", 0, "low must be a number"),
        ({"yy": -1}, 0, "'yy' is no observed variable.*Did you mean 'y'"),
        ({"mu": -1}, 0, "'mu' is no observed variable"),
        ({"y": "a"}, 0, r"low\['y'\] must be a number"),
        ({"y": -1}, {"z": 0}, "name different variables|'z' is no observed variable"),
    ],
)
def test_wrong_bounds_are_refused(low, high, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.clamp(location(), low, high)


def test_models_without_a_term_per_row_are_refused():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        with pytest.raises(dp.errors.ArgumentError, match="nothing to clamp"):
            dp.clamp(model, -1, 0)
        pm.Normal("single", mu, 1, observed=0.5)
        pm.MvNormal("joint", np.zeros(3), np.eye(3), observed=np.zeros(3))
        pm.CustomDist("odd", mu, random=lambda mu, rng=None, size=None: rng.normal(mu, size=size), observed=np.zeros(3))
        for name, text in (("single", "is a scalar"), ("joint", "all rows together"), ("odd", "no log-density")):
            with pytest.raises(dp.errors.ArgumentError, match=text):
                dp.clamp(low={name: -1}, high=0)
    with pytest.raises(dp.errors.ArgumentError, match="clamped already"):
        dp.clamp(dp.clamp(location(), -3, -1), -2, -1)


@pytest.mark.slow
def test_any_density_is_bounded_whatever_its_operations():
    """An operation without a rule is refused by name; clamped, it may be anything."""
    with pm.Model() as model:
        a = pm.Uniform("a", 0.1, 0.2, shape=2)
        pm.StudentT("y", nu=4, mu=pt.cumsum(a)[1], sigma=1.0, observed=np.zeros(5))
    domain = dp.Domain(bounds={"y": (-1, 1)})
    with pytest.raises(dp.errors.UnsupportedModelError, match="CumOp"):
        dp.sensitivity(model, domain)
    found = dp.sensitivity(dp.clamp(model, -5.0, -1.0), domain)
    assert found.log_likelihood.value == pytest.approx(4.0)
    assert found.range.value == pytest.approx(8.0)
