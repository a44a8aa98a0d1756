"""Every likelihood with a conjugate prior: exact draws of the tempered posterior, at the price of what a row moves."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from tests.zoo.conjugate_pairs import PAIRS
from tests.zoo.samplers import QUIET

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
STEPS: dict[str, Callable[[], Any]] = {"OPS": dp.OPS, "TemperedGibbs": dp.TemperedGibbs}
DRAWS, EPSILON = 250, 200.0


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


@pytest.mark.few(6, cases=30)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", PAIRS)
def test_draws_have_their_law_and_what_one_row_moves_is_charged(name: str, step: str, relation: str) -> None:
    pair = PAIRS[name]
    whole = all(isinstance(row, int) for row in pair.rows)
    rows = np.resize(np.array(pair.rows, dtype=int if whole else float), 40)
    with pm.Model() as model:
        pair.likelihood("y", pair.prior("v"), pm.Data("rows", rows))
    bounds = {} if pair.bounds is None else {"y": pair.bounds}
    domain = dp.Domain(bounds=bounds, neighbours=relation, n_max=50 if relation == "add_remove" else None)
    with dp.testing.insecure_randomness(zlib.crc32(name.encode())):
        idata = dp.sample(
            DRAWS, tune=0, chains=1, step=STEPS[step](), model=model, domain=domain, epsilon=EPSILON, **QUIET
        )
    record = idata.dp.report().record
    beta, eta = record["sampler"]["power"], record["event"]["event"]["eta"]
    assert record["event"]["count"] == DRAWS and 0 < beta <= 1
    places = np.linspace(*pair.ends, 4001)
    # The two rows that differ most, over a grid of the variable.
    heights = pair.log_row(np.array(pair.rows, dtype=float)[:, None], places)
    if relation == "replace":
        heights = (heights[:, None] - heights[None, :]).reshape(-1, len(places))
    assert 0.9 < beta * np.ptp(heights, axis=1).max() / eta <= 1 + 1e-6
    logs = pair.log_prior(places) + beta * pair.log_row(rows[:, None], places).sum(axis=0)
    mass = np.cumsum(np.exp(logs - logs.max()))
    drawn = idata["posterior"]["v"].values.ravel()
    assert pair.ends[0] <= drawn.min() and drawn.max() <= pair.ends[1]
    assert stats.kstest(drawn, lambda v: np.interp(v, places, mass / mass[-1])).pvalue > 1e-3


def test_shares_of_counts_pay_for_every_trial() -> None:
    """Rows of several trials: a Dirichlet given all counts, at the range of one trial times their number."""
    rows, prior = np.array([[3, 0, 0], [1, 2, 0], [0, 1, 2], [2, 1, 0]]), np.array([1.0, 2.0, 1.5])
    with pm.Model() as model:
        pm.Multinomial("y", 3, dp.TruncatedDirichlet("shares", prior, 0.1), observed=rows)
    with dp.testing.insecure_randomness(5):
        idata = dp.sample(DRAWS, tune=0, chains=1, step=dp.OPS(), model=model, epsilon=2000.0, **QUIET)
    record = idata.dp.report().record
    beta = record["sampler"]["power"]
    assert record["event"]["event"]["eta"] == pytest.approx(beta * 3 * 2 * np.log(0.8 / 0.1), rel=1e-3)
    plain = np.random.default_rng(1).dirichlet(prior + beta * rows.sum(axis=0), 20_000)
    plain = plain[(plain >= 0.1).all(axis=1)]
    drawn = idata["posterior"]["shares"].values[0]
    assert all(stats.ks_2samp(drawn[:, place], plain[:, place]).pvalue > 1e-3 for place in range(3))
