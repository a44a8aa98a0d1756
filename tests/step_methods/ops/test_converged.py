"""Chains that are assumed to have converged: their length is public, and nothing else leaves."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.step_methods.ops import converged

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
SHORT = {
    "TUNE": 5,
    "CURVED_TUNE": 5,
    "TRIAL": 8,
    "TRIALS": 1,
    "LEAST": 10,
    "CORRELATION_TIMES": 1,
    "GOOD_RHAT": 20.0,
    "FEW_DIVERGENCES": 1.0,
}
BOUNDS = {"x": (-1.0, 1.0)}
pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, value in SHORT.items():
        monkeypatch.setattr(converged, name, value)


def groups(sign=1.0):
    """A product of parameters: not concave, and no grid has six axes. A Potential belongs to the prior."""
    rng = np.random.default_rng(3)
    x, g, y = rng.uniform(-1, 1, 20), rng.integers(0, 4, 20), rng.integers(0, 2, 20)
    x[0] *= sign
    with pm.Model(coords={"of": range(4)}) as model:
        scale = pm.TruncatedNormal("scale", 0, 1, lower=0.5, upper=2)
        b = pm.Uniform("b", -1, 1, dims="of")
        pm.Potential("pull", -2 * ((b - 0.5) ** 2).sum())
        slope = pm.Uniform("slope", -1, 1)
        pm.Bernoulli("y", logit_p=scale * b[pm.Data("g", g)] + slope * pm.Data("x", x), observed=y)
    return model


def sampled(model, **given):
    given = {
        "step": dp.OPS(assume_converged=True),
        "epsilon": 2.0,
        "domain": dp.Domain(bounds=BOUNDS),
        **QUIET,
        **given,
    }
    return dp.sample(1, model=model, **given)


@pytest.fixture
def blind(monkeypatch):
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))


def test_without_the_word_of_the_caller_it_is_refused_and_the_word_is_named(blind):
    with pytest.raises(dp.errors.UnsupportedModelError, match=r"asymptotic: dp.OPS\(assume_converged=True\)"):
        sampled(groups(), step=dp.OPS())


def test_a_likelihood_without_a_gradient_somewhere_has_no_chain(blind):
    """The slope of a root is infinite at 0."""
    rng = np.random.default_rng(3)
    with pm.Model() as model:
        roots = pm.math.sqrt(pm.math.abs(pm.Uniform("b", -1, 1, shape=3)))
        pm.Bernoulli("y", logit_p=pm.Data("x", rng.uniform(-1, 1, (20, 3))) @ roots, observed=rng.integers(0, 2, 20))
    with pytest.raises(dp.errors.UnsupportedModelError, match="the gradient of its log-likelihood is NaN"):
        sampled(model)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "limit", "text"),
    [("GOOD_RHAT", 0.5, "do not agree \\(R-hat"), ("FEW_DIVERGENCES", -1.0, "of the steps of NUTS")],
)
def test_chains_that_do_not_agree_on_public_data_are_refused_before_the_charge(name, limit, text, blind, monkeypatch):
    monkeypatch.setattr(converged, name, limit)
    ledger = dp.Ledger(epsilon=5.0)
    with pytest.raises(dp.errors.UnsupportedModelError, match=text):
        sampled(groups(), ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.slow
def test_what_goes_wrong_with_a_private_chain_tells_nothing_and_its_length_is_public(monkeypatch, capfd, recwarn):
    facts = [dict(sampled(groups(sign)).dp.report().record["sampler"]["facts"]) for sign in (1.0, -1.0)]
    assert facts[0] == facts[1] and "asymptotic" in str(sampled(groups()).dp.report())

    def spilled(self, *args):
        print("0.98765432")
        raise ValueError("0.98765432")

    capfd.readouterr(), recwarn.clear()
    monkeypatch.setattr("pymc_dp.step_methods.ops.converged.ConvergedPosterior.draw", spilled)
    with pytest.raises(dp.errors.PrivacyError) as failed:
        sampled(groups())
    assert "987" not in str(failed.value) and failed.value.__cause__ is None


@pytest.fixture
def chains(monkeypatch):
    """Every chain that is run, and whether in units of the curvature."""
    seen, run = [], converged.TemperedChain.run

    def noted(self, *args, curved):
        seen.append([curved, None])
        seen[-1][1] = run(self, *args, curved=curved)
        return seen[-1][1]

    monkeypatch.setattr(converged.TemperedChain, "run", noted)
    return seen


def test_chains_without_a_curvature_that_they_can_use_learn_scales_instead(chains, monkeypatch):
    monkeypatch.setattr(converged, "units", lambda slope, centre: np.full((len(centre), len(centre)), np.nan))
    sampled(groups())
    assert [curved for curved, _ in chains] == [True, False, False, False]


@pytest.mark.slow
def test_a_chain_in_units_of_the_curvature_draws_from_the_same_posterior(chains, monkeypatch):
    for name, value in {"LEAST": 1500, "TUNE": 500, "CURVED_TUNE": 200}.items():
        monkeypatch.setattr(converged, name, value)
    sampled(groups())
    monkeypatch.setattr(converged, "MOST_CURVED", 0)
    sampled(groups())
    kept = {curved: chain.states for curved, chain in chains if len(chain.states) >= 1500}
    one, other = kept[True], kept[False]
    errors = [np.sqrt(sum(az.mcse(part[None, :, place]) ** 2 for part in (one, other))) for place in range(6)]
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 5 * np.array(errors)).all()
    np.testing.assert_allclose(one.std(axis=0), other.std(axis=0), rtol=0.25)
