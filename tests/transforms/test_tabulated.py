"""Private models of noised counts, whose densities are tabulated: copies, other observations and refits."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.model.fgraph import clone_model

import pymc_dp as dp

CELLS, ROWS = 4, 200
NUMPY = "FAST_COMPILE"


def rows(rng, n=ROWS):
    return np.resize(np.arange(CELLS), n), rng.integers(0, 2, n), rng.integers(0, 6, n)


def both(group, yes, many):
    """A yes or no and a count in groups around a common mean."""
    with pm.Model() as model:
        mu, z = pm.Normal("mu"), pm.Normal("z", shape=CELLS)
        index = pm.Data("group", group)
        pm.Bernoulli("yes", logit_p=(mu + z)[index], observed=yes)
        pm.Poisson("many", pm.math.exp(z)[index], observed=many)
    return model


DOMAIN = dp.Domain(bounds={"many": (0, 9)})


@pytest.fixture(scope="module")
def private():
    with dp.testing.insecure_randomness(3):
        return dp.privatize(both(*rows(np.random.default_rng(1))), epsilon=1.0, domain=DOMAIN)


def test_copies_have_the_same_density(private):
    point = private.initial_point()
    expected = private.compile_logp(mode=NUMPY)(point)
    for copy in (cloudpickle.loads(cloudpickle.dumps(private)), clone_model(private)):
        assert copy.compile_logp(mode=NUMPY)(point) == pytest.approx(expected, abs=1e-12)


def test_where_the_release_is_overwritten_there_is_no_density(private):
    copy = cloudpickle.loads(cloudpickle.dumps(private))
    evaluate = copy.compile_logp(mode=NUMPY)
    value = copy.rvs_to_values[copy["yes"]]
    value.set_value(value.get_value() + 1)
    assert np.isnan(evaluate(copy.initial_point()))


def test_a_refit_has_the_same_density(private, rng):
    again = dp.condition(both(*rows(rng)), dp.Release.of(private))
    point = private.initial_point()
    assert again.compile_logp(mode=NUMPY)(point) == pytest.approx(private.compile_logp(mode=NUMPY)(point), abs=1e-9)
