"""One sample of a hidden Markov model: what it pays, how long its chain is, and the law of the chain."""

from itertools import product

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy.special import betainc, betaln, gammaln

from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.ops import OPS, hidden_states
from pymc_dp.step_methods.ops.hidden_states import StatesPosterior
from pymc_dp.transforms.markov_states import MarkovStates
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet

pytestmark = pytest.mark.usefixtures("paid")

PUBLIC = Domain(public=("region_index", "month_index"))
LOWER, ALPHA = 0.1, np.array([[3.0, 1.0], [1.0, 2.0]])
START, MOVES = np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 1.5]])


def hidden(lower=LOWER, shift=0):
    numbers = np.arange(30)
    with pm.Model(coords={"region": range(2), "month": range(3)}) as model:
        start, moves = pm.Dirichlet("start", START), pm.Dirichlet("moves", MOVES)
        states = MarkovStates("states", start, moves, dims=("region", "month"))
        cell = states[pm.Data("region_index", numbers % 2), pm.Data("month_index", numbers // 2 % 3)]
        pm.Categorical("kind", TruncatedDirichlet("profile", ALPHA, lower)[cell], observed=(numbers + shift) % 7 % 2)
    return model


def priced(epsilon=2.0, uses=4, delta=0.0, lower=LOWER, shift=0, **settings):
    specification = OPS(assume_converged=True, **settings)
    inspection = specification.inspect(hidden(lower, shift), PUBLIC)
    return specification.bound(inspection, Budget(epsilon, delta), chains=1, steps=uses)


def test_each_draw_pays_for_profiles_and_states_at_once():
    step, event = priced(scans=50)
    assert isinstance(step.posterior, StatesPosterior) and step.claimed == "asymptotic"
    one_row = 2 * np.log((1 - LOWER) / LOWER)
    assert step.range.value == pytest.approx(one_row, rel=1e-4)
    assert 1 / step.temperature.inverse == pytest.approx(4 * one_row / 2.0, rel=1e-4)
    assert event.count == 4
    assert "50 scans" in dict(step.describe().facts)["draws"]


@pytest.mark.slow
def test_a_draw_is_a_state_of_the_whole_model(rng):
    step, _ = priced(scans=20)
    with opened_gate():
        step.load()
    step.generator = rng
    point = {name: np.asarray(value) for name, value in step.prior_model.initial_point().items()}
    new = step.advance(point)
    assert list(new) == list(point) and set(np.unique(new["states"])) <= {0, 1}


@pytest.mark.slow
def test_the_length_is_judged_on_public_simulations(monkeypatch):
    monkeypatch.setattr(hidden_states, "TRIAL", 200)
    monkeypatch.setattr(hidden_states, "GOOD_RHAT", 1.5)
    step, _ = priced()
    length = step.posterior.length(step.temperature.inverse)
    other, _ = priced(shift=3)
    assert isinstance(length, int) and length >= hidden_states.LEAST
    assert other.posterior.length(other.temperature.inverse) == length  # whatever the rows are
    monkeypatch.setattr(hidden_states, "GOOD_RHAT", 0.5)
    with pytest.raises(UnsupportedModelError, match="scans="):
        priced()


def test_unbounded_profiles_are_refused():
    with pytest.raises(UnsupportedModelError):
        priced(lower=0.0, scans=5)


def test_the_papers_rule_tempers_states_and_moves_too():
    step, event = priced(papers=True, scans=5)
    sensitivity = np.log((1 - LOWER) / LOWER)
    assert 1 / step.temperature.inverse == pytest.approx(4 * 2 * sensitivity / 2.0, rel=1e-4)
    assert step.temperature.prior and event.count == 4


def log_beta(alpha):
    return gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1))


def log_truncated(alpha):
    """Log of the integral of the density of a beta over [LOWER, 1 - LOWER]."""
    inside = betainc(*alpha, 1 - LOWER) - betainc(*alpha, LOWER)
    return betaln(*alpha) + np.log(inside)


@pytest.mark.slow
@pytest.mark.parametrize("papers", [False, True])
def test_the_chain_has_the_tempered_law(rng, papers):
    step, _ = priced(scans=1, papers=papers)
    power = 0.3 if papers else 1.0

    def tempered(alpha):
        return 1 + power * (alpha - 1)

    held, inverse, seen = step.posterior.read(), 0.3, []
    places = step.posterior.found.emissions["kind"].places
    step.posterior._run(rng, held, inverse, 6000, lambda drawn: seen.append(drawn["states"].ravel()), papers)
    chain, paths, logs = np.array(seen)[200:], np.array(list(product(range(2), repeat=6))), []
    for path in paths:
        table = path.reshape(2, 3)
        firsts, moves = np.bincount(table[:, 0], minlength=2), np.zeros((2, 2))
        np.add.at(moves, (table[:, :-1], table[:, 1:]), 1)
        total = log_beta(tempered(START) + power * firsts) + log_beta(tempered(MOVES) + power * moves).sum()
        for state in range(2):
            counts = held["kind"][path[places] == state].sum(axis=0)
            total += log_truncated(tempered(ALPHA[state]) + inverse * counts)
        logs.append(total)
    mass = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    for place in range(6):
        one = chain[:, place].astype(float)[None]
        assert float(az.ess(one)) > 200
        assert abs(one.mean() - paths[:, place] @ mass) < 5 * float(az.mcse(one))
