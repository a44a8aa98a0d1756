"""Sums of clipped gradients, against finite differences, and whatever rows hold."""

import numpy as np
import pytensor
import pytest

from tests.step_methods.hamiltonian.models import WIDE, domain, held, logistic, table, take

UNITS = np.array([1.0, 0.5, 2.0])


@pytest.fixture(scope="module")
def step():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return held(logistic(*table()), clip_norm=0.6, scale={"a": 1.0, "b": np.array([0.5, 2.0])})


def each_row(step, x, y, values):
    found = []
    for i in range(len(x)):
        take(step, x[i : i + 1], y[i : i + 1])
        found.append(step.gradient.of_rows(values))
    return np.array(found)


def differences(values, density, width=1e-6):
    return np.array(
        [(density(values + width * unit) - density(values - width * unit)) / (2 * width) for unit in np.eye(3)]
    )


@pytest.mark.slow
def test_rows_and_prior_have_the_gradients_of_the_density(step, rng):
    x, y = table()
    for values in (np.zeros(3), rng.normal(size=3), 30 * rng.normal(size=3)):
        signs = 2 * y - 1

        def rows(at, signs=signs):
            return -np.logaddexp(0, -signs * (at[0] + x @ at[1:]))

        true = (differences(values, rows) * UNITS[:, None]).T
        norms = np.linalg.norm(true, axis=1)
        expected = true * np.minimum(1, 0.6 / np.maximum(norms, 1e-300))[:, None]
        np.testing.assert_allclose(each_row(step, x, y, values), expected, atol=1e-6)
        take(step, x, y)
        np.testing.assert_allclose(step.gradient.of_rows(values), expected.sum(axis=0), atol=1e-5)
        np.testing.assert_allclose(step.gradient.of_prior(values), -UNITS * values, rtol=1e-12)
    assert (norms > 0.6).any() and (norms < 0.6).any(), "both kinds of rows are looked at"


def hostile(rng):
    return rng.choice(WIDE, size=2) if rng.random() < 0.7 else rng.normal(size=2) * 10.0 ** rng.integers(-9, 9), (
        rng.choice([0, 1, -1, 7])
    )


def largest_move(step, relation, rng, tries=150):
    """Largest sensitivity of the sum between neighbours, over the clip norm."""
    x, y = table(8)
    found = 0.0
    opposite = ((9.0, 0.0), 0), ((9.0, 0.0), 1)
    pairs = [opposite, *((hostile(rng), hostile(rng)) for _ in range(tries))]
    for pair, scale in zip(pairs, np.resize([0.0, 0.3, 5.0, 1e3, 1e160], len(pairs)), strict=True):
        values = scale * rng.normal(size=3)
        sums = []
        for row in pair:
            take(step, np.vstack([x, row[0]]), [*y, row[1]])
            sums.append(step.gradient.of_rows(values))
        if relation == "add_remove":
            take(step, x, y)
            sums[1] = step.gradient.of_rows(values)
        assert np.isfinite(sums).all()
        found = max(found, float(np.linalg.norm(sums[0] - sums[1])) / 0.6)
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize(("relation", "norms"), [("replace", 2), ("add_remove", 1)])
def test_hostile_rows_move_the_sum_by_what_is_claimed_and_attain_it(step, relation, norms, rng):
    found = largest_move(step, relation, rng)
    assert 0.99 * norms < found <= norms
    assert domain(relation).neighbours == relation
