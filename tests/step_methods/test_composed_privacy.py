"""One scan of steps that take turns, by quadrature on neighbours: never above what is claimed."""

import itertools
import math

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

from pymc_dp.accounting import BoundedRangeEvent, ComposedEvent
from pymc_dp.audit.quadrature import compare_with_event, privacy_loss
from pymc_dp.rows.gate import opened_gate
from tests.step_methods.turns import bound, normal, steps

SDS = 0.5 + 0.75 * (1 + special.roots_legendre(40)[0])
WEIGHTS = 0.75 * special.roots_legendre(40)[1]
TABLES = [[-3.0], [3.0], [0.0], [1.3, -3.0], [1.3, 3.0], [1.3, 0.2], []]


def scan(step, model, rows, mean, there):
    """Log-density of each sd, and the log odds of the bit that the step to another mean is made given it."""
    gibbs, barker = step.parts
    with model:
        pm.set_data({"rows": np.asarray(rows, dtype=float)})
    with opened_gate():
        step.load()
    fit = gibbs.beta * stats.norm.logpdf(np.asarray(rows)[:, None], mean, SDS).sum(axis=0)
    ends = [map(barker.coefficients.at, line) for line in places(step, (mean, there))]
    return fit - special.logsumexp(fit, b=WEIGHTS), np.array([barker._odds(*pair) for pair in ends])


def outcomes(fit, odds):
    """Log-densities of sd and bit together."""
    return np.concatenate([fit + special.log_expit(odds), fit + special.log_expit(-odds)])


def places(step, means):
    """Points of the chain at both means, for every sd."""
    (prior_model, at), points = (step.prior_model, step.parts[1].coefficients), []
    start = prior_model.initial_point()
    for sd in SDS:
        line = []
        for mean in means:
            values = {
                "centre": np.zeros(()),
                "mean_interval__": np.asarray(math.log((mean + 2) / (2 - mean))),
                "sd_interval__": np.asarray(math.log((sd - 0.5) / (2 - sd))),
            }
            assert set(values) == set(start)
            line.append(at.flatten(values))
        points.append(line)
    return points


def neighbours(relation):
    """Pairs of tables that are neighbours, both ways."""
    for one, other in itertools.permutations(range(len(TABLES)), 2):
        a, b = TABLES[one], TABLES[other]
        replaced = len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1
        if replaced if relation == "replace" else abs(len(a) - len(b)) == 1 and _one_more(a, b):
            yield one, other


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_a_scan_tells_no_more_than_its_claim(relation):
    """Quadrature over the sd and the bit that follows it, on neighbours in both directions."""
    model, shares = normal(), []
    step, _ = bound(model, steps(), relation, epsilon=3.0)
    gibbs, barker = step.parts
    (eta,) = (gibbs.beta * item for item in gibbs.scan.ranges)
    for mean, there in ((0.0, 0.4), (-1.5, 1.8)):
        found = [scan(step, model, rows, mean, there) for rows in TABLES]
        reach = np.array([barker._between(*map(barker.coefficients.at, line)) for line in places(step, (mean, there))])
        claim = ComposedEvent(events=(BoundedRangeEvent(eta=eta), BoundedRangeEvent(eta=reach.max())))
        for one, other in neighbours(relation):
            (fit, odds), (other_fit, other_odds) = found[one], found[other]
            assert np.ptp(fit - other_fit) <= eta * (1 + 1e-9)
            assert (np.abs(odds - other_odds) <= reach * (1 + 1e-9)).all()
            whole = (outcomes(*found[place]) for place in (one, other))
            loss = privacy_loss(*whole, np.tile(WEIGHTS, 2), tolerance=1e-6)
            assert (compared := compare_with_event(loss, claim)).passed, compared.violations
            shares.append([np.ptp(fit - other_fit) / eta, (np.abs(odds - other_odds) / reach).max()])
    assert (np.max(shares, axis=0) > [0.4, 0.8]).all(), "the claims are not idle"


def _one_more(one, other):
    less, more = sorted((one, other), key=len)
    return any(more[:place] + more[place + 1 :] == less for place in range(len(more)))
