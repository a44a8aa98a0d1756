"""What `dp.plots.release` draws: values as released, the interval of the noise, labels."""

from math import log

import numpy as np
import pytest

from pymc_dp import plots
from pymc_dp.errors import ArgumentError, TraceError


def panel(figure, variable, statistic):
    return figure.viz["plot"][variable].sel({f"{variable}_statistic": statistic}).item()


def drawn(elements, function):
    return [element for element in elements if element["function"] == function]


def test_every_statistic_has_a_panel(trace):
    figure = plots.release(trace, backend="none")
    titles = [
        drawn(panel(figure, variable, statistic), "title")[0]["string"]
        for variable, statistics in [("affair", ["count of 0", "count of 1"]), ("income", ["sum", "sum of squares"])]
        for statistic in statistics
    ]
    assert titles == ["affair: count of 0", "affair: count of 1", "income: sum", "income: sum of squares"]


def test_points_are_the_released_values_and_negative_counts_stay(trace):
    shown = panel(plots.release(trace, backend="none"), "affair", "count of 0")
    (points,) = drawn(shown, "scatter")
    assert points["x"].tolist() == [30.0, -3.0, 100.0]
    assert points["y"].tolist() == [2, 1, 0]
    assert drawn(shown, "vline")[0]["x"] == 0


def test_cells_are_labelled_from_top_to_bottom(trace):
    shown = panel(plots.release(trace, backend="none"), "affair", "count of 1")
    (ticks,) = drawn(shown, "yticks")
    assert dict(zip(ticks["labels"], ticks["ticks"], strict=True)) == {"1": 2, "2": 1, "3": 0}
    assert drawn(shown, "ylabel")[0]["string"] == "rating"


def test_cells_of_several_columns_keep_their_names(trace):
    (ticks,) = drawn(panel(plots.release(trace, backend="none"), "income", "sum"), "yticks")
    assert list(ticks["labels"]) == ["all rows"]


def test_numbers_stand_within_the_panel(trace, agg):
    figure = plots.release(trace, backend="matplotlib").viz["figure"].item()
    figure.canvas.draw()
    for axes in figure.axes:
        box = axes.get_window_extent()
        for text in axes.texts:
            extent = text.get_window_extent()
            assert box.x0 <= extent.x0 and extent.x1 <= box.x1, text.get_text()


@pytest.mark.parametrize(("statistic", "scale"), [("sum", 4.0), ("sum of squares", 8.0)])
def test_interval_is_that_of_the_noise_of_the_statistic(trace, statistic, scale):
    shown = panel(plots.release(trace, backend="none"), "income", statistic)
    (line,) = drawn(shown, "fill_between_y")
    assert np.ptp(line["x"]) == pytest.approx(2 * scale * log(10))
    assert f"± {scale * log(10):.3g} (90%" in drawn(shown, "xlabel")[0]["string"]
    (number,) = drawn(shown, "text")
    assert number["string"].endswith(f" ± {scale * log(10):{'.1f' if scale == 4 else '.0f'}}")


def test_interval_holds_the_promised_share_of_discrete_laplace_noise(trace, rng):
    scale, draws = 8.0, 200_000
    p = 1 - np.exp(-1 / scale)
    noise = rng.geometric(p, draws) - rng.geometric(p, draws)
    (line,) = drawn(
        panel(plots.release(trace, ci_prob=0.5, backend="none"), "income", "sum of squares"), "fill_between_y"
    )
    inside = np.mean(np.abs(noise) <= np.ptp(line["x"]) / 2)
    assert inside == pytest.approx(0.5, abs=1 / scale)


def test_interval_of_gaussian_noise_is_that_of_a_normal_variable(gaussian_noise):
    shown = panel(plots.release(gaussian_noise, ci_prob=0.95, backend="none"), "income", "sum")
    (line,) = drawn(shown, "fill_between_y")
    assert np.ptp(line["x"]) == pytest.approx(2 * 4.0 * 1.959964)


def test_one_variable_can_be_chosen(trace):
    figure = plots.release(trace, var_name="income", backend="none")
    assert list(figure.viz["plot"].data_vars) == ["income"]


def test_matplotlib_draws_the_same(trace, agg):
    figure = plots.release(trace, var_name="affair", backend="matplotlib")
    axes = figure.viz["plot"]["affair"].sel(affair_statistic="count of 0").item()
    assert axes.collections[-1].get_offsets()[:, 0].tolist() == [30.0, -3.0, 100.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2", "3"]


def test_tree_without_privacy_is_refused(no_privacy):
    with pytest.raises(TraceError, match="no /privacy group"):
        plots.release(no_privacy, backend="none")


def test_unknown_variable_is_refused(trace):
    with pytest.raises(
        ArgumentError, match="var_name must be one of 'affair', 'income', got 'afair'. Did you mean 'affair'"
    ):
        plots.release(trace, var_name="afair", backend="none")


@pytest.mark.parametrize("ci_prob", [0, 1, 90, float("nan"), "most"])
def test_probability_is_checked(trace, ci_prob):
    with pytest.raises(ArgumentError, match="ci_prob must be"):
        plots.release(trace, ci_prob=ci_prob, backend="none")


def test_noise_of_unknown_interval_is_refused(other_noise):
    with pytest.raises(ArgumentError, match="must be one of 'discrete Laplace', 'discrete Gaussian'"):
        plots.release(other_noise, backend="none")
