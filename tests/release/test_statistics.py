"""The noise of a release: what its record states is drawn and charged, split as asked for, and all of the budget."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
CHANCE = 1e-6
GROUP = np.resize([0, 1, 2], 30)
HIDDEN = {"neighbours": "add_remove", "n_max": 99}


def model_of(*, grouped=False, others=False, cells=3):
    with pm.Model(coords={"group": range(cells)}) as model:
        g = pm.Data("g", GROUP)
        p = pm.Beta("p", 1, 1, dims="group" if grouped else None)
        pm.Bernoulli("y", p[g] if grouped else p, observed=np.resize([0, 1, 1], 30))
        if others:
            pm.Categorical("k", pm.Dirichlet("q", pt.ones(3)), observed=GROUP)
            pm.Normal("x", pm.Normal("m", dims="group")[g], pm.HalfNormal("s"), observed=GROUP * 30.0)
    return model


def released(model, epsilon=1.0, delta=0.0, noise=None, share=None, **domain):
    """A release, and what its ledger says that it costs."""
    ledger = dp.Ledger(epsilon, delta, neighbours=domain.get("neighbours", "replace"))
    statistics = dp.Statistics(noise or ("gaussian" if delta else "laplace"), share=share)
    given = {"epsilon": epsilon, "delta": delta, "domain": dp.Domain(**domain), "statistics": statistics}
    release = dp.Release.of(dp.privatize(model, **given, ledger=ledger))
    (entry,) = ledger.history
    assert release.record.epsilon == entry.alone.epsilon and entry.event.to_dict() == release.record.event
    return release


@pytest.mark.parametrize(
    ("domain", "grouped", "l1"),
    [({}, False, 1), ({}, True, 2), ({"public": ["g"]}, True, 1), (HIDDEN, False, 1), (HIDDEN, True, 1)],
)
def test_noise_is_the_least_that_the_sensitivity_allows(domain, grouped, l1):
    (table,) = released(model_of(grouped=grouped), 0.5, **domain).record.tables
    assert table.scales == pytest.approx([l1 / 0.5] * len(table.columns))
    (one,), (table,) = (
        released(model_of(grouped=own), 0.5, 1e-5, **where).record.tables
        for own, where in ((False, {}), (grouped, domain))
    )
    assert table.scales == pytest.approx([l1**0.5 * one.scales[0]] * len(table.columns), rel=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_column_of_a_release_has_the_noise_its_record_states(delta):
    model = model_of(others=True, grouped=True, cells=6000)
    with dp.testing.insecure_randomness(3):
        found = released(model, delta=delta, bounds={"x": (0, 100)})
    with dp.testing.without_noise():
        exact = released(model, delta=delta, bounds={"x": (0, 100)})
    for table in found.record.tables:
        noise = found.tables[table.name] - exact.tables[table.name]
        for column, scale in enumerate(table.scales if len(noise) > 3 else ()):
            fine, on_grid = (stats.norm if delta else stats.laplace)(scale=scale), table.name != "x" or column == 0
            draws = noise[:, column] + (np.random.default_rng(1).uniform(-0.5, 0.5, len(noise)) if on_grid else 0)
            assert stats.kstest(draws, fine.cdf).pvalue > CHANCE
            assert stats.kstest(draws * np.sqrt(2), fine.cdf).pvalue < CHANCE


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1 / 3, 0.0), (2.9, 0.0), (0.1, 1e-9), (2.9, 1e-3)])
@pytest.mark.parametrize("share", [None, {"y": 1, "k": 2, "x": 7}])
def test_parts_never_cost_more_than_the_whole_and_use_it_up(epsilon, delta, share):
    """By ε of Laplace noise, by ρ of Gaussian noise; each block is charged for the noise that it gets."""
    record = released(model_of(others=True), epsilon, delta, share=share, bounds={"x": (0, 100)}).record
    assert epsilon * (1 - (1e-3 if delta else 1e-12)) < record.epsilon <= epsilon
    weights, events, spent = share or {"y": 1, "k": 1, "x": 1}, list(record.event["events"]), {}
    for table in record.tables:
        blocks = table.plan["blocks"]
        assert sorted(c for block in blocks for c in block["columns"]) == list(range(len(table.columns)))
        for block in blocks:
            event, claim = events.pop(0), block["sensitivity"]
            charged = event["l2_squared"] == claim["l2_squared"] if delta else event["sensitivity"] == claim["l1"]
            assert charged and event["scale"] == block["scale"]
            assert [table.scales[c] for c in block["columns"]] == pytest.approx(
                block["scale"] * np.array(block["steps"])
            )
            cost = event["l2_squared"] / event["scale"] ** 2 if delta else event["sensitivity"] / event["scale"]
            spent[table.name] = spent.get(table.name, 0) + cost
    for name, cost in spent.items():
        assert cost / sum(spent.values()) == pytest.approx(weights[name] / sum(weights.values()))
    assert not events and (delta or sum(spent.values()) == pytest.approx(epsilon))


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
        ({"noise": "gaussian"}, ["delta > 0", "delta=1e-6", 'Statistics(noise="laplace")']),
        ({"noise": "laplace", "delta": 1e-6}, ["delta=1e-06", "pure ε", "delta=0", 'Statistics(noise="gaussian")']),
    ],
)
def test_wrong_arguments_are_refused_with_value_range_and_way_out(arguments, texts):
    given = {"delta": 0.0, **arguments}
    delta = given.pop("delta")
    with pytest.raises(dp.errors.ArgumentError) as caught:
        dp.privatize(
            model_of(others=True), epsilon=1.0, delta=delta, statistics=dp.Statistics(**given),
            domain=dp.Domain(bounds={"x": (0, 100)}),
        )  # fmt: skip
    assert all(text in str(caught.value) for text in texts)
