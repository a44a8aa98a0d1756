"""One ε per run: trace, report, progress bar and ledger state what its own events cost, for all chains together."""

import re

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import event_from_dict, total_epsilon
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.funding import some_of, steps_within
from tests.step_methods.conftest import bernoulli, domain

pytestmark = pytest.mark.usefixtures("interpreted")
BUDGET = {"epsilon": 2.0, "delta": 1e-6}
QUIET = {"progressbar": False, "cores": 1}
ANSWERS = np.repeat([0, 1], [150, 250])
STEPS = {
    "OPS": lambda: dp.OPS(),
    "papers' OPS": lambda: dp.OPS(papers=True),
    "TemperedGibbs": lambda: dp.TemperedGibbs(),
    "BarkerMetropolis": lambda: dp.BarkerMetropolis(scale=0.02),
    "PenaltyMetropolis": lambda: dp.PenaltyMetropolis(scale=0.3),
    "TemperedMetropolis": lambda: dp.TemperedMetropolis(beta=0.001),
    "PrivateHMC": lambda: dp.PrivateHMC(clip_norm=2.0),
    "SGLD": lambda: dp.SGLD(clip_norm=2.0, batch_size=40),
    "papers' SGLD": lambda: dp.SGLD(clip_norm=2.0, batch_size=40, papers=True),
    "SGNHT": lambda: dp.SGNHT(clip_norm=2.0, batch_size=40),
    "SGFS": lambda: dp.SGFS(clip_norm=2.0, batch_size=40),
    "hybrid": lambda: dp.SGLD(clip_norm=2.0, batch_size=40, start=dp.OPS()),
    "composed": lambda: [dp.TemperedGibbs(["p"])],
}
PURE = {"papers' OPS"}


def sampled(name, relation, chains, draws=6, tune=0, **more):
    forget_releases()
    ledger = dp.Ledger(20.0, 1e-4, neighbours=relation)
    budget = {**BUDGET, "delta": 0.0} if name in PURE else BUDGET
    with bernoulli(ANSWERS):
        found = dp.sample(
            draws,
            tune=tune,
            chains=chains,
            step=STEPS[name](),
            domain=domain(relation),
            ledger=ledger,
            **budget,
            **QUIET,
            **more,
        )
    return found, ledger.history[-1]


def shown(epsilon):
    """As the progress bar and the report print a number."""
    return f"{epsilon:.6g}"


@pytest.mark.few(7, cases=24)
@pytest.mark.parametrize(("relation", "chains"), [("replace", 1), ("add_remove", 3), ("replace", 3), ("add_remove", 1)])
@pytest.mark.parametrize("name", STEPS)
def test_trace_report_bar_and_ledger_state_one_epsilon(name, relation, chains):
    found, entry = sampled(name, relation, chains)
    record = found.dp.report().record
    own = total_epsilon(event_from_dict(record["event"]), record["delta"]).epsilon
    assert found.dp.epsilon == own == entry.alone.epsilon <= record["asked"] == 2.0
    spent = found["sample_stats"]["epsilon_spent"].values
    assert (spent[:, -1] == own).all() and (np.diff(spent) >= 0).all() and (spent > 0).all()
    assert f"ε = {shown(own)}" in str(found.dp.report()) and f"epsilon={shown(own)}" in str(entry)
    history = found.dp.history["epsilon"]
    assert history.sum() >= own * (1 - 1e-12) and (len(history) > 1 or history[0] == own)


def test_the_bar_counts_all_chains_on_the_way():
    """Two chains that are half way have spent what one has that is through."""
    one, two = (sampled("OPS", "replace", chains)[0] for chains in (1, 2))
    half = {1: one, 2: two}
    spent = {chains: found["sample_stats"]["epsilon_spent"].values[0] for chains, found in half.items()}
    event = two.dp.report().record["event"]
    each = event_from_dict(event).event
    costs = [total_epsilon(type(event_from_dict(event))(event=each, count=2 * k), 1e-6).epsilon for k in range(1, 7)]
    assert spent[2] == pytest.approx(costs, rel=1e-12)
    assert one.dp.epsilon == spent[1][-1]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["OPS", "TemperedGibbs", "SGLD"])
def test_what_is_said_to_use_the_rest_does(name):
    few = 4
    found, _ = sampled(name, "replace", 1, draws=few) if name == "SGLD" else (_weak(name, few), None)
    said = dict(found.dp.report()._facts())["budget"]
    draws, cost = re.search(r"draws=(\d+) would cost ε = ([\d.]+)", said).groups()
    asked = found.dp.report().record["asked"]
    more = sampled(name, "replace", 1, draws=int(draws))[0] if name == "SGLD" else _weak(name, int(draws))
    assert int(draws) > few and more.dp.epsilon == pytest.approx(float(cost), rel=1e-3)
    assert 0.9 * asked < more.dp.epsilon <= asked and found.dp.epsilon < 0.9 * asked
    assert f"{asked - found.dp.epsilon:.3g} is left" in said


