"""Tempered Metropolis: certificates that hold on every data set, steps that keep within them, and honest words."""

import numpy as np
import pytest

from pymc_dp.audit import privacy_loss
from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.metropolis import TemperedMetropolis
from tests.step_methods.metropolis.models import WORST, chance, held, normal, places, sample, take
from tests.step_methods.metropolis.test_privacy import neighbours

BUDGET = {"epsilon": 2.0, "delta": 0.01}


def funded(name, rows, relation="replace", **options):
    return held(name, rows, relation, method=TemperedMetropolis, **{**BUDGET, **options})


# The target.


@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_detailed_balance_of_the_tempered_posterior(beta, rng):
    rows = [0.0, 1.0, -2.0, 4.0]
    model, step = funded("normal", rows, beta=beta)
    likelihood = model.compile_fn(model.observedlogp, mode="FAST_COMPILE")
    prior = model.compile_fn(model.varlogp, mode="FAST_COMPILE")
    spots = places(step, rng, 4, 0.3)
    points = [step.coefficients.point(spot.values, model.initial_point()) for spot in spots]
    logs = np.array([float(prior(point)) + beta * float(likelihood(point)) for point in points])
    step.spending.each, step.spending.delta = np.inf, 1 - 1e-16
    accept = np.array([[chance(step, one, other) for other in spots] for one in spots])
    flow = np.exp(logs - logs.max())[:, None] * accept
    np.testing.assert_allclose(flow, flow.T, rtol=1e-9)
    assert (accept <= 1).all() and accept.min() < 0.9


# The certificate.


def excess(name, relation, rng, sizes=(0, 1, 12)):
    """Largest shares of ε_t and of δ_t that bits show on any neighbours, and what no certificate covers."""
    model, step = funded(name, WORST[name][:1], relation)
    step.spending.each, step.spending.delta = np.inf, 1 - 1e-16
    spots = places(step, rng, 3, 0.02)
    pairs = [(here, there) for here in spots for there in spots if here is not there]
    shares, uncovered = np.zeros(2), []
    for n in sizes:
        step.rows = n + 1
        steps = [step._certificate(*pair) for pair in pairs]
        for one, other in neighbours(name, n, relation):
            accept = []
            for rows, _ in (one, other):
                take(step, model, rows)
                accept.append(np.array([chance(step, *pair) for pair in pairs]))
            for place, certificate in enumerate(steps):
                p, q = (float(found[place]) for found in accept)
                shares = np.maximum(
                    shares, [abs(np.log(p / q)) / certificate.epsilon, (1 - min(p, q)) / certificate.delta]
                )
                with np.errstate(divide="ignore"):
                    loss = privacy_loss(np.log([p, 1 - p]), np.log([q, 1 - q]))
                if loss.hockey_stick([certificate.epsilon])[0] > certificate.delta * (1 + 1e-9):
                    uncovered.append((n, place))
    return shares, uncovered


@pytest.mark.parametrize(("name", "relation"), [("bernoulli", "replace"), ("normal", "add_remove")])
def test_every_certificate_holds_on_every_data_set(name, relation, rng):
    shares, uncovered = excess(name, relation, rng)
    assert not uncovered
    assert (shares <= 1 + 1e-9).all() and shares.max() > 0.9


# The chain.


def test_the_default_radius_is_the_largest_and_a_wider_one_is_refused():
    model = normal(np.linspace(-1, 1, 20))
    tree = sample(model, 30, tune=0, **BUDGET, step=TemperedMetropolis())
    radius = float(str(tree.dp.report()).split("ball of radius ")[1].split()[0])
    with pytest.raises(ArgumentError, match=r"no certificate at the initial point.*Give at most"):
        sample(model, 30, tune=0, **BUDGET, step=TemperedMetropolis(radius=3 * radius))
    sample(model, 30, tune=0, **BUDGET, step=TemperedMetropolis(radius=radius / 2))
