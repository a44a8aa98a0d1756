"""The chain on a release has the law that enumeration of all states and all counts gives."""

from dataclasses import replace
from itertools import product

import arviz as az
import numpy as np
import pytest
from scipy.signal import convolve2d
from scipy.special import gammaln

import pymc_dp as dp
from pymc_dp.step_methods.markov.collapsed import CollapsedScan
from tests.step_methods.markov.conftest import MONTHS, MOVES, PUBLIC, REGIONS, START, STATES, TWO, hidden_model

pytestmark = pytest.mark.usefixtures("interpreted")


def scan_of(domain, noise_aware=True, rows=24, fields=("two",), **options):
    statistics = dp.Statistics(noise_aware=noise_aware)
    source = hidden_model(rows, fields=fields, **options)
    private = dp.privatize(source, epsilon=1.0, domain=domain, statistics=statistics, ledger=dp.Ledger(epsilon=9.0))
    return private, CollapsedScan.of(private)


def log_beta(alpha):
    return gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1))


def prior_of(path):
    """Log-probability of states of all chains, start and moves integrated out."""
    firsts, moves = np.zeros(STATES), np.zeros((STATES, STATES))
    for chain in path:
        firsts[chain[0]] += 1
        np.add.at(moves, (chain[:-1], chain[1:]), 1)
    return log_beta(START + firsts) - log_beta(START) + (log_beta(MOVES + moves) - log_beta(MOVES)).sum()


def convolved(tables):
    """Term by term: by Fourier transforms, small values would have the error of the largest."""
    total = np.ones((1, 1))
    for table in tables:
        total = convolve2d(total, table)
    return total


def enumerated(weights, places):
    """Posterior of every path, given the weight of each pair of counts (c_0, c_1) of each cell."""
    paths, logs = [], []
    for flat in product(range(STATES), repeat=REGIONS * MONTHS):
        path = np.array(flat).reshape(REGIONS, MONTHS)
        total = prior_of(path)
        for state in range(STATES):
            sums = convolved([weight for weight, place in zip(weights, places, strict=True) if flat[place] == state])
            zeros, ones = np.indices(sums.shape)
            ratios = np.exp(log_beta(TWO[state] + np.stack([zeros, ones], axis=-1)) - log_beta(TWO[state]))
            total += np.log((sums * ratios).sum())
        paths.append(flat)
        logs.append(total)
    logs = np.array(logs)
    return np.array(paths), np.exp(logs - np.logaddexp.reduce(logs))


def of_public_sizes(items, noise):
    """Weights of counts of cells with known sizes, of which that of level 1 is released."""
    found = []
    for size, value in zip(items.bounds, items.released[:, 1], strict=True):
        table, ones = np.zeros((int(size) + 1,) * 2), np.arange(int(size) + 1)
        ways = np.exp(gammaln(size + 1) - gammaln(ones + 1) - gammaln(size - ones + 1))
        table[int(size) - ones, ones] = ways * noise(value - ones)
        found.append(table)
    return found


def of_private_sizes(items, noise):
    """Weights of counts of cells with a bound on their sizes, both released."""
    found = []
    for bound, (first, second) in zip(items.bounds, items.released, strict=True):
        zeros, ones = np.indices((int(bound) + 1,) * 2)
        size = zeros + ones
        ways = np.exp(gammaln(size + 1) - gammaln(zeros + 1) - gammaln(ones + 1))
        with np.errstate(invalid="ignore"):
            prior = np.where(size <= bound, (1 + items.rates[0] * size) ** -2.0, 0)
        found.append(prior * ways * noise(first - zeros) * noise(second - ones))
    return found


def run(scan, rng, draws):
    """States of a chain, without PyMC's loop and transforms."""
    states = np.zeros(REGIONS * MONTHS, dtype=np.int64)
    profiles = [np.full(profile.shape, 1 / profile.shape[1]) for profile in scan.profiles]
    found = []
    for _ in range(draws):
        drawn = scan.update(rng, states, profiles)
        states = drawn["states"].ravel()
        profiles = [drawn[profile.name] for profile in scan.profiles]
        found.append(states.copy())
    return np.array(found)[draws // 20 :]


def agree(chain, paths, mass):
    """Compare how often each state has value 1, and how often two of them agree."""
    for one in range(REGIONS * MONTHS):
        for other in range(one + 1):
            seen = (chain[:, one] == (chain[:, other] if other < one else 1)).astype(float)
            truth = (paths[:, one] == (paths[:, other] if other < one else 1)) @ mass
            assert float(az.ess(seen[None])) > 200
            assert abs(seen.mean() - truth) < 5 * float(az.mcse(seen[None]))


PUBLIC_COUNTS = np.array([4.0, -1.0, 3.0, 6.0, 1.0, 2.0])
PRIVATE_COUNTS = np.array([[4.0, 1.0], [0, 5], [-2, 3], [6, 1], [2, 2], [1, 7]])


@pytest.mark.slow
@pytest.mark.parametrize("gaussian", [False, True])
def test_states_given_noised_counts_of_known_sizes(rng, gaussian):
    _, scan = scan_of(PUBLIC)
    released = scan.items.released.copy()
    released[:, 1] = PUBLIC_COUNTS
    scan.items = replace(scan.items, released=released, gaussian=gaussian)
    scale = scan.items.scales[0, 1]
    noise = lambda x: np.exp(-0.5 * (x / scale) ** 2 if gaussian else -np.abs(x / scale))  # noqa: E731
    paths, mass = enumerated(of_public_sizes(scan.items, noise), scan.items.place)
    agree(run(scan, rng, 12_000), paths, mass)


@pytest.mark.slow
def test_states_given_noised_counts_of_unknown_sizes(rng):
    _, scan = scan_of(None)
    scan.items = replace(scan.items, released=PRIVATE_COUNTS)
    scale = scan.items.scales[0, 0]
    weights = of_private_sizes(scan.items, lambda x: np.exp(-np.abs(x / scale)))
    paths, mass = enumerated(weights, scan.items.place)
    agree(run(scan, rng, 20_000), paths, mass)


@pytest.mark.slow
def test_counts_stay_within_what_is_public(rng):
    for domain in (PUBLIC, None):
        _, scan = scan_of(domain, fields=("two", "three"), lower=0.05)
        run(scan, rng, 40)
        items, sizes = scan.items, scan.counts.sum(axis=1)
        assert (scan.counts >= 0).all() and (scan.counts == np.rint(scan.counts)).all()
        assert (scan.counts[items.field == 0, 2] == 0).all()
        assert (sizes <= items.bounds).all()
        assert (sizes == items.bounds).all() == (domain is PUBLIC)