def _weak(name, draws):
    """A run that could cost more: shares between .45 and .55 move little by a row."""
    forget_releases()
    with bernoulli(ANSWERS, 0.45, 0.55):
        return dp.sample(draws, tune=0, step=STEPS[name](), epsilon=5.0, delta=1e-6, **QUIET)


def test_papers_noise_is_named_where_it_leaves_most_of_the_budget():
    found, _ = sampled("papers' SGLD", "replace", 1, draws=200)
    assert found.dp.epsilon < 1.0 and "papers=True adds" in dict(found.dp.report()._facts())["budget"]


def test_a_ledger_labels_what_it_adds():
    """At another δ, and beside what was spent before, a run adds something else than it costs by itself."""
    ledger = dp.Ledger(5.0, 1e-4)
    with bernoulli(ANSWERS):
        for _ in range(2):
            found = dp.sample(20, step=dp.SGLD(clip_norm=2.0, batch_size=40), ledger=ledger, **BUDGET, **QUIET)
    first, second = ledger.history
    assert first.alone == second.alone and first.alone.epsilon == found.dp.epsilon and first.alone.delta == 1e-6
    assert first.added == first.total.epsilon != first.alone.epsilon
    assert second.total.epsilon == pytest.approx(first.added + second.added, rel=1e-12)
    assert f"by itself, added {first.added:.6g}" in repr(ledger) and ">added</th>" in ledger._repr_html_()
    frame = ledger.to_frame()
    assert frame["added_epsilon"].tolist() == [first.added, second.added] and frame["at_delta"].tolist() == [1e-6] * 2


def test_history_has_a_row_for_every_mechanism():
    hybrid = sampled("hybrid", "replace", 2)[0]
    forget_releases()
    ends = [bar["x"][1] for bar in dp.plots.budget(hybrid, backend="none").viz["bars"]["epsilon"].values]
    assert ends[-1] == hybrid.dp.epsilon < hybrid.dp.history["epsilon"].sum(), "events compose better than losses add"
    assert hybrid.dp.history["likelihood"].tolist() == ["posterior sample at the start", "SGLD, steps"]
    with bernoulli(ANSWERS):
        run = {"particles": 5, "temperatures": 4, "progressbar": False}
        annealed = dp.sample_ais(epsilon=2.0, draws=3, marginal_likelihood=True, **run)
    assert [row.split(", ")[1] for row in annealed.dp.history["likelihood"]] == ["path", "draws", "log evidence"]
    assert annealed.dp.history["epsilon"].sum() == pytest.approx(annealed.dp.epsilon, rel=1e-9)
    assert (annealed["sample_stats"]["epsilon_spent"] == annealed.dp.epsilon).all()


def test_annealing_says_how_many_particles_use_the_rest():
    with bernoulli(ANSWERS, 0.49, 0.51):
        run = {"temperatures": 2, "progressbar": False, "epsilon": 4.0}
        found = dp.sample_ais(particles=2, **run)
        said = dict(found.dp.report()._facts())["budget"]
        forget_releases()
        particles = int(re.search(r"particles=(\d+)", said)[1])
        more = dp.sample_ais(particles=particles, **run)
    assert found.dp.epsilon < 2.0 < 3.6 < more.dp.epsilon <= 4.0


def test_release_states_its_own_cost():
    ledger = dp.Ledger(5.0, 1e-4)
    with bernoulli(ANSWERS) as model:
        private = dp.privatize(model, ledger=ledger, statistics=dp.Statistics(noise="gaussian"), **BUDGET)
        found = dp.scrub(pm.sample(5, tune=5, chains=1, model=private, random_seed=1, **QUIET), private)
    record = found.dp.report().record
    assert found.dp.epsilon == ledger.history[0].alone.epsilon <= record["asked"] == 2.0
    assert found.dp.epsilon == total_epsilon(event_from_dict(record["event"]), 1e-6).epsilon


def test_steps_within_a_budget():
    steps, cost = steps_within(lambda steps: 0.01 * steps, 10.0, 3)
    assert 990 <= steps <= 1000 and cost == 0.01 * steps
    assert steps_within(lambda steps: 4.0 * steps, 10.0, 3) is None, "none more than there are"
    assert steps_within(lambda steps: None, 10.0, 3) is None and steps_within(lambda steps: 0.0, 10.0, 3) is None


def test_some_of_the_steps_are_fewer_than_all():
    assert some_of(1) == [] and some_of(1000)[0] == 1 and some_of(1000)[-1] < 1000 and len(some_of(1000)) <= 33
