"""Noised counts of residual norms: about what the model expects of rows of the model, and of others how far off."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.gradients.clipping import UNLIMITED
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.misfit import EDGES, LEVEL, SQUARES, Residuals, misfit_of
from pymc_dp.gradients.release import NoisedSums, units
from pymc_dp.gradients.row_parts import ROOM, RowParts
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import FIT, Extras, Limits, Schedule
from pymc_dp.rows.gate import read
from pymc_dp.testing import insecure_randomness, without_noise

pytestmark = pytest.mark.usefixtures("paid")
ROWS = 6000
SLOPES = np.array([0.7, -0.4])
TRUTH = np.r_[0.3, SLOPES]


def covariates(rng):
    return rng.uniform(-1, 1, (ROWS, 2)) ** 3  # not as anybody would make them up


def bernoulli(rng, extra=0.0):
    x = covariates(rng)
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)
        p = 1 / (1 + np.exp(-(0.3 + x @ SLOPES)))
        pm.Bernoulli("y", logit_p=eta, observed=(rng.random(ROWS) < p).astype(int))
    return model, dp.Domain(bounds={"x": (-1, 1)}), TRUTH


def poisson(rng, extra=0.0, shift=1.5, high=200):
    """Counts whose variance is that of the model times 1 + extra, about: exactly at the mean rate."""
    x = covariates(rng)
    rate = np.exp(shift + x @ SLOPES)
    if extra:
        rate = rate * rng.gamma(rate / extra, extra / rate)
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)
        pm.Poisson("y", pt.exp(eta), observed=np.minimum(rng.poisson(rate), high))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (0, high)}), np.r_[shift, SLOPES]


def normal(rng, extra=0.0):
    x = covariates(rng)
    with pm.Model() as model:
        mu = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)
        pm.Normal("y", mu, 0.5, observed=0.3 + x @ SLOPES + 0.5 * np.sqrt(1 + extra) * rng.normal(size=ROWS))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (-20, 20)}), TRUTH


class Checked:
    """The check of a table at given parameters, in coordinates in which its curvature is whitened."""

    def __init__(self, model, domain, at, epsilon=1.0):
        interface = interface_of(model, domain)
        rows = RowParts(rows=RowScores.of(interface, mode="FAST_COMPILE"))
        self.columns, self.at = [read(column) for column in interface.inspection.columns], at
        plain = Limits(scale=np.ones(len(at)), clip_norm=UNLIMITED, clip_curvature=UNLIMITED)
        factors = rows.factors(self.columns, at, plain) * np.sqrt(UNLIMITED)
        self.limits = plain.whitened(np.einsum("nqd,nqe->de", factors, factors), ROWS)
        self.residuals, self.rows = Residuals(parts=rows), rows
        extras = Extras(fit=FIT, checks=Residuals.count)
        self.schedule = Schedule.within(Budget(epsilon, 1e-6), units(len(at), domain.neighbours), 60, extras=extras)

    def misfit(self):
        sums = NoisedSums(parts=self.rows, chunks=lambda: [self.columns], schedule=self.schedule, threads=1)
        return misfit_of(*sums.fit(self.residuals, self.at, self.limits), ROWS)

    def chance(self):
        """Standard deviation of the dispersion by which tables of the model differ."""
        own = self.residuals.rows(self.columns, self.at, self.limits)[:, : len(EDGES)] * 2 / ROOM
        return float(np.std(own @ SQUARES)) / np.sqrt(ROWS)


@pytest.mark.parametrize("build", [bernoulli, poisson, normal])
def test_rows_of_the_model_vary_as_it_says(build, rng):
    for epsilon in (1.0, 10.0):
        made = Checked(*build(rng), epsilon=epsilon)
        with insecure_randomness(1):
            found = made.misfit()
        assert abs(found.dispersion - 1) < 4 * np.hypot(found.deviation, made.chance())
        assert found.dispersion - LEVEL * found.deviation < 1.5, "no alarm"
        assert np.abs(found.at_bounds).max() < 5 * found.share_deviation


@pytest.mark.parametrize("build", [poisson, normal])
@pytest.mark.parametrize("extra", [1.0, 3.0])
def test_rows_that_vary_more_are_seen_and_by_how_much(build, extra, rng):
    made = Checked(*build(rng, extra), epsilon=10.0)
    with insecure_randomness(1):
        found = made.misfit()
    assert found.dispersion == pytest.approx(1 + extra, rel=0.2)
    assert found.dispersion - LEVEL * found.deviation > 1.5


def test_the_noise_that_is_said_is_that_of_a_dispersion(rng):
    made = Checked(*normal(rng), epsilon=0.1)
    with without_noise():
        exact = made.misfit()
    with insecure_randomness(5):
        drawn = [made.misfit() for _ in range(60)]
    off = np.array([one.dispersion for one in drawn]) - exact.dispersion
    assert off.std() == pytest.approx(np.median([one.deviation for one in drawn]), rel=0.3)
    shares = np.array([one.at_bounds for one in drawn]) - exact.at_bounds
    assert shares.std() == pytest.approx(exact.share_deviation, rel=0.2)
