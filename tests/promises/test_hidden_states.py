"""States that nobody sees are drawn from their tempered posterior, which enumeration of all paths gives."""

from __future__ import annotations

from itertools import product
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy.special import betainc, betaln, gammaln

import pymc_dp as dp
from tests.zoo.samplers import QUIET

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
START, MOVES = np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 1.5]])
PROFILES, LOWER = np.array([[3.0, 1.0], [1.0, 2.0]]), 0.1
NUMBERS = np.arange(30)
REGION, MONTH = NUMBERS % 2, NUMBERS // 2 % 3
SEEN = np.where(NUMBERS % 5 == 0, 1 - MONTH % 2, MONTH % 2)


def log_beta(alpha: np.ndarray) -> Any:
    return gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1))


def enumerated(power: float) -> np.ndarray:
    """Return the probability that each state is 1."""
    paths, logs = np.array(list(product(range(2), repeat=6))).reshape(-1, 2, 3), []
    for path in paths:
        firsts, moves = np.bincount(path[:, 0], minlength=2), np.zeros((2, 2))
        np.add.at(moves, (path[:, :-1], path[:, 1:]), 1)
        total = log_beta(START + firsts) + log_beta(MOVES + moves).sum()
        for state in range(2):
            a, b = PROFILES[state] + power * np.bincount(SEEN[path[REGION, MONTH] == state], minlength=2)
            total += betaln(a, b) + np.log(betainc(a, b, 1 - LOWER) - betainc(a, b, LOWER))
        logs.append(total)
    mass = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    return np.einsum("p,prm->rm", mass, paths)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_states_have_their_tempered_law() -> None:
    with pm.Model(coords={"region": range(2), "month": range(3)}) as model:
        start, moves = pm.Dirichlet("start", START), pm.Dirichlet("moves", MOVES)
        states = dp.markov.MarkovStates("states", start, moves, dims=("region", "month"))
        cell = states[pm.Data("region_index", REGION), pm.Data("month_index", MONTH)]
        pm.Categorical("kind", dp.TruncatedDirichlet("profile", PROFILES, LOWER)[cell], observed=SEEN)
    domain = dp.Domain(public=("region_index", "month_index"))
    with dp.testing.insecure_randomness(2):
        idata = dp.sample(
            3000, tune=0, chains=1, epsilon=9e3, step=dp.TemperedGibbs(), model=model, domain=domain, **QUIET
        )
    power = idata.dp.report().record["sampler"]["power"]
    assert 0.2 < power < 1
    truth, untold = enumerated(power), enumerated(0.0)
    for place in product(range(2), range(3)):
        one = idata["posterior"]["states"].values[:, :, *place].astype(float)
        assert float(az.ess(one)) > 150
        assert abs(one.mean() - truth[place]) < 5 * float(az.mcse(one))
    assert np.abs(truth - untold).max() > 0.05
