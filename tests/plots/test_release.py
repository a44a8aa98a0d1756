"""What `dp.plots.release` draws: values as released, the interval of the noise, labels."""

from math import log

import numpy as np
import pytest

from pymc_dp import plots
from pymc_dp.errors import ArgumentError


def panel(figure, variable, statistic):
    return figure.viz["plot"][variable].sel({f"{variable}_statistic": statistic}).item()


def drawn(elements, function):
    return [element for element in elements if element["function"] == function]


def test_points_are_the_released_values_and_negative_counts_stay(trace):
    shown = panel(plots.release(trace, backend="none"), "affair", "count of 0")
    (points,) = drawn(shown, "scatter")
    assert points["x"].tolist() == [30.0, -3.0, 100.0]
    assert points["y"].tolist() == [2, 1, 0]
    assert drawn(shown, "vline")[0]["x"] == 0


@pytest.mark.parametrize(("statistic", "scale"), [("sum", 4.0), ("sum of squares", 8.0)])
def test_interval_is_that_of_the_noise_of_the_statistic(trace, statistic, scale):
    shown = panel(plots.release(trace, backend="none"), "income", statistic)
    (line,) = drawn(shown, "fill_between_y")
    assert np.ptp(line["x"]) == pytest.approx(2 * scale * log(10))
    assert f"± {scale * log(10):.3g} (90%" in drawn(shown, "xlabel")[0]["string"]
    (number,) = drawn(shown, "text")
    assert number["string"].endswith(f" ± {scale * log(10):{'.1f' if scale == 4 else '.0f'}}")


def test_interval_of_gaussian_noise_is_that_of_a_normal_variable(gaussian_noise):
    shown = panel(plots.release(gaussian_noise, ci_prob=0.95, backend="none"), "income", "sum")
    (line,) = drawn(shown, "fill_between_y")
    assert np.ptp(line["x"]) == pytest.approx(2 * 4.0 * 1.959964)


def test_unknown_variable_is_refused(trace):
    with pytest.raises(
        ArgumentError, match="var_name must be one of 'affair', 'income', got 'afair'. Did you mean 'affair'"
    ):
        plots.release(trace, var_name="afair", backend="none")


@pytest.mark.parametrize("ci_prob", [0, 1, 90, float("nan"), "most"])
def test_probability_is_checked(trace, ci_prob):
    with pytest.raises(ArgumentError, match="ci_prob must be"):
        plots.release(trace, ci_prob=ci_prob, backend="none")
