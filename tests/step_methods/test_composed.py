"""Steps that take turns: one trace, what they cost together, what they leave invariant, what is refused."""

import pymc as pm
import pytest

import pymc_dp as dp
from tests.step_methods.turns import BOUNDS, LOSS, QUIET, normal, steps

pytestmark = pytest.mark.usefixtures("interpreted")


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
    ],
)
def test_what_does_not_fit_together_is_refused(given, words):
    ledger = dp.Ledger(**LOSS)
    with normal(), pytest.raises(dp.errors.ArgumentError, match=words):
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
