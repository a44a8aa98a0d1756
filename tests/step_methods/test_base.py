"""What every private step method promises, shown on the one that is least in the way: OPS."""

import logging
import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.audit import contains_canary, differing, plant
from pymc_dp.errors import (
    ArgumentError,
    BudgetExceeded,
    PrivacyError,
    ReleaseError,
    RepeatedReleaseWarning,
    TraceError,
    UnsupportedModelError,
)
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.base import SPENT
from pymc_dp.step_methods.ops import OPS
from pymc_dp.transforms.likelihood import TableLikelihood
from tests.step_methods.conftest import bernoulli, domain

ANSWERS = np.arange(60) % 3 == 0
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
PLAIN = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


def test_a_specification_needs_no_model_and_does_nothing_alone():
    step = OPS()
    assert repr(step) == "OPS()" and repr(OPS(grid=100)) == "OPS(grid=100)"
    with pytest.raises(ArgumentError, match=r"has no budget.*dp.OPS\(epsilon=..., chains=...\)"):
        step.setup_chain(None, 0, 1)
    with pytest.raises(ArgumentError, match="mean nothing"):
        OPS(delta=1e-6)


def test_trace_of_dp_sample_holds_the_draws_and_what_they_cost():
    tree = dp.sample(3, tune=2, chains=2, epsilon=1.0, step=OPS(), model=bernoulli(ANSWERS), **QUIET)
    assert set(tree.children) == {"posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats", "privacy"}
    assert tree["posterior"]["p"].shape == (2, 3) and tree["warmup_posterior"]["p"].shape == (2, 2)
    assert list(tree["sample_stats"].data_vars) == [SPENT]
    # Of both chains, tuning included.
    np.testing.assert_allclose(tree["sample_stats"][SPENT].values, [[0.6, 0.8, 1.0]] * 2)
    assert (tree.dp.epsilon, tree.dp.delta, tree.dp.guarantee, tree.dp.arithmetic) == (1.0, 0.0, "exact", "float64")
    assert tree.dp.history["likelihood"].tolist() == ["OPS"]
    assert "2 x 5" in str(tree.dp.report()) and "OPS" in tree.dp.report()._repr_html_()
    with pytest.raises(TraceError, match="no released statistics"):
        tree.dp.release  # noqa: B018


def test_the_trace_can_be_published_and_read_back(tmp_path):
    import arviz as az

    tree = dp.sample(epsilon=1.0, step=OPS(), model=bernoulli(ANSWERS), **QUIET)
    read = az.from_netcdf(tree.dp.publish(tmp_path / "trace.nc"))
    assert read.dp.epsilon == 1.0 and read["posterior"]["p"].equals(tree["posterior"]["p"])
    assert str(read.dp.report()) == str(tree.dp.report())


def test_the_ledger_is_charged_before_rows_are_read(monkeypatch):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr(TableLikelihood, "read", touched)
    ledger = dp.Ledger(epsilon=1.0)
    with pytest.raises(BudgetExceeded, match="no data were read"):
        dp.sample(epsilon=2.0, step=OPS(), model=bernoulli(ANSWERS), ledger=ledger, **QUIET)
    assert ledger.spent.epsilon == 0
    with pytest.raises(ReleaseError):
        dp.sample(epsilon=0.75, step=OPS(), model=bernoulli(ANSWERS), ledger=ledger, **QUIET)
    assert ledger.spent.epsilon == 0.75, "a failure after the charge loses budget, never privacy"


@pytest.mark.parametrize("cores", [1, 2])
def test_a_funded_step_means_the_same_on_one_core_and_two(cores):
    with bernoulli(ANSWERS) as model:
        step = OPS(epsilon=1.0, chains=2)
        raw = pm.sample(4, step=step, chains=2, cores=cores, **PLAIN)
        tree = dp.scrub(raw, model)
        with pytest.raises(BudgetExceeded, match="all of them have begun"):
            pm.sample(4, step=step, chains=1, **PLAIN)
    assert "observed_data" in raw.children and "observed_data" not in tree.children
    np.testing.assert_allclose(tree["sample_stats"][SPENT].values, [[0.25, 0.5, 0.75, 1.0]] * 2)
    one, other = tree["posterior"]["p"].values
    assert not np.isin(one, other).any(), "chains must not repeat each other"
    assert tree.dp.epsilon == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_every_start_method_means_the_same(method):
    with bernoulli(ANSWERS) as model:
        raw = pm.sample(4, step=OPS(epsilon=1.0, chains=2), chains=2, cores=2, mp_ctx=method, **PLAIN)
        tree = dp.scrub(raw, model)
    assert tree["posterior"]["p"].shape == (2, 4)
    assert len(np.unique(tree["posterior"]["p"])) == 8


