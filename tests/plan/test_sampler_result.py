"""What a plan for a sampler says: the call to make, and why."""

from math import inf

import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.plan.sampler import SamplerPlan, Trial


def trial(epsilon=1.0, distance=0.3, clip_norm=2.0, step_size=1e-4):
    call = f"dp.sample(500, tune=500, epsilon={epsilon:g}, step=dp.SGLD(clip_norm={clip_norm:g}))"
    return Trial(
        epsilon=epsilon, delta=1e-6, clip_norm=clip_norm, step_size=step_size, clipped=0.25, mean_error=0.2,
        sd_ratio=1.4, distance=distance, call=call,
    )  # fmt: skip


def made(*trials):
    return SamplerPlan(trials=trials, sampler="SGLD", rows="500 rows", tables=3)


def test_the_nearest_to_the_posterior_is_recommended():
    plan = made(trial(distance=inf), trial(distance=0.3, clip_norm=3.0), trial(distance=0.4, clip_norm=4.0))
    assert plan.best().clip_norm == 3.0 and plan.best().call in plan._repr_html_()
    two = made(trial(), trial(epsilon=2.0, clip_norm=5.0))
    assert two.best(2.0).clip_norm == 5.0
    for wrong in (None, 3.0):
        with pytest.raises(ArgumentError, match="give one of 1, 2"):
            two.best(wrong)


def test_settings_that_are_all_far_off_are_said_to_be():
    assert "No setting that was tried comes near the posterior" in made(trial(distance=3.0))._repr_html_()
    assert "No setting that was tried" not in made(trial(distance=3.0), trial(epsilon=2.0))._repr_html_()
