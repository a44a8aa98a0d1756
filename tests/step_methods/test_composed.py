"""Steps that take turns: one trace, what they cost together, what they leave invariant, what is refused."""

import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import ComposedEvent, total_epsilon
from pymc_dp.errors import ArgumentError
from tests.step_methods.turns import BOUNDS, LOSS, QUIET, bound, normal, steps

pytestmark = pytest.mark.usefixtures("interpreted")


# --- shares -----------------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("share", [1.0, 3.0])
def test_shares_are_raised_together_as_far_as_the_whole_allows(delta, share):
    step, event = bound(normal(), steps(share), count=20, chains=2, delta=delta)
    parts = [part.budget for part in step.parts]
    assert isinstance(event, ComposedEvent) and event.events == tuple(part.event for part in step.parts)
    assert parts[1].epsilon == pytest.approx(share * parts[0].epsilon)
    assert sum(part.delta for part in parts) <= delta
    assert 0.99 * 2.0 < total_epsilon(event, delta).epsilon <= 2.0
    together = sum(part.epsilon for part in parts)
    assert together > 2.2 if delta else together == pytest.approx(2.0, rel=2e-3)


# --- what is sampled --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: [dp.BarkerMetropolis(["mean"])], "leaves over sd"),
        (lambda: [dp.BarkerMetropolis(["mean"]), dp.TemperedGibbs(["sd", "mean"])], "both move 'mean'"),
        (lambda: [dp.BarkerMetropolis(["means"]), dp.TemperedGibbs(["sd"])], "names 'means'.*Did you mean 'mean'"),
        (lambda: [dp.TemperedGibbs(["sd"]), dp.BarkerMetropolis()], "all free variables, beside.*Name its own"),
        (lambda: [dp.TemperedGibbs(["sd"]), dp.OPS()], "all free variables, beside.*pass it alone"),
        (lambda: [*steps(), dp.BarkerMetropolis(["centre"])], "no row tells anything"),
        (lambda: [*steps(), pm.NUTS], "not accepted"),
        (lambda: [], "not accepted"),
        (lambda: [dp.TemperedGibbs(["sd"]), dp.DataAugmentation()], "not accepted"),
    ],
)
def test_what_does_not_fit_together_is_refused(given, words):
    ledger = dp.Ledger(**LOSS)
    with normal(), pytest.raises(ArgumentError, match=words):
        dp.sample(**LOSS, step=given(), domain=dp.Domain(bounds=BOUNDS), ledger=ledger, **QUIET)
    assert ledger.history == []


@pytest.mark.slow
def test_a_filter_that_ends_one_step_ends_all():
    given = [dp.BarkerMetropolis(["sd"]), dp.BarkerMetropolis(["mean"], scale=0.3)]
    loss, public = {"epsilon": 30.0, "delta": 1e-2}, dp.Domain(bounds=BOUNDS)
    with normal(), pytest.warns() as seen:
        tree = dp.sample(300, tune=0, **loss, step=given, domain=public, **QUIET)
    assert any("was spent after" in str(warning.message) for warning in seen)
    assert 0 < tree["posterior"].sizes["draw"] == tree["sample_stats"].sizes["draw"] < 300
    assert float(tree["sample_stats"]["epsilon_spent"].max()) <= 30.0
