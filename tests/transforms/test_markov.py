"""Markov chains of states: their density, and states summed out and drawn again."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp

import pymc_dp as dp

FAST = "FAST_COMPILE"
START, MOVES = np.array([0.2, 0.5, 0.3]), np.array([[0.6, 0.3, 0.1], [0.0, 0.5, 0.5], [0.4, 0.2, 0.4]])


def test_probabilities_are_those_of_the_chain_and_add_up_to_one():
    paths = np.array(list(product(range(3), repeat=3)))
    found = pm.logp(dp.markov.MarkovStates.dist(START, MOVES, shape=(27, 3)), paths).eval(mode=FAST)
    truth = [START[a] * MOVES[a, b] * MOVES[b, c] for a, b, c in paths]
    np.testing.assert_allclose(np.exp(found), truth)
    assert np.exp(found).sum() == pytest.approx(1)
    outside = pm.logp(dp.markov.MarkovStates.dist(START, MOVES, shape=(2, 3)), [[0, 3, 0], [0, -1, 0]]).eval(mode=FAST)
    assert np.isneginf(outside).all()


def test_draws_move_as_the_chain_does(seed):
    draws = pm.draw(dp.markov.MarkovStates.dist(START, MOVES, shape=(50, 4)), 40, random_seed=seed, mode=FAST)
    assert draws.shape == (40, 50, 4) and draws.dtype.kind == "i"
    firsts = np.bincount(draws[..., 0].ravel(), minlength=3)
    assert stats.chisquare(firsts, START * 2000).pvalue > 0.001
    moves = np.zeros((3, 3))
    np.add.at(moves, (draws[..., :-1].ravel(), draws[..., 1:].ravel()), 1)
    assert moves[1, 0] == 0
    for row in (0, 2):
        assert stats.chisquare(moves[row], MOVES[row] * moves[row].sum()).pvalue > 0.001


PUBLIC = dp.Domain(public=("region_index", "month_index"))
PATHS = [np.array(path).reshape(2, 3) for path in product(range(2), repeat=6)]


def hidden(extra=lambda states, profile: None):
    numbers = np.arange(48)
    with pm.Model(coords={"region": ["A", "B"], "month": range(3), "state": range(2)}) as model:
        start = pm.Dirichlet("start", np.ones(2), dims="state")
        transition = pm.Dirichlet("transition", np.ones((2, 2)))
        states = dp.markov.MarkovStates("states", start, transition, dims=("region", "month"))
        cell = states[pm.Data("region_index", numbers % 2), pm.Data("month_index", numbers // 2 % 3)]
        profile = pm.Dirichlet("profile", np.array([[4.0, 1.0, 1.0], [1.0, 1.0, 4.0]]))
        pm.Categorical("kind", profile[cell], observed=numbers % 5 % 3)
        rate = pm.Beta("rate", 2.0, 2.0, dims="state")
        pm.Bernoulli("yes", rate[cell], observed=numbers % 7 % 2)
        extra(states, profile)
    return dp.privatize(model, epsilon=2.0, domain=PUBLIC, ledger=dp.Ledger(epsilon=99.0))


@pytest.mark.slow
def test_the_density_is_the_sum_over_all_paths(rng):
    private = hidden()
    summed = dp.markov.marginalize_states(private)
    assert [rv.name for rv in summed.free_RVs] == ["start", "transition", "profile", "rate"]
    assert [rv.name for rv in summed.observed_RVs] == ["kind", "yes"]
    with pytensor.config.change_flags(mode=FAST):
        whole, each = summed.compile_logp(), private.compile_logp()
        for _ in range(3):
            point = {name: rng.normal(size=np.shape(value)) for name, value in summed.initial_point().items()}
            truth = logsumexp([each({**point, "states": path}) for path in PATHS])
            assert whole(point) == pytest.approx(truth, abs=1e-9)


@pytest.mark.slow
def test_states_are_drawn_given_each_draw(rng):
    private, n_draws = hidden(), 3000
    given = {
        "start": np.array([0.3, 0.7]),
        "transition": np.array([[0.8, 0.2], [0.4, 0.6]]),
        "profile": np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3]]),
        "rate": np.array([0.4, 0.6]),
    }
    posterior = xr.Dataset(
        {
            name: (["chain", "draw", *[f"{name}{i}" for i in range(value.ndim)]], np.stack([[value] * n_draws]))
            for name, value in given.items()
        }
    )
    with pytensor.config.change_flags(mode=FAST):
        found = dp.markov.draw_states(xr.DataTree.from_dict({"/posterior": posterior}), private, random_seed=rng)
        kinds = [private[name] for name in ("kind", "yes")]
        symbols = {private[name]: private[name].type() for name in ("start", "transition", "profile", "rate", "states")}
        terms = [pm.logp(rv, private.rvs_to_values[rv]).sum() for rv in kinds]
        terms.append(pm.logp(private["states"], symbols[private["states"]]).sum())
        (total,) = pytensor.graph.replace.graph_replace([sum(terms)], symbols, strict=False)
        logp = pytensor.function(list(symbols.values()), total)
        logs = [float(logp(*given.values(), path)) for path in PATHS]
    drawn = found.posterior["states"]
    assert drawn.dims == ("chain", "draw", "region", "month") and list(drawn["region"].values) == ["A", "B"]
    truth = np.exp(np.array(logs) - logsumexp(logs)) * n_draws
    seen = np.bincount(drawn.values.reshape(n_draws, 6) @ 2 ** np.arange(6)[::-1], minlength=64)
    common = truth > 5
    pooled = [np.append(item[common], item[~common].sum()) for item in (seen, truth)]
    assert common.sum() > 5
    assert stats.chisquare(*pooled).pvalue > 0.001


def test_what_is_not_simply_selected_by_states_is_refused():
    with pytest.raises(dp.errors.ArgumentError, match="private model"):
        dp.markov.marginalize_states(pm.Model())
    with pytest.raises(dp.errors.UnsupportedModelError, match="more than released tables"):
        dp.markov.marginalize_states(hidden(lambda states, profile: pm.Bernoulli("more", 0.2 + 0.1 * states[0, 0])))
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("y", p, observed=np.arange(9) % 2)
    with pytest.raises(dp.errors.UnsupportedModelError, match="it has 0 variables"):
        dp.markov.marginalize_states(dp.privatize(model, epsilon=1.0))
