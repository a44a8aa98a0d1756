"""Which private models take tables: those of the release as it is held, however they are copied or changed."""

from dataclasses import replace

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.model.fgraph import clone_model
from pytensor.graph.traversal import ancestors

import pymc_dp as dp
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.transforms.cell_tables import TableLogp
from pymc_dp.transforms.tabulated import holds

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


def tables_in(graph):
    return sum(isinstance(var.owner.op, TableLogp) for var in ancestors([graph]) if var.owner is not None)


def test_both_observed_variables_have_tables_and_their_density_is_that_of_the_graph(private):
    assert tables_in(private.logp()) == 2
    for name in ("yes", "many"):
        value = private.rvs_to_values[private[name]]
        (held,), (other,) = (private.logp([private[name]], sum=False), of_other_value(private, name))
        assert tables_in(held) == 1 and tables_in(other) == 0
        point = {"mu": 0.3, "z": np.array([-1.0, 0.2, 0.7, 2.0])}
        inputs = [private.rvs_to_values[private[item]] for item in point]
        found = plain_function(inputs, held)(*point.values())
        expected = plain_function([*inputs, other.tag.value], other)(*point.values(), value.get_value())
        np.testing.assert_allclose(found, expected, atol=1e-6)


def of_other_value(private, name):
    """Log density of a value that is an input."""
    rv = private[name]
    value = pt.matrix("value", shape=private.rvs_to_values[rv].type.shape)
    (found,) = private.replace_rvs_by_values([pm.logp(rv, value)])
    found.tag.value = value
    return (found,)


def test_copies_take_tables_too(private):
    point = private.initial_point()
    expected = private.compile_logp(mode=NUMPY)(point)
    for copy in (cloudpickle.loads(cloudpickle.dumps(private)), clone_model(private)):
        assert tables_in(copy.logp()) == 2
        assert copy.compile_logp(mode=NUMPY)(point) == pytest.approx(expected, abs=1e-12)


def test_a_parameter_that_is_fixed_leaves_the_tables_of_the_others(private):
    changed = pm.do(private, {"mu": 0.3})
    assert tables_in(changed.logp()) == 2
    point = {"z": np.array([-1.0, 0.2, 0.7, 2.0])}
    found = changed.compile_logp(mode=NUMPY)(point)
    prior = -0.5 * 0.3**2 - 0.5 * np.log(2 * np.pi)
    assert found + prior == pytest.approx(private.compile_logp(mode=NUMPY)({"mu": 0.3, **point}), abs=1e-6)


def test_another_observation_has_no_table(private):
    table = private.rvs_to_values[private["yes"]].get_value() + 1
    changed = pm.observe(private, {"yes": table})
    assert tables_in(changed.logp()) == 1
    assert np.isfinite(changed.compile_logp(mode=NUMPY)(changed.initial_point()))


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


@pytest.mark.slow
def test_second_derivatives_are_those_of_the_graph(private):
    point = {"mu": 0.3, "z": np.array([-1.0, 0.2, 0.7, 2.0])}
    second = private.compile_d2logp(negate_output=False, mode=NUMPY)
    slope, step = private.compile_dlogp(mode=NUMPY), 1e-4
    rise = slope({**point, "mu": 0.3 + step}) - slope({**point, "mu": 0.3 - step})
    np.testing.assert_allclose(second(point)[0], rise / (2 * step), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "statistics", [dp.Statistics(noise_aware=False), dp.Statistics(mechanism=dp.networks.LaplaceUpdates())]
)
def test_the_plug_in_form_has_no_tables(statistics):
    with pm.Model() as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=np.resize([0, 1], 30))
        pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a], observed=np.resize([0, 1, 1], 30))
    made = dp.privatize(model, epsilon=1.0, statistics=replace(statistics, noise_aware=False))
    assert tables_in(made.logp()) == 0


def test_a_release_is_known_by_what_it_holds():
    release = np.arange(4.0).reshape(2, 2)
    assert holds(pytensor.shared(release), release) and holds(pt.constant(release), release)
    assert not holds(pytensor.shared(release + 1), release) and not holds(pt.matrix("value"), release)
