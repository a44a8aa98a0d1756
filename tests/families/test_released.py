"""Bounds that families take: without them, or with others, a release is refused with those that would do."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

FAMILIES = {
    "Poisson": lambda y: pm.Poisson("y", pm.HalfNormal("mu", 5), observed=y),
    "Geometric": lambda y: pm.Geometric("y", pm.Beta("p", 1, 1), observed=y),
    "NegativeBinomial": lambda y: pm.NegativeBinomial("y", mu=pm.HalfNormal("mu", 5), alpha=2, observed=y),
    "Normal": lambda y: pm.Normal("y", pm.Normal("mu"), 1, observed=y / 5),
    "Exponential": lambda y: pm.Exponential("y", pm.HalfNormal("rate", 5), observed=y / 5),
    "HalfNormal": lambda y: pm.HalfNormal("y", pm.HalfNormal("s", 5), observed=y / 5),
    "LogNormal": lambda y: pm.LogNormal("y", pm.Normal("mu"), 1, observed=y / 5),
    "Laplace": lambda y: pm.Laplace("y", 1, pm.HalfNormal("b", 5), observed=y / 5),
    "Gamma": lambda y: pm.Gamma("y", pm.HalfNormal("a", 5), 1, observed=y / 5),
    "InverseGamma": lambda y: pm.InverseGamma("y", 2, pm.HalfNormal("b", 1), observed=y / 5),
    "Weibull": lambda y: pm.Weibull("y", 2, pm.HalfNormal("b", 5), observed=y / 5),
    "Beta": lambda y: pm.Beta("y", pm.HalfNormal("a", 5), 1, observed=y / 6),
}
REFUSED = [
    *((name, None, r"Domain\(bounds=\{'y': \(") for name in FAMILIES),
    ("Exponential", (-1, 3), r"within \[0, inf\)"),
    ("HalfNormal", (-1, 3), r"within \[0, inf\)"),
    ("Gamma", (0, 3), r"strictly within \(0, inf\)"),
    ("Beta", (0.1, 1), r"strictly within \(0, 1\)"),
    ("InverseGamma", (1e-300, 3), "closer to where values are expected"),
    ("Weibull", (1, 1e200), "closer to where values are expected"),
    ("Exponential", (1e9, 1e9 + 1), "closer to where values are expected"),
]


@pytest.mark.parametrize(("name", "bounds", "remedy"), REFUSED)
def test_bounds_that_a_family_cannot_take_are_refused_with_others(name, bounds, remedy):
    with pm.Model() as model:
        FAMILIES[name](np.array([2, 3, 5, 1, 2]))
    domain = dp.Domain(bounds={} if bounds is None else {"y": bounds})
    with pytest.raises(dp.errors.UnsupportedModelError, match=remedy):
        dp.privatize(model, epsilon=1.0, domain=domain)


def test_trials_of_which_sums_of_many_rows_overflow_are_refused():
    """Ten rows of 1e18 trials are more than a whole number of 64 bits holds: one row would move their sum by 2**64."""
    with pm.Model() as model:
        pm.Binomial("y", 10**18, pm.Beta("p", 1, 1), observed=np.full(10, 1e18))
    with pytest.raises(dp.errors.UnsupportedModelError, match=r"2\*\*29"):
        dp.privatize(model, epsilon=1.0)
