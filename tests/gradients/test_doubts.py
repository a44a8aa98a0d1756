"""What speaks against a posterior: a walk that has not arrived, and one that says nothing."""

from dataclasses import replace

import numpy as np
import pytest

from pymc_dp.gradients.doubts import doubts
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.schedule import Limits
from pymc_dp.gradients.walk import Found

PRIOR = Prior(mean=np.zeros(2), precision=np.eye(2) / 100)


def found(at, curvature):
    return Found(
        slope=curvature * np.array([1.0, 2.0]),
        curvature=curvature * np.eye(2),
        noise=np.eye(2),
        end=np.array(at),
        limits=Limits(scale=np.ones(2), clip_norm=1.0, clip_curvature=1.0),
        unresolved=0,
        chi_squared=1.0,
        degrees=20,
        path=(),
        rows=100,
    )


def test_a_walk_that_ended_near_the_posterior_is_not_doubted():
    assert doubts(found([1.1, 1.9], 100.0), PRIOR, local=False) == []


def test_a_walk_far_from_the_posterior_has_not_arrived():
    (said,) = doubts(found([0.0, 2.0], 100.0), PRIOR, local=False)
    assert "has not arrived" in said and "7.0" in said
    assert "has not arrived" in doubts(replace(found([0, 0], 1.0), slope=np.full(2, np.nan)), PRIOR, local=False)[0]


def test_a_release_that_returns_the_prior_says_so():
    (said,) = doubts(found([0.0, 0.0], 0.002), PRIOR, local=False)
    assert "next to nothing" in said


def test_a_curvature_that_is_all_noise_is_doubted():
    (said,) = doubts(replace(found([1.1, 1.9], 100.0), unresolved=2), PRIOR, local=False)
    assert "lost in its noise" in said


@pytest.mark.parametrize("unresolved", [0, 2])
def test_within_a_trust_region_only_a_lost_curvature_is_doubted(unresolved):
    one = replace(found([9.0, 9.0], 100.0), unresolved=unresolved)
    assert bool(doubts(one, PRIOR, local=True)) == (unresolved == 2)
