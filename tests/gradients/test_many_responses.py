"""Noised gradients of responses that are many values together: wide counts, counts of levels, several at once."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

N, RNG = 40, np.random.default_rng(4)
X = RNG.uniform(-1, 1, N)
pytestmark = pytest.mark.usefixtures("interpreted")


def wide(a, x):
    pm.Poisson("y", pm.math.exp(6 + a * x), observed=RNG.poisson(np.exp(6 + 0.5 * X)))


def levels(a, x):
    p = pm.math.stack([pm.math.sigmoid(a * x), 1 - pm.math.sigmoid(a * x)], axis=-1)
    q = 1 / (1 + np.exp(-0.5 * X))
    pm.Multinomial("y", n=5, p=p, observed=RNG.multinomial(5, np.stack([q, 1 - q], axis=-1)))


def several(a, x):
    for place in range(3):
        pm.Poisson(f"y{place}", pm.math.exp(1 + a * x), observed=RNG.poisson(np.exp(1 + 0.5 * X)))


CASES = {
    "wide": (wide, {"y": (0, 3000)}),
    "levels": (levels, {"y": (0, 5)}),
    "several": (several, {f"y{place}": (0, 30) for place in range(3)}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_private_likelihood_is_about_the_truth(name):
    """At a large ε it is highest near the coefficient that made them."""
    observe, bounds = CASES[name]
    with pm.Model() as model:
        observe(pm.Normal("a"), pm.Data("x", X))
    with dp.testing.insecure_randomness(3):
        private = dp.privatize(
            model, epsilon=100.0, delta=1e-5, domain=dp.Domain(bounds={"x": (-1, 1), **bounds}),
            statistics=dp.Gradients(steps=10), ledger=dp.Ledger(999.0, 1e-3),
        )  # fmt: skip
    logp, at = private.compile_logp(), np.linspace(-0.5, 1.5, 41)
    (value,) = private.value_vars
    found = at[np.argmax([float(logp({value.name: np.asarray(one)})) for one in at])]
    assert abs(found - 0.5) < 0.4
