"""Answers are those of the draws, their regret keeps to its bound, and draws that nothing paid for give none."""

import math

import numpy as np
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.answer import regret_bound
from pymc_dp.errors import ArgumentError, TraceError
from pymc_dp.release.record import ReleaseRecord, SamplerRecord
from pymc_dp.trace.scrub import annotate


def paid(posterior, name="OPS", guarantee="exact"):
    """A trace of one sampler whose draws are known: variables of shape (n_chains, n_draws, ...)."""
    sampler = SamplerRecord(name=name, noise="temperature 2", variables=tuple(posterior), chains=1, steps=1)
    record = ReleaseRecord(
        epsilon=1.0, delta=0.0, guarantee=guarantee, arithmetic="float64", neighbours="replace", noise="", tables=(),
        noise_aware=True, event={}, assumptions=(), left_out=(), sampler=None if name is None else sampler
    )  # fmt: skip
    held = {
        key: (("chain", "draw", *(f"{key}_{axis}" for axis in range(np.ndim(values) - 2))), np.asarray(values))
        for key, values in posterior.items()
    }
    return annotate({"posterior": xr.Dataset(held)}, record, {})


@pytest.fixture
def share(rng):
    return paid({"p": rng.beta(3, 7, size=(2, 300))})


@pytest.mark.parametrize(
    ("utility", "best"), [("squared_error", np.mean), ("absolute_error", np.median), ("log_score", np.mean)]
)
def test_a_named_utility_is_answered_by_what_is_best_for_it(share, utility, best):
    grid = np.linspace(0.001, 0.999, 999)
    found = dp.answer(share, utility, grid)
    assert abs(found.response - best(share["posterior"]["p"].to_numpy())) <= 0.0011
    assert found.response == grid[found.place] and found.utility == found.utilities.max()


def test_a_function_sees_whole_draws(rng):
    draws = {"mean": rng.normal(size=(2, 50)), "slope": rng.normal(size=(2, 50, 3))}
    idata = paid(draws)
    found = dp.answer(idata, lambda draw, r: -abs(draw["mean"] + draw["slope"][r]), [0, 1, 2])
    expected = -np.abs(draws["mean"][:, :, None] + draws["slope"]).mean(axis=(0, 1))
    np.testing.assert_allclose(found.utilities, expected)
    same = dp.answer(idata, "absolute_error", [0.0], query=lambda draw: draw["mean"] + draw["slope"][1])
    assert same.utility == pytest.approx(expected[1])


def test_the_regret_of_independent_draws_is_bounded(rng):
    """Means of 50 draws choose among 20 responses, again and again: the expected loss is known."""
    means, draws, failure = np.linspace(0.3, 0.6, 20), 50, 0.05
    bound = regret_bound(0, 1, 20, draws, failure)
    seen = rng.binomial(draws, means, size=(4000, 20)).argmax(axis=1)
    assert (means.max() - means[seen] > bound).mean() <= failure
    idata = paid({"u": (rng.random((1, draws, 20)) < means).astype(float)})
    found = dp.answer(idata, lambda draw, r: draw["u"][r], range(20), bounds=(0, 1), failure=failure)
    assert found.regret == bound == pytest.approx(math.sqrt(2 * math.log(19 / 0.05) / 50))
    assert "50 independent draws" in repr(found)


def test_no_bound_is_claimed_for_chains_or_without_bounds_of_the_utility(share, rng):
    assert dp.answer(share, "squared_error", [0.1, 0.3]).regret is None
    assert dp.answer(share, "squared_error", [0.1, 0.3], bounds=(-1, 0)).regret > 0
    assert dp.answer(share, "squared_error", [0.3], bounds=(-1, 0)).regret == 0
    for name, guarantee in (("BarkerMetropolis", "stepwise"), ("OPS", "asymptotic"), (None, "exact")):
        chain = paid({"p": rng.random((2, 40))}, name, guarantee)
        found = dp.answer(chain, "squared_error", [0.1, 0.6], bounds=(-1, 0))
        assert found.regret is None and "no bound" in repr(found)


def _added(tree):
    tree["posterior"].dataset = tree["posterior"].to_dataset().assign(q=tree["posterior"]["p"] * 2)


def _changed(tree):
    tree["posterior"]["p"].values[0, 0] += 1e-9


def _without_privacy(tree):
    del tree["privacy"]


@pytest.mark.parametrize("spoil", [_added, _changed, _without_privacy])
def test_draws_that_nothing_paid_for_give_no_answer(share, spoil):
    spoil(share)
    with pytest.raises(TraceError, match=r"were paid for|that were paid"):
        dp.answer(share, "squared_error", [0.5], query="p")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"utility": "square"}, "utility must be one of 'squared_error'"),
        ({"utility": 3}, "utility must be a function"),
        ({"responses": "ab"}, "responses must be a list"),
        ({"responses": []}, "one response or more"),
        ({"responses": [[0.1, 0.2]]}, "cannot compare a response"),
        ({"responses": ["much"]}, "cannot compare a response"),
        ({"query": "q"}, "query must be one of 'p'"),
        ({"query": 3}, "query must be one of p"),
        ({"utility": lambda draw, r: 0.0, "query": "p"}, "query= is for utilities by name"),
        ({"utility": lambda draw, r: None}, "utility must return a number"),
        ({"utility": lambda draw, r: math.nan}, "NaN or infinite"),
        ({"utility": "log_score", "responses": [1.0]}, "NaN or infinite"),
        ({"utility": "log_score", "responses": [1.5]}, "log_score needs probabilities"),
        ({"bounds": (0, 1)}, r"outside of bounds=\(0.0, 1.0\)"),
        ({"bounds": (1, 0)}, "low < high"),
        ({"bounds": 3}, "bounds must be a pair"),
        ({"failure": 1}, r"failure must lie in \(0, 1\)"),
    ],
)
def test_arguments_are_checked(share, given, text):
    with pytest.raises(ArgumentError, match=text):
        dp.answer(share, **{"utility": "squared_error", "responses": [0.5], **given})
    with pytest.raises(ArgumentError, match="must be a trace"):
        dp.answer(None, "squared_error", [0.5])
