"""Bounds of one row's log-likelihood: never below what points attain, and the known values to 0.1%."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp

ROWS = 3


def bernoulli(low: float, high: float) -> pm.Model:
    with pm.Model() as model:
        p = pm.Uniform("p", low, high)
        pm.Bernoulli("y", p, observed=np.zeros(ROWS, dtype=int))
    return model


def normal() -> pm.Model:
    with pm.Model() as model:
        mu, sd = pm.Uniform("mu", -1, 1), pm.Uniform("sd", 0.5, 2)
        pm.Normal("y", mu, sd, observed=np.zeros(ROWS))
    return model


def normal_mean() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Uniform("mu", -1, 1)
        pm.Normal("y", mu, 1, observed=np.zeros(ROWS))
    return model


def exponential() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Uniform("rate", 0.1, 2)
        pm.Exponential("y", rate, observed=np.zeros(ROWS))
    return model


def poisson() -> pm.Model:
    with pm.Model() as model:
        rate = pm.Uniform("rate", 0.5, 5)
        pm.Poisson("y", rate, observed=np.zeros(ROWS, dtype=int))
    return model


def levels(shape=()) -> pm.Model:
    """A mean that an unknown level, or one of each group, chooses."""
    with pm.Model() as model:
        z, mu = pm.DiscreteUniform("z", 0, 2, shape=shape), pm.Uniform("mu", -1, 1, shape=3)
        found = mu[z][pm.Data("g", np.arange(ROWS))] if shape else mu[z]
        pm.Normal("y", found, 1, observed=np.zeros(ROWS))
    return model


def known_levels() -> pm.Model:
    """Two of four numbers can be chosen."""
    with pm.Model() as model:
        z = pm.DiscreteUniform("z", 0, 1)
        pm.Normal("y", pt.stack([0.0, 1.0, 5.0, 9.0])[z], 1, observed=np.zeros(ROWS))
    return model


# Model, bounds, quantity, value [theory.md 1].
KNOWN = {
    "bernoulli .05": (bernoulli(0.05, 0.95), None, "log_likelihood", 2.944439),
    "bernoulli .2": (bernoulli(0.2, 0.8), None, "log_likelihood", 1.386294),
    "bernoulli .3 to .6, sensitivity": (bernoulli(0.3, 0.6), None, "log_likelihood", 0.847298),
    "bernoulli .3 to .6, range": (bernoulli(0.3, 0.6), None, "range", 1.252763),
    "normal, mean and sd": (normal(), (-3, 3), "log_likelihood", 32.0),
    "normal mean, sensitivity": (normal_mean(), (-3, 3), "log_likelihood", 8.0),
    "normal mean, range": (normal_mean(), (-3, 3), "range", 12.0),
    "mean of an unknown level": (levels(), (-3, 3), "range", 12.0),
    "means of unknown levels of groups": (levels((ROWS,)), (-3, 3), "range", 12.0),
    "known means of an unknown level": (known_levels(), (-3, 3), "range", 6.0),
    "exponential, sensitivity": (exponential(), (0, 5), "log_likelihood", 10.0),
    "exponential, range": (exponential(), (0, 5), "range", 9.5),
    "poisson, sensitivity": (poisson(), (0, 20), "log_likelihood", 56.19856),
    "poisson, range": (poisson(), (0, 20), "range", 46.0517),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_values_are_met_to_a_thousandth_from_above(name):
    model, bounds, quantity, value = KNOWN[name]
    found = getattr(dp.sensitivity(model, dp.Domain(bounds={"y": bounds} if bounds else None)), quantity)
    assert value * (1 - 5e-4) <= found.value <= value * 1.001
    assert found.attained >= value * (1 - 1e-3)


# --- lopsided and degenerate boxes ------------------------------------------------------------------------------------

U = pm.Uniform
REAL, COUNT = np.zeros(ROWS), np.zeros(ROWS, dtype=int)


def point(name, value):
    """A parameter with a single possible value."""
    return U(name, value, value)


def gauss(x, mu=0.0, sd=1.0):
    return -0.5 * ((x - mu) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)


# Likelihood, bounds, range and sensitivity under replace, the same under add_remove.
BOXES = {
    "a lopsided probability": (
        lambda: pm.Bernoulli("y", U("p", 0.3, 0.6), observed=COUNT),
        {},
        (np.log(0.6 / 0.4 * 0.7 / 0.3), np.log(0.7 / 0.3), np.log(2), -np.log(0.3)),
    ),
    "a rare event": (
        lambda: pm.Bernoulli("y", U("p", 1e-6, 1e-3), observed=COUNT),
        {},
        (
            np.log(1e3) + np.log1p(-1e-6) - np.log1p(-1e-3),
            np.log1p(-1e-6) - np.log(1e-6),
            np.log(1e3),
            -np.log(1e-6),
        ),
    ),
    "a mean to one side of the values": (
        lambda: pm.Normal("y", U("mu", 2, 5), 1.0, observed=REAL),
        {"y": (-1, 0.5)},
        (1.5 * 3, gauss(0.5, 5) - gauss(-1, 5), gauss(-1, 2) - gauss(-1, 5), -gauss(-1, 5)),
    ),
    "lopsided counts": (
        lambda: pm.Poisson("y", U("mu", 2, 3), observed=COUNT),
        {"y": (4, 9)},
        (5 * np.log(1.5), None, 9 * np.log(1.5) - 1, None),
    ),
    "a known probability": (
        lambda: pm.Bernoulli("y", point("p", 0.3), observed=COUNT),
        {},
        (0.0, np.log(0.7 / 0.3), 0.0, -np.log(0.3)),
    ),
    "a known mean": (
        lambda: pm.Normal("y", point("mu", 0.25), U("sd", 0.5, 2), observed=REAL),
        {"y": (-1, 0.25)},
        (
            gauss(0.25, 0.25, 0.5) - gauss(-1, 0.25, 0.5) - gauss(0.25, 0.25, 2) + gauss(-1, 0.25, 2),
            gauss(0.25, 0.25, 0.5) - gauss(-1, 0.25, 0.5),
            None,
            None,
        ),
    ),
    "everything known": (
        lambda: pm.Normal("y", point("mu", 0.5), point("sd", 2.0), observed=REAL),
        {"y": (1.0, np.nextafter(1.0, 2))},
        (0.0, 0.0, 0.0, -gauss(1.0, 0.5, 2.0)),
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", BOXES)
def test_boxes_of_any_shape_have_their_exact_bounds(name):
    build, bounds, values = BOXES[name]
    with pm.Model() as model:
        build()
    found = [
        getattr(dp.sensitivity(model, dp.Domain(bounds=bounds, neighbours=neighbours, n_max=n_max)), quantity).value
        for neighbours, n_max in (("replace", None), ("add_remove", 99))
        for quantity in ("range", "log_likelihood")
    ]
    for value, expected in zip(found, values, strict=True):
        if expected is not None:
            assert expected <= value <= expected * 1.001 + 1e-8


def test_values_with_a_single_public_value_are_refused():
    with pytest.raises(dp.errors.PrivacyError, match=r"bounds\['y'\] must have low < high"):
        dp.Domain(bounds={"y": (1.5, 1.5)})


def test_narrower_boxes_never_have_larger_bounds():
    """From the box to a box inside of it, one side at a time."""
    bounds, last = [(-1.0, 2.0), (0.5, 2.0)], np.inf
    for step in range(6):
        with pm.Model() as model:
            pm.Normal("y", U("mu", *bounds[0]), U("sd", *bounds[1]), observed=REAL)
        value = dp.sensitivity(model, dp.Domain(bounds={"y": (-3, 1)})).range.value
        assert value <= last * (1 + 1e-3)
        last, (low, high) = value, bounds[step % 2]
        bounds[step % 2] = (low + 0.1, high) if step % 3 else (low, high - 0.3)
