"""Which private models take tables: those of the release as it is held, however they are copied or changed."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.model.fgraph import clone_model
from pytensor.graph.traversal import ancestors

import pymc_dp as dp
from pymc_dp.testing import insecure_randomness
from pymc_dp.transforms.cell_tables import TableLogp

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
    with insecure_randomness(3):
        return dp.privatize(both(*rows(np.random.default_rng(1))), epsilon=1.0, domain=DOMAIN)


def tables_in(graph):
    return sum(isinstance(var.owner.op, TableLogp) for var in ancestors([graph]) if var.owner is not None)


def test_copies_take_tables_too(private):
    point = private.initial_point()
    expected = private.compile_logp(mode=NUMPY)(point)
    for copy in (cloudpickle.loads(cloudpickle.dumps(private)), clone_model(private)):
        assert tables_in(copy.logp()) == 2
        assert copy.compile_logp(mode=NUMPY)(point) == pytest.approx(expected, abs=1e-12)


def test_where_the_release_is_overwritten_there_is_no_density(private):
    copy = cloudpickle.loads(cloudpickle.dumps(private))
    evaluate = copy.compile_logp(mode=NUMPY)
    value = copy.rvs_to_values[copy["yes"]]
    value.set_value(value.get_value() + 1)
    assert np.isnan(evaluate(copy.initial_point()))


def test_a_refit_has_tables_of_its_own(private, rng):
    again = dp.condition(both(*rows(rng)), dp.Release.of(private))
    assert tables_in(again.logp()) == 2
    point = private.initial_point()
    assert again.compile_logp(mode=NUMPY)(point) == pytest.approx(private.compile_logp(mode=NUMPY)(point), abs=1e-9)
