"""Intervals from draws."""

import numpy as np
import pytest

import pymc_dp as dp


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
