"""What is left of chains that Ctrl+C has ended: whole draws that were paid for, and the word that all were charged."""

import os
import signal

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases
from pymc_dp.trace import chains as chains_of

CANARY = 8_675_309
pytestmark = pytest.mark.usefixtures("interpreted")


def press(at: int, seen: list[int]):
    """What presses Ctrl+C after so many draws."""

    def happens(trace, draw) -> None:
        seen.append(draw.draw_idx)
        if len(seen) == at:
            os.kill(os.getpid(), signal.SIGINT)

    return happens


def sample(at: int, *, step=None, ledger=None, chains: int = 1, tune: int = 4, **given):
    forget_releases()  # a ledger of its own for each call
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("p", 0.05, 0.95), observed=np.arange(60) % 3 == 0)
    happens, between = given.pop("happens", press(at, [])), chains_of._between_draws

    def watched(*given):
        last = between(*given)
        return lambda trace, draw: (happens(trace, draw), last(trace, draw))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains_of, "_between_draws", watched)
        return dp.sample(
            10, tune=tune, chains=chains, cores=1, epsilon=1.0, step=step or dp.OPS(), model=model, ledger=ledger,
            progressbar=False, quiet=True, compute_convergence_checks=False, **given,
        )  # fmt: skip


@pytest.mark.parametrize(("chains", "at", "kept", "made"), [(1, 9, 1, 5), (2, 9, 1, 5), (2, 20, 1, 10), (2, 27, 2, 9)])
def test_the_draws_made_so_far_are_returned_and_all_are_charged(chains, at, kept, made):
    ledger = dp.Ledger(1.0)
    with pytest.warns(dp.errors.BudgetWarning, match="All of them were charged"):
        tree = sample(at, chains=chains, ledger=ledger)
    assert tree["posterior"]["p"].shape == (kept, made)
    assert tree["warmup_posterior"]["p"].shape == (kept, 4)
    assert tree.dp.epsilon == pytest.approx(1.0, rel=1e-12) and ledger.spent.epsilon == pytest.approx(1.0)
    text = f"ended after {made} of 10 draws, {kept} of {chains} chains kept"
    assert text in ledger.history[0].label and text in str(tree.dp.report())


def test_before_the_first_draw_the_error_has_the_states_of_the_tuning():
    ledger = dp.Ledger(1.0)
    with pytest.warns(dp.errors.BudgetWarning), pytest.raises(KeyboardInterrupt, match="3 of 4 tuning draws") as caught:
        sample(3, ledger=ledger)
    tree = caught.value.idata
    assert set(tree.children) == {"warmup_posterior", "warmup_sample_stats", "privacy"}
    assert tree["warmup_posterior"]["p"].shape == (1, 3) and tree.dp.epsilon == pytest.approx(1.0, rel=1e-12)
    assert "ended after 3 of 4 tuning draws" in ledger.history[0].label


def test_an_error_in_a_chain_shows_and_keeps_nothing():
    def fail(trace, draw) -> None:
        raise ValueError(CANARY)

    ledger = dp.Ledger(1.0)
    with pytest.raises(dp.errors.ReleaseError) as caught:
        sample(0, ledger=ledger, happens=fail)
    assert str(CANARY) not in str(caught.value) and caught.value.__context__ is None
    assert ledger.spent.epsilon == pytest.approx(1.0) and not hasattr(caught.value, "idata")
    frames, held = caught.value.__traceback__, []
    while frames is not None:
        held += [vars(value) for value in frames.tb_frame.f_locals.values() if isinstance(value, dp.OPS)]
        frames = frames.tb_next
    assert {} in held, "the step that held the rows is empty"
    assert all("posterior" not in one or one["posterior"] is None for one in held)
