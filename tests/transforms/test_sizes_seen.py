"""Sizes of private groups that another table of the same release shows (the class of a naive Bayes model)."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special, stats

import pymc_dp as dp
from pymc_dp.transforms.noise_aware import Sizes, counts_logp


def brute_force(value, p, scale: float, seen: float, noise: float, bound: int) -> float:
    """Integrate the rate over its Laplace density on a fine grid, counts summed one by one."""
    rate = np.linspace(max(seen - 25 * noise, 0.05), min(seen + 25 * noise, bound), 4001)
    s = np.arange(0, 1500)
    cells = [
        special.logsumexp(stats.poisson.logpmf(s[:, None], rate * p[k]) - np.abs(value[k] - s)[:, None] / scale, axis=0)
        + np.log(np.tanh(1 / (2 * scale)))
        for k in range(len(p))
    ]
    prior = -np.abs(rate - seen) / noise - np.log(2 * noise)
    return float(special.logsumexp(np.sum(cells, axis=0) + prior) + np.log(rate[1] - rate[0]))


@pytest.mark.few(1)
@pytest.mark.parametrize("scale", [3.0, 20.0])
@pytest.mark.parametrize("p", [(0.2, 0.3, 0.5), (0.05, 0.15, 0.8)])
def test_density_is_the_conditional_one_given_the_size_seen(scale: float, p: tuple[float, ...]) -> None:
    value, seen, noise, bound = np.array([55.0, 95.0, 160.0]), 290.0, scale / 2, 1000
    sizes = Sizes(public=False, bound=np.array([bound]), n_private=2, seen=np.array([seen]), noise=noise)
    logp = counts_logp(pt.constant(value[None, :]), pt.constant(np.array([p])), scale, sizes)
    found = pytensor.function([], logp, mode="FAST_COMPILE")()[0]
    assert found == pytest.approx(brute_force(value, p, scale, seen, noise, bound), abs=0.02)


def _naive_bayes(rows: int) -> pm.Model:
    rng = np.random.default_rng(8)
    kind = rng.integers(0, 2, rows)
    with pm.Model() as model:
        held = pm.Data("kind", kind)
        pm.Bernoulli("label", pm.Beta("q", 1, 1), observed=held)
        share = pm.Dirichlet("share", np.ones(3), shape=(2, 3))
        pm.Categorical("feature", share[held], observed=rng.integers(0, 3, rows))
    return model


def test_sizes_seen_sharpen_the_feature_and_follow_the_released_label() -> None:
    private = dp.privatize(_naive_bayes(2000), epsilon=0.2)
    label = private.rvs_to_values[private["label"]].get_value()[0, 0]
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))
    draws = pm.draw(private["feature"], draws=40, random_seed=1, mode="FAST_COMPILE").sum(axis=-1)
    spread = np.sqrt(2) * (10 + np.sqrt(3) * 20)
    assert np.all(np.abs(draws.mean(axis=0) - [2000 - label, label]) < 6 * spread / np.sqrt(40))
