"""Several releases in one posterior: their densities multiply, and the record says what each data set has lost."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.transforms.cell_sizes import Sizes
from pymc_dp.transforms.privatize import record_of

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore:The density:pymc_dp.errors.PosteriorWarning"),
]
DUMMIES, ENDS = np.zeros(2, dtype=int), np.array([-1.0, 1.0])
STATED = {"noise": "discrete gaussian", "made_by": "an office", "guarantee": "zCDP"}


def answers(rows=DUMMIES):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=rows)
    return model


def released(rows, epsilon=1.0, ledger=None, **given):
    ledger = dp.Ledger(10.0, 1e-3 if given else 0.0) if ledger is None else ledger
    return dp.Release.of(dp.privatize(answers(rows), epsilon=epsilon, ledger=ledger, **given))


@pytest.fixture(scope="module")
def hospitals():
    rng = np.random.default_rng(8)
    return [released(rng.binomial(1, 0.3, 400)), released(rng.binomial(1, 0.4, 300), 0.5)]


def density(model, point):
    """Of what was released alone, without the priors; value variables may have other names."""
    values = {value.name: point[model.values_to_rvs[value].name] for value in model.value_vars}
    return model.compile_fn(model.observedlogp, inputs=model.value_vars)(values)


def test_densities_of_sums_multiply(hospitals):
    together = dp.condition(answers(), hospitals)
    assert [rv.name for rv in together.observed_RVs] == ["y_1", "y_2"]
    for at in (-1.0, 0.0, 0.7):
        apart = [density(dp.condition(answers(), one), {"p": np.array(at)}) for one in hospitals]
        assert density(together, {"p": np.array(at)}) == pytest.approx(sum(apart), rel=1e-12)


def test_a_likelihood_of_its_own_is_found_by_its_label(hospitals):
    """An effect of the year: y_2025 is about the table y of release 2025."""
    with pm.Model() as years:
        base, effect = pm.Normal("base"), pm.Normal("effect", 0, 0.5, shape=2)
        for place, year in enumerate(("2025", "2026")):
            pm.Bernoulli(f"y_{year}", logit_p=base + effect[place], observed=DUMMIES)
    together = dp.condition(years, dict(zip(("2025", "2026"), hospitals, strict=True)))
    assert [rv.name for rv in together.observed_RVs] == ["y_2025", "y_2026"]
    shares = 1 / (1 + np.exp(-(0.2 + np.array([-0.4, 0.3]))))
    apart = [
        density(dp.condition(answers(), one), {"p": np.log(share) - np.log1p(-share)})
        for one, share in zip(hospitals, shares, strict=True)
    ]
    found = density(together, {"base": np.array(0.2), "effect": np.array([-0.4, 0.3])})
    assert found == pytest.approx(sum(apart), rel=1e-9)


def test_the_record_says_what_each_data_set_has_lost(hospitals):
    record = record_of(dp.condition(answers(), hospitals))[0]
    assert record.epsilon == hospitals[0].epsilon > hospitals[1].epsilon
    assert [source["record"]["epsilon"] for source in record.sources] == [one.epsilon for one in hospitals]
    assert record.guarantee == "exact" and record.noise == "discrete Laplace"
    assert "release 1: number of rows: 400" in record.assumptions


@pytest.mark.parametrize("ending", ["json", "nc"])
def test_a_release_of_several_travels_and_comes_apart(hospitals, ending, tmp_path):
    together = dp.Release.of(dp.condition(answers(), hospitals))
    found = dp.Release.load(together.save(tmp_path / f"r.{ending}"))
    assert found.record == together.record
    point = {"p": np.array(0.3)}
    expected = density(dp.condition(answers(), hospitals), point)
    assert density(dp.condition(answers(), found), point) == pytest.approx(expected, rel=1e-12)
    for (label, one), given in zip(found.apart, hospitals, strict=True):
        assert one.record == given.record and np.array_equal(one.tables["y"], given.tables["y"]), label


def test_each_likelihood_needs_a_release_and_each_release_a_likelihood(hospitals):
    with answers() as model:
        pm.Bernoulli("z", pm.Beta("q", 1, 1), observed=DUMMIES)
    with pytest.raises(dp.errors.UnsupportedModelError, match="z: no table of this name"):
        dp.condition(model, hospitals)
    counts = dp.Release.of_counts({"count": [3, -4, 9]}, 5.0, dims="area", **STATED)
    with pytest.raises(
        dp.errors.UnsupportedModelError, match=r"release 3: the model has no likelihood that it is about \(count"
    ):
        dp.condition(answers(), [*hospitals, counts])


def counted(**dims):
    """A model of rows, whose groups index a parameter."""
    with pm.Model(coords=dims) as model:
        share = pm.Beta("p", 1, 1, dims="g")
        pm.Bernoulli("y", share[pm.Data("group", np.arange(3))], observed=np.zeros(3, dtype=int))
    return model


@pytest.mark.slow
def test_counts_by_level_of_others_stand_for_rows():
    """Against sums over the exact counts, and an integral over the size of a cell."""
    values = np.array([[210, 92], [105, 47], [26, 14]])
    release = dp.Release.of_counts({"y": values}, 4.0, dims=("group", "y"), **STATED)
    private = dp.condition(counted(g=["a", "b", "c"]), release)
    record = record_of(private)[0]
    assert record.tables[0].columns == ("count of 0", "count of 1") and record.maker["made_by"] == "an office"
    assert "at most 553 rows" in record.tables[0].approximations[0]
    sizes, counts, found = np.arange(0.5, 553.0, 0.5), np.arange(500)[:, None], []
    noise = np.exp(-0.5 * ((values.ravel() - counts) / 4.0) ** 2)
    known = Sizes(public=False, bound=np.full(3, 553), n_private=3, kind="gaussian")
    prior = (1 + known.shown_by(values, 4.0, at_most=True).rate * sizes) ** -2.0
    for share in (0.31, 0.45):
        expected = 0.0
        for cell in range(3):
            given = [
                stats.poisson.pmf(counts, sizes * part).T @ noise[:, 2 * cell + level]
                for level, part in enumerate((1 - share, share))
            ]
            expected += np.log((given[0] * given[1] * prior).sum())
        found.append(density(private, {"p": np.full(3, np.log(share) - np.log1p(-share))}) - expected)
    assert found[0] == pytest.approx(found[1], abs=0.01)
    again = dp.condition(counted(g=["a", "b", "c"]), dp.Release.of(private))
    assert density(again, {"p": np.zeros(3)}) == pytest.approx(density(private, {"p": np.zeros(3)}), rel=1e-12)
