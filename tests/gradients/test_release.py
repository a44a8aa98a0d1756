"""Releases over rows: whole numbers, chunk by chunk, with discrete noise of the scales that were charged."""

import numpy as np
import pytest
from scipy.special import expit

from pymc_dp.accounting import Budget
from pymc_dp.gradients.clipping import Responses, clipped
from pymc_dp.gradients.release import NoisedSums, units
from pymc_dp.gradients.schedule import Limits, Schedule, stages_of
from pymc_dp.testing import insecure_randomness

LIMITS = Limits(scale=np.ones(3), clip_norm=1.0, clip_curvature=0.25)


class Logistic:
    """What rows of a logistic regression add; rows are (design, answers)."""

    def _clipped(self, rows, at, limits):
        design, answers = rows
        shares = expit(design @ at)
        responses = Responses(
            weights=np.stack([1 - shares, shares], 1), scores=np.stack([-shares, 1 - shares], 1)[:, :, None]
        )
        design = design if limits.basis is None else design @ limits.basis
        gram = np.sum(design**2, 1)[:, None, None]
        norms = {"clip_norm": limits.clip_norm, "clip_curvature": limits.clip_curvature}
        return design, clipped(responses, (answers - shares)[:, None], gram, **norms)

    def scores(self, rows, at, limits=LIMITS):
        design, found = self._clipped(rows, at, limits)
        return found.scores * design / limits.clip_norm * (1 - 1e-6)

    def factors(self, rows, at, limits=LIMITS):
        design, found = self._clipped(rows, at, limits)
        return found.factors @ design[:, None] / np.sqrt(limits.clip_curvature) * (1 - 1e-6)


def table(rng, n=3000, d=3):
    design = rng.normal(size=(n, d))
    design /= np.linalg.norm(design, axis=1)[:, None]
    truth = rng.normal(size=d)
    return (design, (rng.random(n) < expit(design @ truth)).astype(float)), truth


def sums(rows, schedule, size=1000):
    def chunks():
        for start in range(0, len(rows[1]), size):
            yield tuple(part[start : start + size] for part in rows)

    return NoisedSums(parts=Logistic(), chunks=chunks, schedule=schedule)


def little_noise():
    return Schedule(stages=stages_of(60), units=units(3, "replace"), multiplier=1e-6)


def test_noise_has_the_scales_of_the_schedule(rng):
    rows, truth = table(rng, 50)
    schedule = Schedule.within(Budget(1.0, 1e-5), units(3, "replace"), 60)
    found, plain = sums(rows, schedule), sums(rows, little_noise())
    with insecure_randomness(2):
        exact, curvature = plain.gradient(1, 4, truth, LIMITS), plain.curvature(1, truth, LIMITS)[0]
        noise = np.array([found.gradient(1, 4, truth, LIMITS) - exact for _ in range(400)])
        bent = np.array([found.curvature(1, truth, LIMITS)[0] - curvature for _ in range(400)])
    expected = np.sqrt(found.variance(1, LIMITS) / schedule.stages[1].steps[4])
    assert noise.std() == pytest.approx(expected, rel=0.06)
    paid = schedule.stages[1]
    assert expected == pytest.approx(schedule.multiplier * 2 / np.sqrt(paid.gradients * paid.steps[4]))
    off = found.curvature(1, truth, LIMITS)[1]
    assert bent[:, 0, 1].std() == pytest.approx(off, rel=0.1) and (bent == bent.transpose(0, 2, 1)).all()
    assert np.diagonal(bent, axis1=1, axis2=2).std() == pytest.approx(off * np.sqrt(2), rel=0.1)
    assert off == pytest.approx(schedule.multiplier * 0.25 / np.sqrt(0.05))


def test_what_fails_in_one_thread_ends_the_pass(rng):
    rows, truth = table(rng, 100)
    made = []

    def chunks():
        for start in range(10_000):
            made.append(start)
            yield (lambda: 1 / 0) if start == 5 else rows

    with pytest.raises(ZeroDivisionError):
        NoisedSums(parts=Logistic(), chunks=chunks, schedule=little_noise(), threads=2).gradient(0, 0, truth, LIMITS)
    assert len(made) < 10_000
