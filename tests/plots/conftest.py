"""Traces of releases whose draws are known: what is drawn is known, and nothing is sampled."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.traced import traced

RATING = np.arange(180) % 3


def trace_of(**asked):
    """Three quarters of the budget for a table of counts, and one for the sum of another column."""
    with pm.Model(coords={"rating": range(3), "row": range(180)}) as model:
        p = pm.Beta("p", 1, 1, dims="rating")
        pm.Bernoulli("affair", p[pm.Data("rating_index", RATING)], observed=RATING % 2, dims="row")
        pm.Normal("income", pm.Normal("mu"), 1.0, observed=np.linspace(0, 1, 180), dims="row")
    domain = dp.Domain(bounds={"income": (0, 1)})
    statistics = dp.Statistics(asked.pop("noise", "laplace"), share={"affair": 3, "income": 1})
    given = {"domain": domain, "statistics": statistics, "ledger": dp.Ledger(9.0, 0.1)}
    private = dp.privatize(model, epsilon=1.0, **asked, **given)
    return traced(private, {"p": np.full((5, 3), 0.5), "mu": np.zeros(5)})


@pytest.fixture(scope="session")
def trace():
    return trace_of()


@pytest.fixture(scope="session")
def gaussian_noise():
    return trace_of(noise="gaussian", delta=1e-6)


@pytest.fixture
def agg():
    """Matplotlib without a screen; every figure is closed."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield plt
    plt.close("all")
