"""Families as a user meets them: what explain says, what is refused, and private models of both relations."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError

MODELS = {
    "Binomial": (lambda y: pm.Binomial("y", 9, pm.Beta("p", 1, 1), observed=y), None, "sum x"),
    "Geometric": (lambda y: pm.Geometric("y", pm.Beta("p", 1, 1), observed=y), (1, 9), "sum x"),
    "NegativeBinomial": (
        lambda y: pm.NegativeBinomial("y", mu=pm.HalfNormal("mu", 5), alpha=2, observed=y),
        (0, 9),
        "sum x",
    ),
    "LogNormal": (lambda y: pm.LogNormal("y", pm.Normal("mu", 0, 1), 1, observed=y), (1, np.exp(2)), "sum (log x - 1)"),
    "HalfNormal": (lambda y: pm.HalfNormal("y", pm.HalfNormal("s", 5), observed=y), (0, 8), "sum (x^2 - 32)"),
    "Laplace": (lambda y: pm.Laplace("y", 2, pm.HalfNormal("b", 5), observed=y), (0, 8), "sum (|x - 2| - 3)"),
    "Exponential": (lambda y: pm.Exponential("y", pm.HalfNormal("r", 5), observed=y), (0, 8), "sum (x - 4)"),
    "Gamma": (lambda y: pm.Gamma("y", 2, pm.HalfNormal("b", 1), observed=y), (1, 9), "sum (x - 5)"),
    "InverseGamma": (
        lambda y: pm.InverseGamma("y", 2, pm.HalfNormal("b", 1), observed=y),
        (0.5, 10),
        "sum (1/x - 1.05)",
    ),
    "Weibull": (lambda y: pm.Weibull("y", 2, pm.HalfNormal("b", 5), observed=y), (1, 3), "sum (x^2 - 5)"),
    "Beta": (lambda y: pm.Beta("y", pm.HalfNormal("a", 5), 1, observed=y), (np.exp(-3), np.exp(-1)), "sum (log x + 2)"),
    "VonMises": (
        lambda y: pm.VonMises("y", pm.Uniform("mu", -3, 3), pm.HalfNormal("k", 2), observed=y),
        None,
        "sum cos x",
    ),
}


def model_of(name: str) -> pm.Model:
    build = MODELS[name][0]
    whole = name in ("Binomial", "Geometric", "NegativeBinomial")
    with pm.Model() as model:
        build(np.array([2, 3, 5, 1, 2]) if whole else np.array([0.2, 0.4, 0.9, 0.5, 0.3]))
    return model


def domain_of(name: str, **options) -> dp.Domain:
    bounds = MODELS[name][1]
    return dp.Domain(bounds={} if bounds is None else {"y": bounds}, **options)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model[1] is not None])
def test_without_bounds_every_family_says_which_it_takes(name):
    with pytest.raises(UnsupportedModelError, match=r"[Bb]ounds") as caught:
        dp.privatize(model_of(name), epsilon=1.0)
    assert "Domain(bounds={'y': (" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "bounds", "remedy"),
    [
        ("Exponential", (-1, 3), r"within \[0, inf\)"),
        ("HalfNormal", (-1, 3), r"within \[0, inf\)"),
        ("Gamma", (0, 3), r"strictly within \(0, inf\)"),
        ("Beta", (0.1, 1), r"strictly within \(0, 1\)"),
        ("InverseGamma", (1e-300, 3), "closer to where values are expected"),
        ("Weibull", (1, 1e200), "closer to where values are expected"),
        ("Exponential", (1e9, 1e9 + 1), "closer to where values are expected"),
    ],
)
def test_bounds_that_a_family_cannot_take_are_refused_with_others(name, bounds, remedy):
    with pytest.raises(UnsupportedModelError, match=remedy):
        dp.privatize(model_of(name), epsilon=1.0, domain=dp.Domain(bounds={"y": bounds}))


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
@pytest.mark.parametrize("name", MODELS)
def test_private_models_have_a_density_and_draws_under_both_relations(name):
    for relation, options in (("replace", {}), ("add_remove", {"n_max": 50})):
        domain = domain_of(name, neighbours=relation, **options)
        private = dp.privatize(model_of(name), epsilon=1.0, domain=domain)
        assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))
        drawn = pm.draw(private["y"], mode="FAST_COMPILE", random_seed=1)
        assert drawn.ndim == 2 and np.isfinite(drawn).all()


def test_trials_of_which_sums_of_many_rows_overflow_are_refused():
    """Ten rows of 1e18 trials are more than a whole number of 64 bits holds: one row would move their sum by 2**64."""
    with pm.Model() as model:
        pm.Binomial("y", 10**18, pm.Beta("p", 1, 1), observed=np.full(10, 1e18))
    with pytest.raises(UnsupportedModelError, match=r"2\*\*29"):
        dp.privatize(model, epsilon=1.0)
