"""The law of particles and weights, and the loss of the whole mechanism by quadrature."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from pymc_dp.audit import compare_with_event, privacy_loss, product
from pymc_dp.domain import Domain
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.annealing import sampler
from tests.step_methods.annealing.conftest import annealing, domain, ridge
from tests.step_methods.conftest import bernoulli

# --- law --------------------------------------------------------------------------------------------------------------


def evidence(log_likelihood, log_prior, axes, beta):
    """Log of the integral of prior times likelihood^β over a box."""
    mesh = np.meshgrid(*axes, indexing="ij")
    height = np.exp(log_prior(*mesh) + beta * log_likelihood(*mesh))
    for axis in reversed(axes):
        height = integrate.simpson(height, x=axis, axis=-1)
    return float(np.log(height))


def check_evidence(run, rng, expected):
    with opened_gate():
        left_out = run.likelihood.constant(run.sums) + run.likelihood.public_constant()
    logs = run.weigh(run.anneal(rng, run.starts(rng))) + run.beta * left_out
    weights = np.exp(logs - expected)
    error = weights.std() / math.sqrt(len(weights))
    assert error < 0.1, "weights are even enough to tell"
    assert abs(weights.mean() - 1) < 5 * error
    return weights


@pytest.mark.parametrize("epsilon", [1e9, 300.0])
def test_the_mean_weight_is_the_evidence_of_a_bernoulli_model(rng, epsilon):
    """β = 1, and the tempered evidence at β < 1."""
    answers = np.arange(30) % 3 == 0
    run = annealing(bernoulli(answers), None, epsilon, particles=120, temperatures=6, evidence=True)
    beta = run.beta
    assert (beta == 1) == (epsilon > 1e6)
    a, b = 1 + beta * 10, 1 + beta * 20
    mass = special.betainc(a, b, 0.95) - special.betainc(a, b, 0.05)
    weights = check_evidence(run, rng, special.betaln(a, b) + math.log(mass / 0.9))
    assert weights.std() > 0.01, "weights are no constant"


@pytest.mark.slow
def test_weights_make_up_for_a_path_that_is_too_short(rng):
    """One scan leaves b where its prior put it; drawn by their weights, particles follow the posterior."""
    run = annealing(ridge([1.0, 1.4]), Domain(bounds={"y": (-4, 4)}), particles=600, temperatures=1, grid=512)
    states = run.anneal(rng, run.starts(rng))
    logs, b = run.weigh(states), states["b"][:, -1]
    axis = np.linspace(-3, 3, 601)
    height = -(axis[:, None] ** 2 + axis**2) / 2 - ((axis[:, None] + axis - 1.2) ** 2) * 2 / (2 * 0.25)
    mass = np.exp(height - height.max()).sum(axis=1)
    cdf = np.interp(b, axis, np.cumsum(mass) / mass.sum())
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()

    def distance(shares):
        order = np.argsort(b)
        return np.abs(np.cumsum(shares[order]) - cdf[order]).max()

    size = 1 / (weights**2).sum()
    assert size > 60
    assert distance(weights) < 1.95 / math.sqrt(size)  # Kolmogorov's law at α = 0.001
    assert distance(np.full(600, 1 / 600)) > 1.95 / math.sqrt(600)


# --- privacy ----------------------------------------------------------------------------------------------------------


def compared(runs, tables, start):
    """Loss of all states of two particles at two temperatures and of the index, by quadrature, against the charge.

    The states before the last decide on the index, by the weights of the run itself; those of the prior are public.
    """
    first, last = runs[0].path
    assert first < last < 1 and list(runs[1].path) == [first, last]
    nodes, quadrature = np.polynomial.legendre.leggauss(18)
    places = np.concatenate([0.5 + 0.45 * nodes, [0.05, 0.95]])
    quadrature = np.concatenate([0.45 * quadrature, [0.0, 0.0]])  # corners count for the supremum
    one, other = (item.ravel() for item in np.meshgrid(places, places))
    weights = np.multiply.outer(quadrature, quadrature).ravel()

    def density(rows, beta):
        ones, zeros = beta * sum(rows), beta * (len(rows) - sum(rows))
        mass = np.diff(special.betainc(1 + ones, 1 + zeros, [0.05, 0.95]))[0]
        law = stats.beta(1 + ones, 1 + zeros)
        return lambda p: law.logpdf(p) - np.log(mass)

    def outcomes(run, rows):
        """Log-density of (state of each particle at the first temperature, index)."""
        logs = []
        for begin, held in zip(start, (one, other), strict=True):
            steps = [np.full(len(held), begin), held]
            likelihoods = [run.likelihood.at({"p": places}, run.sums) for places in steps]
            logs.append(sampler.log_weights(np.stack(likelihoods, axis=1), run.path))
        place = np.array([[start[0], one[3], 0.5], [start[1], other[3], 0.5]])
        np.testing.assert_allclose(run.weigh({"p": place}), [held[3] for held in logs])
        law = density(rows, first)
        return (law(one) + law(other) + special.log_softmax(logs, axis=0)).ravel()

    held = [outcomes(run, rows) for run, rows in zip(runs, tables, strict=True)]
    ending = privacy_loss(*[density(rows, last)(places) for rows in tables], quadrature)
    whole = product(privacy_loss(*held, np.tile(weights, 2)), ending, ending)
    return compare_with_event(whole, runs[0].costs.event(runs[0].beta))


def two_runs(tables, relation="replace"):
    return [annealing(bernoulli(rows), domain(relation), 4.0, particles=2, temperatures=[1, 2]) for rows in tables]


FAR = ([0] * 150, [0] * 149 + [1])
"""Where one row moves as much as it ever can, in one direction."""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("relation", "tables", "least"),
    [("replace", FAR, 0.75), ("add_remove", ([0] * 4, [0] * 3), 0.6), ("replace", ([0], [1]), 0.4)],
)
def test_the_whole_mechanism_loses_no_more_than_is_charged(relation, tables, least):
    comparison = compared(two_runs(tables, relation), tables, [0.95, 0.05])
    assert comparison.passed, comparison.report()
    assert least * 4.0 < comparison.measured_epsilon <= 4.0 * (1 + 1e-9)
