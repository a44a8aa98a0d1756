"""Plans made from public knowledge, and releases whose noise is what the plan says."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.accounting import total_epsilon, zcdp
from pymc_dp.accounting.calibrate import with_noise_times
from pymc_dp.accounting.pure import pure_epsilon
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import draw_release, plan_release

pytestmark = pytest.mark.usefixtures("paid")

CHANCE = 1e-6
Y = np.resize([0, 1, 1], 30)
GROUP = np.resize([0, 1, 2], 30)


def model_of(*, grouped=False, others=False):
    with pm.Model(coords={"group": range(3)}) as model:
        g = pm.Data("g", GROUP)
        pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="group")[g] if grouped else pm.Beta("p", 1, 1), observed=Y)
        if others:
            pm.Categorical("k", pm.Dirichlet("q", pt.ones(3)), observed=GROUP)
            pm.Normal("x", pm.Normal("m", dims="group")[g], pm.HalfNormal("s"), observed=GROUP * 30.0)
    return model


def plan_of(model, epsilon=1.0, statistics=None, delta=0.0, **domain):
    return plan_release(inspect(model, dp.Domain(**domain)).sums, statistics or dp.Statistics(), epsilon, delta)


@pytest.mark.parametrize(
    ("domain", "grouped", "scale"),
    [
        ({}, False, 1), ({}, True, 2), ({"public": ["g"]}, True, 1),
        ({"neighbours": "add_remove", "n_max": 99}, False, 1), ({"neighbours": "add_remove", "n_max": 99}, True, 1),
    ],
)  # fmt: skip
def test_noise_is_the_least_that_the_sensitivity_allows(domain, grouped, scale):
    (table,) = plan_of(model_of(grouped=grouped), epsilon=0.5, **domain).tables
    assert table.scales == pytest.approx([scale / 0.5] * len(table.labels))


def test_every_column_of_a_release_has_the_noise_its_plan_states():
    plan = plan_of(model_of(others=True, grouped=True), bounds={"x": (0, 100)})
    with dp.testing.without_noise():
        exact = draw_release(plan).values
    draws = [draw_release(plan).values for _ in range(300)]
    for table in plan.tables:
        noise = np.array([draw[table.name] for draw in draws]) - exact[table.name]
        for column, scale in enumerate(table.scales):
            sample = noise[..., column].ravel()
            fine = stats.laplace(scale=scale)
            spread = np.abs(sample).mean() / (1 / np.sinh(1 / scale) if table.name != "x" or column == 0 else scale)
            assert spread == pytest.approx(1, abs=5.5 / np.sqrt(len(sample)))
            if table.name == "x" and column > 0:
                assert stats.kstest(sample, fine.cdf).pvalue > CHANCE


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 0.7, 1.0, 2.9])
@pytest.mark.parametrize("share", [None, {"y": 1, "k": 2, "x": 7}, {"y": 0.1, "k": 0.2, "x": 0.3}])
def test_parts_never_cost_more_than_the_whole_and_use_it_up(epsilon, share):
    plan = plan_of(model_of(others=True), epsilon, dp.Statistics(share=share), bounds={"x": (0, 100)})
    assert epsilon * (1 - 1e-12) < pure_epsilon(plan.event) <= epsilon
    weights = share or {"y": 1, "k": 1, "x": 1}
    for table in plan.tables:
        assert pure_epsilon(table.event) == pytest.approx(epsilon * weights[table.name] / sum(weights.values()))


def test_each_block_is_charged_for_the_noise_it_gets():
    plan = plan_of(model_of(others=True), bounds={"x": (0, 100)})
    for table in plan.tables:
        assert sorted(c for block in table.blocks for c in block.columns) == list(range(len(table.labels)))
        for block in table.blocks:
            assert block.event.scale == block.scale
            assert block.event.sensitivity == block.sensitivity.l1
            assert table.scales[list(block.columns)] == pytest.approx(block.scale * np.array(block.steps))


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"noise": "gausian"}, ["noise", "'laplace'", "'gausian'"]),
        ({"noise_aware": "yes"}, ["noise_aware", "True or False", "'yes'"]),
        ({"mechanism": "histogram"}, ["mechanism", "None", "'histogram'"]),
        ({"share": {"y": 0}}, ["share['y']", "> 0", "0"]),
        ({"share": {"y": float("nan")}}, ["share['y']", "finite", "nan"]),
        ({"share": {"y": 1, "kk": 1, "x": 1}}, ["'kk'", "known: ['y', 'k', 'x']", "Did you mean 'k'?"]),
        ({"share": {"y": 1, "k": 1}}, ["leaves out ['x']", "weight > 0"]),
    ],
)
def test_wrong_arguments_are_refused_with_value_range_and_way_out(arguments, texts):
    with pytest.raises(dp.errors.ArgumentError) as caught:
        plan_of(model_of(others=True), statistics=dp.Statistics(**arguments), bounds={"x": (0, 100)})
    for text in texts:
        assert text in str(caught.value)


# --- Gaussian noise --------------------------------------------------------------------------------------------------

GAUSSIAN = dp.Statistics("gaussian")


@pytest.mark.few(3)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1 / 3, 1e-6), (1.0, 1e-6), (2.9, 1e-3)])
@pytest.mark.parametrize("share", [None, {"y": 1, "k": 2, "x": 7}])
def test_gaussian_noise_never_costs_more_than_asked_and_is_the_least_there_is(epsilon, delta, share):
    statistics = dp.Statistics("gaussian", share=share)
    plan = plan_of(model_of(others=True), epsilon, statistics, delta, bounds={"x": (0, 100)})
    assert total_epsilon(plan.event, delta).epsilon <= epsilon
    assert total_epsilon(with_noise_times(plan.event, 0.999), delta).epsilon > epsilon
    whole = zcdp.rho(plan.event)
    weights = share or {"y": 1, "k": 1, "x": 1}
    for table in plan.tables:
        assert zcdp.rho(table.event) / whole == pytest.approx(weights[table.name] / sum(weights.values()))
        assert total_epsilon(table.event, delta).epsilon < epsilon


@pytest.mark.parametrize(
    ("domain", "grouped", "l2_squared"),
    [
        ({}, False, 1), ({}, True, 2), ({"public": ["g"]}, True, 1),
        ({"neighbours": "add_remove", "n_max": 99}, False, 1), ({"neighbours": "add_remove", "n_max": 99}, True, 1),
    ],
)  # fmt: skip
def test_gaussian_noise_is_the_least_that_the_sensitivity_allows(domain, grouped, l2_squared):
    (one,) = plan_of(model_of(), 0.5, GAUSSIAN, 1e-5).tables
    (table,) = plan_of(model_of(grouped=grouped), 0.5, GAUSSIAN, 1e-5, **domain).tables
    assert table.scales == pytest.approx([l2_squared**0.5 * one.scales[0]] * len(table.labels), rel=1e-3)


@pytest.mark.parametrize(
    ("noise", "delta", "texts"),
    [("gaussian", 0.0, ["delta > 0", "delta=1e-6", 'Statistics(noise="laplace")']),
     ("laplace", 1e-6, ["delta=1e-06", "pure ε", "delta=0", 'Statistics(noise="gaussian")'])],
)  # fmt: skip
def test_a_delta_that_does_not_fit_the_noise_is_refused_with_a_way_out(noise, delta, texts):
    with pytest.raises(dp.errors.ArgumentError) as caught:
        plan_of(model_of(), 1.0, dp.Statistics(noise), delta)
    for text in texts:
        assert text in str(caught.value)
