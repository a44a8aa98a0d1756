"""One ε per run: trace, report, progress bar and ledger state what its own events cost, for all chains together."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases
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