def test_more_chains_than_paid_for_are_refused():
    with bernoulli(ANSWERS):
        step = OPS(epsilon=1.0)
        with pytest.raises(BudgetExceeded, match="funded for 1 chain,"):
            pm.sample(2, step=step, chains=2, cores=1, **PLAIN)


def test_some_of_the_variables_are_refused():
    with bernoulli(ANSWERS):
        pm.Normal("other")
        with pytest.raises(ArgumentError, match="would see the raw rows"):
            OPS(["p"], epsilon=1.0)


def test_a_funded_step_is_not_funded_again():
    model = bernoulli(ANSWERS)
    with model:
        step = OPS(epsilon=1.0)
    with pytest.raises(ArgumentError, match="budget of its own already"):
        dp.sample(epsilon=1.0, step=step, model=model, **QUIET)
    with pytest.raises(ArgumentError, match="releases none"):
        dp.sample(epsilon=1.0, step=OPS(), statistics=dp.Statistics(), model=model, **QUIET)
    with pytest.raises(ArgumentError, match="only private step methods"):
        dp.sample(epsilon=1.0, step=pm.NUTS, model=model, **QUIET)


def test_a_trace_without_its_step_is_refused():
    model = bernoulli(ANSWERS)
    with model:
        raw = pm.sample(3, step=OPS(epsilon=1.0), chains=1, **PLAIN)
        with pytest.warns(RepeatedReleaseWarning, match="second release"):
            other = OPS(epsilon=1.0)
    with pytest.raises(TraceError, match="not made by privatize"):
        dp.scrub(raw, bernoulli(ANSWERS))
    longer = raw.copy()
    longer["posterior"] = longer["posterior"].to_dataset().reindex(draw=np.arange(7))
    with pytest.raises(TraceError, match="more states than its step has made"):
        dp.scrub(longer, model)
    unnumbered = raw.copy()
    unnumbered["sample_stats"] = unnumbered["sample_stats"].to_dataset().drop_vars("step_identity")
    with pytest.raises(TraceError, match="No funded step of this model made this trace"):
        dp.scrub(unnumbered, model)
    assert other.binding.claims.taken() == []


def test_what_was_seeded_is_not_published(tmp_path):
    trees = []
    for _ in range(2):
        with dp.testing.insecure_randomness(3):
            trees.append(dp.sample(epsilon=1.0, step=OPS(), model=bernoulli(ANSWERS), **QUIET))
            forget_releases()
    assert trees[0].dp.guarantee == "none"
    assert trees[0]["posterior"]["p"].equals(trees[1]["posterior"]["p"])
    with pytest.raises(TraceError, match="seeded"):
        trees[0].dp.publish(tmp_path / "trace.nc")


def test_random_seed_does_not_reach_the_mechanism():
    draws = [
        dp.sample(
            epsilon=1.0, step=OPS(), model=bernoulli(ANSWERS), ledger=dp.Ledger(epsilon=1), random_seed=1, **QUIET
        )
        for _ in range(2)
    ]
    assert draws[0]["posterior"]["p"].item() != draws[1]["posterior"]["p"].item()


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_with_the_same_randomness_only_draws_differ(relation):
    trees = []
    for change in (False, True):
        answers = ANSWERS.copy()
        answers[5] ^= change
        if relation == "add_remove" and change:
            answers = answers[:-1]
        with dp.testing.insecure_randomness(3):
            trees.append(
                dp.sample(
                    2,
                    epsilon=1.0,
                    step=OPS(),
                    model=bernoulli(answers),
                    domain=domain(relation),
                    ledger=dp.Ledger(epsilon=1.0, neighbours=relation),
                    **QUIET,
                )
            )
    assert {path for path in differing(*trees) if "manifest" not in path} <= {"/posterior/p"}


def test_no_canary_leaves(caplog, recwarn):
    with pm.Model() as model:
        mu = pm.Uniform("mu", 0, 1000)
        pm.Normal("y", mu, 10.0, observed=pm.Data("d", np.linspace(1, 90, 40)))
    column = plant(model["d"].get_value(), low=5, high=100)
    model["d"].set_value(column.values)
    bounds = dp.Domain(bounds={"y": (0, 1000)})
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.WARNING, logger="numba"):
        tree = dp.sample(5, epsilon=1.0, step=OPS(), model=model, domain=bounds, **QUIET)
    seen = [tree, str(tree.dp.report()), caplog.records, list(recwarn)]
    assert contains_canary(seen, column.canaries) == []


