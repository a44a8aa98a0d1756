"""Draws from the annealed posterior have its law, cost what they are charged, and are near to the mode."""

import math

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

from pymc_dp.accounting import BoundedRangeEvent, GDPEvent
from pymc_dp.audit.quadrature import compare_with_event, density_loss
from pymc_dp.step_methods.mode import AnnealedMode
from tests.step_methods.mode.models import bound, domain

LOW, HIGH, SD = 0.1, 0.9, 2.0
XS, YS = np.linspace(-1, 1, 81), (0, 1)
RELATIONS = ("replace", "add_remove")


def share(rows):
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(2.0, 3.0), LOW, HIGH)
        pm.Bernoulli("y", p, observed=np.asarray(rows, dtype=int))
    return model


def share_joint(rows):
    ones, zeros = sum(rows), len(rows) - sum(rows)
    return lambda at: (1 + ones) * np.log(at[:, 0]) + (2 + zeros) * np.log1p(-at[:, 0])


def slope(rows):
    x, y = np.array(rows, dtype=float).reshape(-1, 2).T
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("b", 0, SD) * pm.Data("x", x), observed=y.astype(int))
    return model


def slope_joint(rows):
    x, y = np.array(rows, dtype=float).reshape(-1, 2).T
    return lambda at: stats.norm.logpdf(at[:, 0], 0, SD) - np.logaddexp(0, np.outer(at[:, 0], (1 - 2 * y) * x)).sum(1)


def pairs(corners, sizes, relation):
    for size in sizes:
        for one in corners:
            for two in corners:
                table = [one] * (size - size // 2) + [two] * (size // 2)
                if relation == "add_remove":
                    yield from ((table, [*table, row]) for row in corners)
                elif size:
                    yield from ((table, [row, *table[1:]]) for row in corners if row != table[0])


def worst(joint, corners, sizes, relation, beta, box, panels=64):
    found = None
    for pair in pairs(corners, sizes, relation):
        one, two = map(joint, pair)
        sides = lambda at: beta * one(at), lambda at: beta * two(at)  # noqa: B023, used at once
        loss = density_loss(*sides, [box], normalise=True, panels=panels, tolerance=1e-3)
        found = loss if found is None or loss.epsilon > found.epsilon else found
    return found


def annealed(**given):
    return lambda _: AnnealedMode(**given)


@pytest.mark.few(3)
@pytest.mark.parametrize("epsilon", [1.0, 20.0])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_share_costs_what_is_charged_and_nearly_all_of_it(relation, epsilon):
    step, event = bound(share([0, 1]), None, domain(relation), epsilon, read=False, make=annealed())
    beta = step.temperature.inverse
    assert event == BoundedRangeEvent(eta=epsilon) and (beta > 1) is (epsilon == 20.0)
    loss = worst(share_joint, [0, 1], (1, 100), relation, beta, (LOW, HIGH), 512)
    found = compare_with_event(loss, event)
    assert found.passed, found.report()
    assert loss.epsilon > 0.9 * epsilon
    twice = worst(share_joint, [0, 1], (100,), relation, 2 * beta, (LOW, HIGH), 512)
    assert not compare_with_event(twice, event).passed


def largest_slope(relation):
    """Largest derivative of a row's log-likelihood, or of the difference of two, by brute force."""
    b, x, y = np.meshgrid(np.linspace(-20, 20, 161), XS, YS, indexing="ij")
    one = ((y - special.expit(b * x)) * x).reshape(161, -1)
    return abs(one).max() if relation == "add_remove" else np.ptp(one, axis=1).max()


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_a_slope_without_bounds_is_charged_by_log_concavity(relation, epsilon):
    """β m-strongly log-concave, gradients moved by βG: μ = √β G / √m, for β below and above 1."""
    public = domain(relation, bounds={"x": (-1, 1)})
    step, event = bound(slope([(0.5, 1)]), None, public, epsilon, 1e-6, read=False, make=annealed())
    beta, gradient = step.temperature.inverse, largest_slope(relation)
    assert isinstance(event, GDPEvent)
    assert event.mu == pytest.approx(math.sqrt(beta) * gradient * SD, rel=2e-2)
    assert event.mu >= math.sqrt(beta) * gradient * SD * (1 - 2e-6)
    corners = [(1.0, 0), (1.0, 1)]
    loss = worst(slope_joint, corners, (0, 1, 3), relation, beta, (-9 / math.sqrt(beta) - 6, 9 / math.sqrt(beta) + 6))
    assert (compare_with_event(loss, event, [0.1 * epsilon, 0.5 * epsilon, epsilon], slack=1e-4)).passed
    without_root = GDPEvent(mu=beta * gradient * SD)  # wrong where β is small: the prior is tempered too
    if beta < 0.1:
        assert not compare_with_event(loss, without_root, [0.1 * epsilon], slack=1e-4).passed
