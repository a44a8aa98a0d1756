"""Exact draws from a grid over rows held one by one."""

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

from pymc_dp.domain import Domain
from pymc_dp.step_methods.ops.from_rows import RowGridPosterior
from tests.step_methods.ops.models import bound, draws
from tests.step_methods.ops.test_row_density import density_of

Y = {"y": (-5.0, 5.0)}


def student(y, wide=2.0, scale=False):
    with pm.Model() as model:
        mu = pm.TruncatedNormal("mu", 0, 3, lower=-wide, upper=wide)
        pm.StudentT("y", nu=3, mu=mu, sigma=pm.Uniform("sigma", 0.5, 2) if scale else 1.0, observed=y)
    return model


def cdf(places, logp):
    """Distribution function of a density on a fine grid."""
    weights = np.exp(logp - logp.max())
    total = np.cumsum((weights[1:] + weights[:-1]) / 2 * np.diff(places))
    return lambda at: np.interp(at, places, np.append(0.0, total) / total[-1])


@pytest.mark.few(1)
@pytest.mark.parametrize("papers", [False, True])
def test_a_location_under_student_noise_is_drawn_exactly(papers, rng):
    y = np.append(stats.t(3, 0.8).rvs(60, random_state=1), [4.9, 12.0])  # the last is clamped
    step, _ = bound(student(y), Domain(bounds=Y), 4.0, grid=2000, papers=papers)
    assert isinstance(step.posterior, RowGridPosterior)
    inverse = step.temperature.inverse
    at = np.linspace(-2, 2, 8001)
    held = stats.t(3).logpdf(np.clip(y, -5, 5)[:, None] - at).sum(axis=0)
    law = (inverse if papers else 1) * stats.norm.logpdf(at, 0, 3) + inverse * held
    assert 0.1 < inverse < 1
    assert stats.kstest(draws(step, 400, rng)["mu"], cdf(at, law)).pvalue > 0.001


@pytest.mark.slow
def test_a_location_and_a_scale_are_drawn_exactly(rng):
    y = stats.t(3, 0.8, 1.2).rvs(60, random_state=1)
    step, _ = bound(student(y, scale=True), Domain(bounds=Y), 8.0, grid=120)
    mu, sigma = np.linspace(-2, 2, 801), np.linspace(0.5, 2, 401)
    held = sum(stats.t(3, mu[:, None], sigma).logpdf(one) for one in np.clip(y, -5, 5))
    law = stats.norm.logpdf(mu, 0, 3)[:, None] + step.temperature.inverse * held
    found = draws(step, 400, rng)
    assert stats.kstest(found["mu"], cdf(mu, special.logsumexp(law, axis=1))).pvalue > 0.001
    assert stats.kstest(found["sigma"], cdf(sigma, special.logsumexp(law, axis=0))).pvalue > 0.001
    shift = (mu[:, None] - 0.8) * (sigma - 1.2)
    weights = np.exp(law - law.max())
    mean = (weights * shift).sum() / weights.sum()
    sample = (found["mu"] - 0.8) * (found["sigma"] - 1.2)
    assert abs(sample.mean() - mean) < 4 * sample.std() / 20


def test_the_range_is_that_of_the_cells_that_are_drawn_from():
    """All log-ratios of cells between neighbouring tables, the worst ones."""
    rows = np.full(30, 5.0), np.append(np.full(29, 5.0), -5.0)
    steps = [bound(student(y), Domain(bounds=Y), 1.0, grid=500)[0] for y in rows]
    logs = []
    for step in steps:
        prior, likelihood = step.posterior.density.at(step.posterior.points, step.sums)
        total = prior + step.temperature.inverse * likelihood
        logs.append(total - special.logsumexp(total))
    loss = np.abs(logs[0] - logs[1]).max()
    assert 0.5 < loss <= 1.0
    assert steps[0].temperature.inverse == steps[1].temperature.inverse


def test_rows_without_a_number_raise_nothing_and_count_for_nothing(monkeypatch, rng):
    """Whatever a row does to a formula in floats, an error would tell of it."""
    step, _ = bound(student(np.zeros(5)), Domain(bounds=Y), 1.0, grid=50)
    kind = type(step.posterior.density)
    own = kind.each

    def broken(self, points, rows):
        prior, each = own(self, points, rows)
        return prior, np.where(points[:, :1] < 0, np.nan, each)

    monkeypatch.setattr(kind, "each", broken)
    found = draws(step, 50, rng)["mu"]
    assert np.isfinite(found).all() and found.min() < 0 < found.max()


@pytest.mark.parametrize(
    ("priors", "text"),
    [
        (lambda: pm.Uniform("b", -1, 1, shape=3), "a grid needs at most 2 scalar parameters"),
        (lambda: pm.StudentT("b", nu=3, shape=1), "a grid needs bounded parameters"),
    ],
)
def test_what_a_grid_needs_is_said(priors, text):
    with pm.Model() as model:
        b = priors()
        pm.Bernoulli(
            "y", p=0.5 + 0.2 * pm.math.tanh((b**2).sum() * pm.Data("x", np.zeros(4))), observed=np.zeros(4, int)
        )
    reason = RowGridPosterior.of(density_of(model, Domain(bounds={"x": (-1, 1)})), None, None)
    assert isinstance(reason, str) and text in reason
