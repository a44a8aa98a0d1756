"""Sizes of private groups that another table of the same release shows (the class of a naive Bayes model)."""

from __future__ import annotations

import numpy as np
import pymc as pm

import pymc_dp as dp


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
