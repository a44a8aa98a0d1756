"""Private samplers by `dp.sample`: what each refuses before a charge, and chains that are tuned or scheduled."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1, "chains": 1}
ROWS = np.linspace(-1, 2, 40)
ENDS = dp.Domain(bounds={"y": (-3, 3)})
pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]


def normal(scale=False) -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, pm.HalfNormal("sigma") if scale else 1.0, observed=ROWS)
    return model


def bounded() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("mu", -1, 1), 1.0, observed=ROWS)
    return model


def sampled(step, draws=5, **given):
    given = {"tune": 0, "epsilon": 1.0, "delta": 1e-6, "domain": ENDS, "model": None, **QUIET, **given}
    return dp.sample(draws, step=step() if callable(step) else step, **{**given, "model": given["model"] or normal()})


S = dp.schedules
REFUSED = [
    (lambda: dp.SGLD(batch_size=100), {}, "batch_size=100 is above the number of rows, 40. Give SGLD a smaller"),
    (lambda: dp.SGLD(step_size=S.PolynomialDecay(power=2)), {}, r"power must lie in \(0, 1\], got 2"),
    (lambda: dp.SGLD(step_size=S.AlphaPhase(alpha=1.0)), {}, r"alpha must lie in \(0, 1\), got 1.0"),
    (lambda: dp.SGLD(step_size=1e-320), {}, r"step_size must lie in \("),
    (lambda: dp.SGLD(step_size="fast"), {}, "got 'fast'"),
    (lambda: dp.SGLD(step_size=10.0, batch_size=5), {}, "step_size=10 has too little noise for 5 steps within epsilon"),
    (lambda: dp.SGLD(step_size=0.1, clip_norm=S.EstimatedNorm()), {}, "may be too large for a clip norm that is not"),
    (lambda: dp.SGLD(clip_norm=S.EstimatedNorm(share=1.5)), {}, r"share must lie in \(0, 1\), got 1.5"),
    (lambda: dp.SGLD(clip_norm=S.EstimatedNorm(low=2, high=1)), {}, "low and high must be .* got 2.* and 1"),
    (
        lambda: dp.SGLD(clip_norm=S.EstimatedNorm(), batch_size=5),
        {"epsilon": 0.01},
        "rows at epsilon=.*; 40 are",
    ),
    (lambda: dp.SGNHT(start=dp.OPS(epsilon=1.0, model=bounded(), domain=ENDS)), {}, "start=OPS.* budget of its own"),
    (lambda: dp.SGLD(start=dp.OPS()), {}, r"Or leave start out: the chains need none.\nWhy: start=OPS\(\), y: one row"),
    (lambda: dp.SGFS(fisher_share=2.0), {}, r"fisher_share must lie in \[1e-6, 1 - 1e-6\], got 2"),
    (lambda: dp.SGFS(papers=True, batch_size=1), {}, "batches of a fixed size of at least 2: use sampling='without"),
    (lambda: dp.SGFS(papers=True, sampling="poisson"), {}, "batches of a fixed size"),
    (lambda: dp.PrivateHMC(gradient_share=1.0), {}, r"gradient_share must lie in \(0, 1\), got 1.0. 0.4 does well"),
    (lambda: dp.PrivateHMC(clip_norm=1.0, scale={"mu": -1.0}), {}, r"scale\['mu'\] must be > 0 everywhere"),
    (lambda: dp.TemperedMetropolis(beta=2.0), {}, r"beta must lie in \(0, 1\], got 2.0. At 1 the posterior is not"),
    (lambda: dp.TemperedMetropolis(), {"delta": 0.0}, "TemperedMetropolis needs delta > 0: a rejection that is"),
    (lambda: dp.OPS(epsilon=1.0, model=bounded(), domain=ENDS), {}, "OPS has a budget of its own already. Pass dp.OPS"),
    (
        lambda: [dp.TemperedGibbs("mu"), dp.BarkerMetropolis("sigma")],
        {"model": normal(scale=True), "domain": dp.Domain(bounds={"y": (-3, 3)}, metric=dp.metrics.L1("y"))},
        "steps in a list share a budget that is accounted per row",
    ),
    (
        lambda: [dp.TemperedGibbs("mu"), dp.BarkerMetropolis("sigma")],
        {"model": normal(scale=True)},
        "one row can move the conditional of 'mu'",
    ),
]


@pytest.mark.parametrize("place", range(len(REFUSED)), ids=[said[:40] for _, _, said in REFUSED])
def test_wrong_settings_are_named_and_cost_nothing(place):
    make, given, said = REFUSED[place]
    ledger = dp.Ledger(2.0, 1e-5)
    with pytest.raises(dp.errors.PrivacyError, match=said):
        sampled(make, ledger=ledger, **given)
    assert ledger.history == []


def test_a_tuned_chain_of_clipped_gradients_finds_its_posterior():
    """At a large ε: the mean of the draws is within five errors of that of the posterior of 40 rows."""
    step = dp.PrivateHMC(clip_norm=4.0, scale={"mu": 0.3, "sigma": 0.3})
    with dp.testing.insecure_randomness(5):
        idata = sampled(step, 60, tune=60, epsilon=1e6, model=normal(scale=True))
    mu, sigma = (idata["posterior"][name].values[0] for name in ("mu", "sigma"))
    assert abs(mu.mean() - ROWS.sum() / (40 + ROWS.var())) < 0.2 and abs(sigma.mean() - ROWS.std()) < 0.2
    assert 0.3 < np.mean(np.diff(mu) != 0) < 1


SCHEDULES = [S.PolynomialDecay(), S.AlphaPhase()]


@pytest.mark.parametrize("rule", SCHEDULES, ids=lambda rule: type(rule).__name__)
def test_a_schedule_says_until_when_it_is_hotter(rule):
    idata = sampled(dp.SGLD(batch_size=5, step_size=rule), 30)
    text = " ".join(str(idata.dp.report()).replace("│", " ").split())
    assert (
        idata.dp.epsilon <= 1.0 and "temperature of the noise" in text and "above that of the target until step" in text
    )
