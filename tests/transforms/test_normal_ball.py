"""A normal prior of a vector in a ball: its density, its transform, its draws, and what `truncate` makes it of."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.errors import ArgumentError
from pymc_dp.transforms.restricted_priors import BallTransform


def model_of(**given):
    with pm.Model(coords={"term": ["a", "b", "c"]}) as model:
        w = pm.Normal("w", 0.0, 2.0, dims="term", **given)
        pm.Normal("y", pm.Data("x", np.ones((4, 3))) @ w, 1.0, observed=np.zeros(4))
    return model


@pytest.fixture(scope="module")
def ball():
    return dp.truncate(model_of(), norms={"w": 1.5})


def test_the_density_is_the_normal_one_inside_and_none_outside(ball):
    value = np.array([[0.5, -1.0, 0.2], [0.0, 0.0, 0.0], [1.5, 0.1, 0.0]])
    found = [float(pm.logp(ball["w"], one).eval()) for one in value]
    expected = stats.norm(0, 2).logpdf(value).sum(axis=1)
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1])
    assert found[2] == -np.inf


@pytest.mark.slow
def test_the_transform_is_a_bijection_with_its_jacobian(rng):
    transform, radius = BallTransform(), 1.5
    for _ in range(5):
        z = rng.normal(size=3) * 10.0 ** rng.uniform(-2, 1)
        w = transform.backward(z, radius).eval()
        assert np.linalg.norm(w) < radius
        assert transform.forward(w, radius).eval() == pytest.approx(z, rel=1e-6)
        step = 1e-6 * max(1.0, abs(z).max())
        columns = [
            (transform.backward(z + h, radius).eval() - transform.backward(z - h, radius).eval()) / (2 * step)
            for h in step * np.eye(3)
        ]
        found = float(transform.log_jac_det(np.asarray(z), radius).eval())
        assert found == pytest.approx(np.linalg.slogdet(np.array(columns))[1], abs=1e-3)
    assert np.linalg.norm(transform.backward(np.full(3, 1e100), radius).eval()) <= radius


@pytest.mark.slow
def test_draws_lie_within_and_have_the_right_length(ball):
    found = np.linalg.norm(pm.draw(ball["w"], 3000, random_seed=1), axis=1)
    assert found.max() <= 1.5
    chi = stats.chi(3, scale=2.0)
    assert stats.kstest(found, lambda x: chi.cdf(x) / chi.cdf(1.5)).pvalue > 1e-3


def several():
    with pm.Model() as model:
        pm.Normal("mean", 0.0, 1.0)
        pm.Normal("shifted", 0.1, 1.0, shape=2)
        pm.Normal("uneven", 0.0, np.array([1.0, 2.0]), shape=2)
        pm.Normal("deep", 0.0, pm.HalfNormal("s", 1.0), shape=2)
        pm.Laplace("other", 0.0, 1.0, shape=2)
        pm.Normal("table", 0.0, 1.0, shape=(2, 2))
        pm.Normal("w", 0.0, 1.0, shape=2)
        pm.Normal("far", 0.0, 1.0, shape=2, initval=np.array([3.0, 0.0]))
    return model


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"norms": {"mean": 1.0}}, "two entries or more"),
        ({"norms": {"shifted": 1.0}}, "mean 0 and one sd"),
        ({"norms": {"uneven": 1.0}}, "mean 0 and one sd"),
        ({"norms": {"deep": 1.0}}, "numbers"),
        ({"norms": {"other": 1.0}}, "normal prior"),
        ({"norms": {"table": 1.0}}, "two entries or more"),
        ({"norms": {"w": 0.0}}, "> 0"),
        ({"norms": {"w": np.inf}}, "norms"),
        ({"norms": {"w": 1.0}, "bounds": {"w": (-1, 1)}}, "one of them"),
        ({"norms": {"v": 1.0}}, "no free variable"),
        ({"norms": {"far": 1.0}}, "initval"),
        ({"norms": [1.0]}, "map names"),
    ],
)
def test_what_has_no_ball_is_refused(given, text):
    with pytest.raises(ArgumentError, match=text):
        dp.truncate(several(), **given)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("scale", [lambda x: x.std(), lambda x: abs(x[0, 0]), lambda x: abs(x[0])])
def test_no_prior_keeps_what_it_was_computed_from(scale, shared):
    """A number in the place of the rows that it came from would hide from inspection that the prior looks at rows."""
    rows = np.full((4, 2), 0.25)
    with pm.Model() as model:
        x = pm.Data("x", rows) if shared else pt.as_tensor(rows)
        w = pm.Normal("w", 0.0, scale(x), shape=2)
        pm.Bernoulli("y", logit_p=x @ w, observed=[0, 1, 1, 0])
    with pytest.raises(ArgumentError, match="arrays"):
        dp.truncate(model, norms={"w": 1.0})
