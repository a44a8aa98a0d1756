import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.errors import PrivacyError, UnsupportedModelError
from pymc_dp.step_methods.annealing.particles import prior_draws, prior_problems
from tests.step_methods.annealing.conftest import annealing


def test_hierarchies_are_drawn_from_the_top(rng):
    with pm.Model() as prior_model:
        top = pm.Normal("top", 3.0, 1.0)
        pm.Normal("low", top, 0.1, shape=2)
    everywhere = {"top": (np.array(-np.inf), np.array(np.inf)), "low": (np.full(2, -np.inf), np.full(2, np.inf))}
    found = prior_draws(prior_model, everywhere, 200, rng)
    assert found["top"].shape == (200,) and found["low"].shape == (200, 2)
    assert stats.kstest(found["top"], stats.norm(3, 1).cdf).pvalue > 1e-3
    assert np.abs(found["low"] - found["top"][:, None]).max() < 0.5
    assert prior_draws(prior_model, everywhere, 1, rng)["low"].shape == (1, 2)


def test_a_draw_beyond_its_bounds_is_refused(rng):
    """All ranges rest on the bounds."""
    with pm.Model() as prior_model:
        pm.Normal("x")
    with pytest.raises(PrivacyError, match="outside of the bounds"):
        prior_draws(prior_model, {"x": (np.array(0.0), np.array(0.1))}, 50, rng)


def _with_potential():
    pm.Potential("extra", -(pm.Uniform("p", 0.1, 0.9) ** 2))


def _ordered():
    pm.Normal("x", shape=2, transform=pm.distributions.transforms.ordered, initval=[0.0, 1.0])


def _without_draws():
    pm.HalfFlat("x")


@pytest.mark.parametrize(
    ("prior", "what"),
    [(_with_potential, "Potential"), (_ordered, "transform set by hand"), (_without_draws, "cannot be drawn")],
)
def test_priors_that_cannot_be_drawn_are_problems(prior, what):
    with pm.Model() as prior_model:
        prior()
    (problem,) = prior_problems(prior_model)
    assert what in str(problem) and "TemperedGibbs" in str(problem)


def test_they_are_refused_before_anything_is_priced():
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.Potential("extra", -(p**2))
        pm.Bernoulli("y", p, observed=np.array([0, 1]))
    with pytest.raises(UnsupportedModelError, match="extra: a Potential changes the prior"):
        annealing(model, read=False)
