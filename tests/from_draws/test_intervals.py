"""Intervals from draws."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError
from pymc_dp.from_draws.private_model import quantiles


@pytest.mark.slow
def test_a_row_for_every_scalar(made):
    model, tree, mechanism = made
    found = dp.from_draws.draw_intervals(tree, model, 0.5)
    assert list(found["variable"]) == ["a", "b"] and (found["low"] < found["mean"]).all()
    wide = dp.from_draws.draw_intervals(tree, model, 0.95)
    assert ((wide["high"] - wide["low"]) > 1.5 * (found["high"] - found["low"])).all()
    temperature = 1 / mechanism.given.power
    assert found.attrs["temperature"] == temperature and found.attrs["draws"] == 2
    assert found.attrs["factor"] == np.sqrt(1 + temperature / 2)


@pytest.mark.slow
def test_covariates_that_vary_less_say_less_of_their_slope(made):
    model, tree, _ = made
    still = dp.from_draws.draw_intervals(tree, model, covariates={"x": np.full(10, 0.01)}).set_index("variable")
    spread = dp.from_draws.draw_intervals(tree, model).set_index("variable")
    assert still.loc["b", "sd"] > 1.3 * spread.loc["b", "sd"]
    assert still.loc["a", "sd"] < spread.loc["a", "sd"]


@pytest.mark.parametrize("probability", [0.0, 1.0, -1, "abc"])
def test_a_probability_lies_between_0_and_1(made, probability):
    with pytest.raises(ArgumentError, match="probability"):
        dp.from_draws.draw_intervals(made[1], made[0], probability)


def test_covariates_of_no_column_are_refused(made):
    with pytest.raises(ArgumentError, match="covariates names 'z'"):
        dp.from_draws.draw_intervals(made[1], made[0], covariates={"z": np.ones(3)})


def test_quantiles_of_equal_weights_are_those_of_the_sample(rng):
    points = rng.normal(size=(4001, 2))
    found = quantiles(points, np.full(4001, 1 / 4001), 0.2)
    assert np.allclose(found, np.quantile(points, 0.2, axis=0), atol=2e-3)
