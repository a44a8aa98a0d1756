"""Steps that are posterior means: without noise they end at the mode, with noise their quadratic covers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from pymc_dp.accounting import Budget
from pymc_dp.gradients.clipping import Responses, clipped
from pymc_dp.gradients.schedule import Schedule, Units, stages_of
from pymc_dp.gradients.walk import Prior, walk

STAGES = stages_of(60)


class Logistic:
    """Sums over the rows of a logistic regression, with continuous noise."""

    def __init__(self, design, answers, multiplier, rng, limits):
        self.design, self.answers, self.rng, self.limits = design, answers, rng, limits
        self.norms = np.sqrt([4 * limits["clip_norm"] ** 2, 2 * limits["clip_curvature"] ** 2]) * multiplier
        self.gram = np.sum(design**2, 1)[:, None, None]

    def parts(self, at):
        shares = expit(self.design @ at)
        scores = np.stack([-shares, 1 - shares], 1)[:, :, None]
        responses = Responses(weights=np.stack([1 - shares, shares], 1), scores=scores)
        return clipped(responses, (self.answers - shares)[:, None], self.gram, **self.limits)

    def curvature(self, stage, at):
        deviation = self.norms[1] / np.sqrt(STAGES[stage].curvature)
        own = self.parts(at).factors[:, 0] * self.design
        size = len(at)
        noise = np.triu(self.rng.normal(size=(size, size)), 1) * deviation / np.sqrt(2)
        noise = noise + noise.T + np.diag(self.rng.normal(size=size) * deviation)
        return own.T @ own + noise, deviation / np.sqrt(2)

    def gradient(self, stage, step, at):
        noise = self.rng.normal(size=len(at)) * np.sqrt(self.variance(stage) / STAGES[stage].steps[step])
        return self.design.T @ self.parts(at).scores[:, 0] + noise

    def variance(self, stage):
        return self.norms[0] ** 2 / STAGES[stage].gradients


def table(rng, n, d):
    design = rng.normal(size=(n, d))
    design /= np.linalg.norm(design, axis=1)[:, None]
    truth = rng.normal(size=d)
    return design, (rng.random(n) < expit(design @ truth)).astype(float), truth


def bend(design):
    def diagonal(at):
        shares = expit(design @ at)
        return (design**2).T @ (shares * (1 - shares))

    return diagonal


def fitted(found, prior):
    """Mean and covariance of the posterior under a normal prior."""
    precise = np.linalg.inv(found.curvature + found.noise * np.eye(len(found.slope)))
    precision = prior.precision + found.curvature @ precise @ found.curvature
    covariance = np.linalg.inv(precision)
    return covariance @ (prior.weighted + found.curvature @ precise @ found.slope), covariance


def test_without_noise_it_ends_at_the_mode_and_has_its_curvature(rng):
    design, answers, _ = table(rng, 800, 4)
    prior = Prior(mean=np.zeros(4), precision=np.eye(4))
    releases = Logistic(design, answers, 1e-9, rng, {"clip_norm": 50.0, "clip_curvature": 50.0})
    found = walk(STAGES, prior, releases, bend(design))

    def loss(at):
        predictor = design @ at
        return np.logaddexp(0, predictor).sum() - answers @ predictor + 0.5 * at @ at

    mode = minimize(loss, np.zeros(4), tol=1e-12).x
    shares = expit(design @ mode)
    laplace = np.linalg.inv(np.eye(4) + (design * (shares * (1 - shares))[:, None]).T @ design)
    mean, covariance = fitted(found, prior)
    np.testing.assert_allclose(mean, mode, atol=1e-3)
    np.testing.assert_allclose(covariance, laplace, rtol=0.02, atol=1e-4)
    np.testing.assert_allclose(found.end, mode, atol=1e-2)


def coverage(epsilon, tables, *, forget_noise=False):
    rng, hits, widths, chi = np.random.default_rng(11), [], [], []
    units = Units(gradient=2**24, curvature=2**30, dimension=5, neighbours="replace")
    multiplier = Schedule.within(Budget(epsilon, 1e-5), units, 60).multiplier
    prior = Prior(mean=np.zeros(5), precision=np.eye(5))
    known, *_ = table(rng, 400, 5)
    for _ in range(tables):
        design, answers, truth = table(rng, 5000, 5)
        found = walk(STAGES, prior, Logistic(design, answers, multiplier, rng, UNIT), bend(known))
        if forget_noise:
            found = type(found)(**{**vars(found), "noise": 0.0})
        mean, covariance = fitted(found, prior)
        deviations = np.sqrt(np.diag(covariance))
        hits.append(np.abs(mean - truth) < 1.645 * deviations)
        widths.append(deviations.mean())
        chi.append(found.chi_squared)
    return np.mean(hits), np.mean(widths), np.median(chi)


UNIT = {"clip_norm": 1.0, "clip_curvature": 0.25}


def test_intervals_cover_and_what_is_forgotten_shows():
    share, width, chi = coverage(1.0, 40)
    assert 0.84 < share < 0.96 and 0.8 < chi < 1.2
    less, narrow, _ = coverage(1.0, 40, forget_noise=True)
    assert less < share - 0.05 and narrow < 0.85 * width


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_intervals_cover_at_every_budget(epsilon):
    assert 0.86 <= coverage(epsilon, 300)[0] <= 0.95
