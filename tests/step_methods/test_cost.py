"""One ε per run: trace, report, progress bar and ledger state what its own events cost, for all chains together."""

import numpy as np
import pytest

import pymc_dp as dp
from tests.step_methods.conftest import bernoulli

pytestmark = pytest.mark.usefixtures("interpreted")
BUDGET = {"epsilon": 2.0, "delta": 1e-6}
QUIET = {"progressbar": False, "cores": 1}
ANSWERS = np.repeat([0, 1], [150, 250])


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
    with bernoulli(ANSWERS):
        step = dp.SGLD(clip_norm=2.0, batch_size=40, start=dp.OPS())
        hybrid = dp.sample(6, tune=0, chains=2, step=step, ledger=dp.Ledger(9.0, 1e-4), **BUDGET, **QUIET)
    ends = [bar["x"][1] for bar in dp.plots.budget(hybrid, backend="none").viz["bars"]["epsilon"].values]
    assert ends[-1] == hybrid.dp.epsilon < hybrid.dp.history["epsilon"].sum(), "events compose better than losses add"
    assert hybrid.dp.history["likelihood"].tolist() == ["posterior sample at the start", "SGLD, steps"]
    with bernoulli(ANSWERS):
        run = {"particles": 5, "temperatures": 4, "progressbar": False}
        annealed = dp.sample_ais(epsilon=2.0, draws=3, marginal_likelihood=True, **run)
    assert [row.split(", ")[1] for row in annealed.dp.history["likelihood"]] == ["path", "draws", "log evidence"]
    assert annealed.dp.history["epsilon"].sum() == pytest.approx(annealed.dp.epsilon, rel=1e-9)
    assert (annealed["sample_stats"]["epsilon_spent"] == annealed.dp.epsilon).all()


def test_four_hundred_updates_of_range_one_hundredth_are_told_at_their_price():
    """The papers add up to 4. A chain whose budget comes to such a β says what it really costs."""
    with bernoulli([0, 1] * 50):
        found = dp.sample(400, tune=0, epsilon=0.376, delta=1e-5, step=dp.TemperedGibbs(), **QUIET)
    beta = found.dp.report().record["sampler"]["power"]
    assert 0.01 <= beta * 2 * np.log(19) < 0.0101 and 0.37 < found.dp.epsilon <= 0.376
