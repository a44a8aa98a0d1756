"""Draws of every sampler have the law that its trace states: the tempered posterior, written out in NumPy."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pymc_dp as dp
from tests.zoo.kind import BOUNDS
from tests.zoo.samplers import SAMPLERS, Sampler

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
MANY = {"draws": 300, "epsilon": 300.0}
INDEPENDENT: dict[str, dict[str, Any]] = {
    "OPS": MANY,
    "OPS, rows come or go": MANY,
    "OPS, counts": {"draws": 300, "epsilon": 900.0},
    "OPS, numbers": {"draws": 300, "epsilon": 600.0},
    "OPS, two scalars": {"draws": 300, "epsilon": 3000.0},
    "OPS, papers": {"draws": 300, "epsilon": 600.0},
    "OPS, rows one by one": MANY,
    "OPS, a coefficient": {"draws": 300, "epsilon": 900.0},
    "Gibbs": MANY,
    "Gibbs, counts": {"draws": 300, "epsilon": 900.0},
    "Gibbs, rows one by one": MANY,
}
"""What is asked of samplers whose draws are independent: by so much ε rows tell something at so many draws."""
WALKS: dict[str, tuple[dict[str, Any], int]] = {
    "Gibbs, numbers": ({"draws": 900, "tune": 20, "epsilon": 4e4}, 3),
    "Barker": ({"draws": 6000, "tune": 500, "epsilon": 1e6}, 20),
    "Barker, numbers": ({"draws": 6000, "tune": 500, "epsilon": 1e6}, 20),
    "Barker, two coefficients": ({"draws": 9000, "tune": 500, "epsilon": 1e6}, 30),
    "Barker, rows one by one": ({"draws": 6000, "tune": 500, "epsilon": 1e6, "delta": 1e-6}, 20),
    "penalty": ({"draws": 6000, "tune": 500, "epsilon": 1e5, "delta": 1e-6}, 20),
    "HMC": ({"draws": 2500, "tune": 300, "epsilon": 1e5, "delta": 1e-6}, 5),
}
"""What is asked of chains, and every how many draws are nearly independent."""


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


def scalars(idata: Any) -> dict[str, np.ndarray]:
    """Return the draws of every scalar, by its name."""
    found = {}
    for name, held in idata["posterior"].data_vars.items():
        values = held.values.reshape(held.values.shape[1], -1)
        for place in range(values.shape[1]):
            found[name if held.ndim == 2 else f"{name}[{place}]"] = values[:, place]
    return found


def agrees(one: Sampler, every: int = 1, **asked: Any) -> None:
    """Compare every scalar with its distribution function at the recorded power; the noise is seeded."""
    with dp.testing.insecure_randomness(zlib.crc32(one.name.encode())):
        idata = one.sample(random_seed=5, **asked)
    sampler = idata.dp.report().record["sampler"]
    power = sampler["power"]
    prior_power = power if "papers" in one.name else 1.0
    assert 0.02 < power <= 1
    assert one.law is not None
    truths = one.law.cdfs(one.kind.table(), power, prior_power)
    others = one.law.cdfs(one.kind.table(), 0.0, prior_power)
    drawn = scalars(idata)
    for name, cdf in truths.items():
        values = drawn[name][::every]
        assert stats.kstest(values, cdf).pvalue > 1e-3, name
    # The same draws do not have the law of the prior: rows told something.
    assert min(stats.kstest(drawn[name][::every], cdf).pvalue for name, cdf in others.items()) < 1e-4


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_draws_have_the_tempered_posterior(name: str) -> None:
    agrees(SAMPLERS[name], **INDEPENDENT[name])


@pytest.mark.slow(cases="all")
@pytest.mark.parametrize("name", WALKS)
def test_chains_have_the_tempered_posterior(name: str) -> None:
    asked, every = WALKS[name]
    agrees(SAMPLERS[name], every, **asked)


PRICED = ["OPS, network", *INDEPENDENT]
GRIDS = (
    "OPS, two scalars",
    "Gibbs, rows one by one",
    "OPS, rows one by one",
    "OPS, rows one by one come or go",
    "OPS, a coefficient",
)


def one_row_tables(one: Sampler) -> list[dict[str, np.ndarray]]:
    """Return tables of one row: columns at their ends and between."""
    names = list(dict.fromkeys([*one.kind.bounded, "yes", "choice"]))
    ends = {name: np.linspace(*BOUNDS[name], 9) for name in names}
    axes = [np.unique(np.rint(at)) if name in ("yes", "choice", "count") else at for name, at in ends.items()]
    return [dict(zip(names, map(np.atleast_1d, row), strict=True)) for row in product(*axes)]


@pytest.mark.parametrize("name", PRICED)
def test_what_one_row_moves_is_charged_and_hardly_more(name: str) -> None:
    """The largest range, over the parameters, of what two rows make of the log-likelihood, by their own formula."""
    one = SAMPLERS[name]
    record = one.sample(draws=1).dp.report().record
    assert one.law is not None
    at = {axis: np.linspace(*ends, 41 if len(one.law.axes) < 3 else 9) for axis, ends in one.law.axes.items()}
    values = dict(zip(at, np.meshgrid(*at.values(), indexing="ij"), strict=True))
    logs = np.array([np.asarray(one.law.likelihood(table, values)).ravel() for table in one_row_tables(one)])
    logs = np.unique(logs, axis=0)
    if one.relation == "replace":
        logs = np.concatenate([logs - row for row in logs])
    event = record["event"]["event"]
    used = record["sampler"]["power"] * np.ptp(logs, axis=1).max() / event.get("eta", event.get("epsilon"))
    middles = 0.02 if name in GRIDS else 1e-6  # a range is that over middles of cells, and not over their ends
    least = 0.1 if name == "OPS, papers" else 0.9  # their rule is twice the largest log-likelihood
    assert least < used <= 1 + middles


def test_hidden_states_and_profiles_are_paid_for_at_once() -> None:
    """A row may see any share between 0.1 and 0.9 in any state."""
    record = SAMPLERS["OPS, hidden states"].sample().dp.report().record
    eta = record["event"]["event"]["eta"]
    assert record["event"]["count"] == 2 and eta == pytest.approx(record["sampler"]["power"] * 2 * np.log(9), rel=1e-3)