def test_state_can_be_saved_and_restored():
    with dp.testing.insecure_randomness(1), bernoulli(ANSWERS) as model:
        step = OPS(epsilon=1.0)
        step.setup_chain(np.random.default_rng(1), 0, 10)
    start = model.initial_point()
    step.step(start)
    saved = pickle.loads(pickle.dumps(step.sampling_state))
    expected = [step.step(start) for _ in range(3)]
    step.sampling_state = saved
    again = [step.step(start) for _ in range(3)]
    assert repr(expected) == repr(again)
    assert again[-1][1][0][SPENT] == pytest.approx(0.4)


def test_copies_of_a_begun_step_do_not_repeat_its_randomness():
    """Two that go on from different points with the same noise would show what the rows say of either."""
    with bernoulli(ANSWERS) as model:
        step = OPS(epsilon=1.0, chains=2)
    step.setup_chain(None, 0, 10)
    again = pickle.loads(cloudpickle.dumps(step))
    assert step._generator is not None and again._generator is None
    with pytest.raises(PrivacyError, match="setup_chain first"):
        again.step(model.initial_point())
    again.setup_chain(None, 0, 10)
    start = model.initial_point()
    assert repr(again.step(start)[0]) != repr(step.step(start)[0])


def test_problems_come_all_at_once_and_cost_nothing():
    ledger = dp.Ledger(epsilon=1.0)
    with pm.Model() as model:
        pm.Poisson("a", pm.Gamma("rate", 2, 1), observed=np.array([1, 2]))
        pm.Normal("b", pm.Normal("mu"), 1, observed=np.array([1.0, 2.0]))
    with pytest.raises(UnsupportedModelError) as refused:
        dp.sample(epsilon=1.0, step=OPS(), model=model, ledger=ledger, **QUIET)
    assert len(refused.value.problems) == 2
    assert "Domain(bounds={'a': (low, high)})" in str(refused.value) and ledger.spent.epsilon == 0


@pytest.mark.usefixtures("interpreted")
def test_other_samplers_beside_a_private_one_are_refused():
    with bernoulli(ANSWERS) as model:
        step = OPS(epsilon=1.0)
        raw = pm.sample(1, tune=0, step=[step, pm.Slice([model["p"]])], chains=1, **PLAIN)
        with pytest.raises(TraceError, match="statistics of other samplers"):
            dp.scrub(raw, model)


@pytest.mark.parametrize("cores", [1, 2])
def test_seeded_chains_are_known_afterwards(cores):
    with bernoulli(ANSWERS) as model:
        step = OPS(epsilon=1.0, chains=2)
        with dp.testing.insecure_randomness(1):
            raw = pm.sample(2, step=step, chains=2, cores=cores, **PLAIN)
        assert dp.scrub(raw, model).dp.guarantee == "none"
    assert raw["posterior"]["p"].values[0, 0] != raw["posterior"]["p"].values[1, 0]


def test_each_trace_gets_the_guarantee_of_its_own_step():
    with bernoulli(ANSWERS) as model:
        first = OPS(epsilon=0.5, delta=0.05)
        with dp.testing.insecure_randomness(1):
            seeded = pm.sample(1, step=first, chains=1, **PLAIN)
        with pytest.warns(RepeatedReleaseWarning):
            second = OPS(epsilon=2.0)
        with pytest.warns(RepeatedReleaseWarning):
            third = OPS(epsilon=0.1)
        traces = [pm.sample(1, step=step, chains=1, **PLAIN) for step in (second, third)]
        found = [dp.scrub(raw, model).dp for raw in (seeded, *traces)]
    assert [(one.delta, one.guarantee) for one in found] == [(0.05, "none"), (0.0, "exact"), (0.0, "exact")]
    assert [one.epsilon for one in found] == pytest.approx([0.5, 2.0, 0.1], rel=1e-4)


def test_steps_beyond_those_paid_for_are_refused():
    with bernoulli(ANSWERS) as model:
        step = OPS(epsilon=1.0)
        step.setup_chain(np.random.default_rng(1), 0, 2)
    point = model.initial_point()
    for _ in range(2):
        point, _ = step.step(point)
    with pytest.raises(BudgetExceeded, match="All 2 steps of this chain"):
        step.step(point)


def test_no_text_shows_the_private_number_of_rows():
    with pm.Model(coords={"row": range(37)}) as model:
        p = pm.Beta("p", 1, 1, dims="row")
        pm.Bernoulli("y", p[pm.Data("c", np.arange(37), dims="row")], observed=np.arange(37) % 2, dims="row")
    hidden = dp.Domain(neighbours="add_remove", n_max=100, rows="row", bounds={"c": (0, 60)})
    assert "37" not in str(dp.explain(model, hidden).full()) and "36" not in str(dp.explain(model, hidden).full())
