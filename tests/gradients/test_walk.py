"""Steps that are posterior means: without noise they end at the mode, with noise their quadratic covers."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from pymc_dp.accounting import Budget
from pymc_dp.gradients import schedule as limits
from pymc_dp.gradients.clipping import Responses, clipped
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.schedule import Schedule, Units, stages_of
from pymc_dp.gradients.tails import Chosen
from pymc_dp.gradients.walk import walk

STAGES = stages_of(60)
UNITS = Units(gradient=2**24, curvature=2**30, dimension=5, neighbours="replace")


class Noises:
    """Scales of continuous noise, as `NoisedSums` has them."""

    multiplier: float

    def deviation(self, stage, limits):
        return self.multiplier * limits.clip_curvature / np.sqrt(STAGES[stage].curvature)

    def variance(self, stage, limits):
        return (2 * self.multiplier * limits.clip_norm) ** 2 / STAGES[stage].gradients


class Logistic(Noises):
    """Sums over the rows of a logistic regression, with continuous noise."""

    def __init__(self, design, answers, multiplier, rng):
        self.design, self.answers, self.rng, self.multiplier = design, answers, rng, multiplier

    def parts(self, at, limits):
        shares = expit(self.design @ at)
        scores = np.stack([-shares, 1 - shares], 1)[:, :, None]
        responses = Responses(weights=np.stack([1 - shares, shares], 1), scores=scores)
        design = self.design if limits.basis is None else self.design @ limits.basis
        gram = np.sum(design**2, 1)[:, None, None]
        norms = {"clip_norm": limits.clip_norm, "clip_curvature": limits.clip_curvature}
        return design, clipped(responses, (self.answers - shares)[:, None], gram, **norms)

    def curvature(self, stage, at, limits):
        deviation = np.sqrt(2) * self.deviation(stage, limits)
        design, found = self.parts(at, limits)
        own = found.factors[:, 0] * design
        size = len(at)
        noise = np.triu(self.rng.normal(size=(size, size)), 1) * deviation / np.sqrt(2)
        noise = noise + noise.T + np.diag(self.rng.normal(size=size) * deviation)
        return own.T @ own + noise, deviation / np.sqrt(2)

    def gradient(self, stage, step, at, limits):
        noise = self.rng.normal(size=len(at)) * np.sqrt(self.variance(stage, limits) / STAGES[stage].steps[step])
        design, found = self.parts(at, limits)
        return design.T @ found.scores[:, 0] + noise


def bend(design):
    def curvature(at):
        shares = expit(design @ at)
        return (design.T * (shares * (1 - shares))) @ design

    return curvature


def shares(known, found):
    """Variance of the scores over their slope, of public rows with the same distribution."""
    design, own = Logistic(known, np.zeros(len(known)), 0.0, None).parts(found.end, found.limits)
    slope, variance = (
        np.diag(found.limits.curvature((design * weights[:, :1]).T @ design))
        for weights in (own.factors[:, 0] ** 2, own.variances[:, 0])
    )
    return variance / slope


class Bent(Noises):
    """A log-likelihood of 5,000 rows with slope -sinh(k u) / k in each of five directions, u the distance to a mode."""

    def __init__(self, bend, multiplier, rng):
        self.bend, self.rng, self.multiplier = bend, rng, multiplier
        self.mode, self.rates = rng.normal(size=5), 5000 * np.exp(rng.normal(size=5))

    def basis(self, at, limits):
        return np.eye(len(at)) if limits.basis is None else limits.basis

    def curvature(self, stage, at, limits):
        basis, deviation = self.basis(at, limits), np.sqrt(2) * self.deviation(stage, limits)
        noise = np.triu(self.rng.normal(size=(5, 5)), 1) * deviation / np.sqrt(2)
        noise = noise + noise.T + np.diag(self.rng.normal(size=5) * deviation)
        own = self.rates * np.cosh(np.clip(self.bend * (at - self.mode), -5, 5))
        return (basis * own) @ basis + noise, deviation / np.sqrt(2)

    def gradient(self, stage, step, at, limits):
        noise = self.rng.normal(size=5) * np.sqrt(self.variance(stage, limits) / STAGES[stage].steps[step])
        off = at - self.mode
        slope = np.sinh(np.clip(self.bend * off, -5, 5)) / self.bend if self.bend else off
        return self.basis(at, limits) @ (-self.rates * slope) + noise


def alarms(bend, rng, walks):
    """χ² of some walks, and how many are above their limits."""
    prior = Prior(mean=np.zeros(5), precision=np.eye(5))
    begun = limits.Limits(scale=np.ones(5), clip_norm=1e300, clip_curvature=8.0)
    multiplier = Schedule.within(Budget(1.0, 1e-5), UNITS, 60).multiplier
    found = [walk(STAGES, prior, Bent(bend, multiplier, rng), limits=begun, n_rows=5000) for _ in range(walks)]
    return np.array([one.chi_squared for one in found]), np.mean([one.too_curved for one in found]), found[0]


@pytest.mark.slow
def test_chi_squared_of_a_quadratic_is_above_its_limit_as_often_as_is_said(rng):
    """About one in a hundred: the curvature is noised, and walks come to their ends from afar."""
    values, share, one = alarms(0.0, rng, 100)
    assert one.degrees == 16 * 5 and one.chi_squared_limit == pytest.approx(stats.chi2(80).ppf(0.99) / 80)
    assert share <= 0.04 and abs(values.mean() - 1) < 0.05
    assert 0.38 < np.mean(values > stats.chi2(80).median() / 80) < 0.62


def test_what_may_be_clipped_off_is_in_the_noise(rng):
    """κ R of whitened sums, in all directions alike."""
    multiplier = Schedule.within(Budget(1.0, 1e-5), UNITS, 60).multiplier
    prior = Prior(mean=np.zeros(5), precision=np.eye(5))
    begun = limits.Limits(scale=np.ones(5), clip_norm=1e300, clip_curvature=8.0)
    found, asked = [], []
    for bias in (0.0, 700.0):

        def limit(stage, at, limits, bias=bias):
            asked.append(stage)
            return Chosen(limit=2 * limits.clip_norm, bias=bias, beyond=0.0, deviation=1.0, share=0.0)

        releases = Bent(0.0, multiplier, np.random.default_rng(3))
        found.append(walk(STAGES, prior, releases, limits=begun, n_rows=5000, limit=limit))
    without, with_bias = found
    assert asked == [2, 2], "once, in the last stage that has steps"
    extra = with_bias.limits.basis @ (with_bias.noise - without.noise) @ with_bias.limits.basis
    np.testing.assert_allclose(extra, 700.0**2 * np.eye(5), atol=1e-6 * 700**2)
    assert with_bias.chosen.bias == 700.0 and with_bias.limits.relaxing[0] == pytest.approx(2.0)
    assert not with_bias.limits.weighing
