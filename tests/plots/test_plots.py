"""What the plots draw: positions, numbers and labels."""

from math import log

import numpy as np
import pandas as pd
import pytest

import pymc_dp as dp
from pymc_dp import plots
from pymc_dp.accounting import PureEvent


def drawn(figure, function):
    return [element for element in figure.viz["plot"]["epsilon"].item() if element["function"] == function]


def bars(figure):
    return [bar["x"].tolist() for bar in figure.viz["bars"]["epsilon"].values]


def labels(figure):
    return list(drawn(figure, "yticks")[0]["labels"])


def test_trace_has_one_bar_for_each_variable_and_nothing_left(trace):
    figure = plots.budget(trace, backend="none")
    assert bars(figure) == [[0.0, 0.75], [0.75, 1.0]]
    assert labels(figure) == ["affair (bernoulli)", "income (normal)"]
    assert [note["string"] for note in drawn(figure, "text")] == ["0.75", "0.25"]
    assert drawn(figure, "vline")[0]["x"] == 1.0


def test_ledger_shows_what_is_left():
    ledger = dp.Ledger(epsilon=2.0)
    ledger.spend(PureEvent(epsilon=0.5), label="statistics of affair", neighbours="replace")
    ledger.spend(PureEvent(epsilon=1.0), label="a label " * 20, neighbours="replace")
    figure = plots.budget(ledger, backend="none")
    assert bars(figure) == [[0.0, 0.5], [0.5, 1.5], [1.5, 2.0]]
    assert labels(figure)[0] == "statistics of affair"
    assert labels(figure)[-1] == "left"
    assert [note["string"] for note in drawn(figure, "text")] == ["0.5", "1", "0.5"]
    assert drawn(figure, "title")[0]["string"] == "Spent on this data set: ε = 1.5 of 2"


def test_a_ledger_of_a_metric_says_what_it_counts_per_unit_of():
    account = dp.Ledger(2.0, metric=dp.metrics.L1("age"))
    account.spend(PureEvent(epsilon=0.5), label="a draw", neighbours=dp.metrics.L1("age").relation)
    figure = plots.budget(account, backend="none")
    (title,), (label,) = drawn(figure, "title"), drawn(figure, "xlabel")
    assert title["string"] == "Spent on this data set, per unit of ρ = |Δage|: ε = 0.5 of 2"
    assert label["string"] == "privacy loss ε, per unit of ρ"
    (rows,) = drawn(plots.budget(dp.Ledger(2.0), backend="none"), "xlabel")
    assert rows["string"] == "privacy loss ε, per row"


def test_parts_of_gaussian_noise_add_up_to_what_they_cost_together(gaussian_noise):
    """Alone they cost more: it is their ρ that adds."""
    first, second = bars(plots.budget(gaussian_noise, backend="none"))[:2]
    alone = [table.epsilon for table in dp.Release.of(gaussian_noise).record.tables]
    assert first[0] == 0 and first[1] == second[0] == pytest.approx(alone[0])
    assert second[1] == pytest.approx(gaussian_noise.dp.epsilon) and second[1] < sum(alone)


def panel(figure, variable, statistic):
    return figure.viz["plot"][variable].sel({f"{variable}_statistic": statistic}).item()


def elements_of(elements, function):
    return [element for element in elements if element["function"] == function]


def test_points_are_the_released_values_and_intervals_those_of_their_noise(trace):
    release = dp.Release.of(trace)
    figure = plots.release(trace, backend="none")
    for name, table in zip(("affair", "income"), release.record.tables, strict=True):
        shown = panel(figure, name, table.columns[0])
        (points,) = elements_of(shown, "scatter")
        assert points["x"].tolist() == release.tables[name][:, 0].tolist()
        assert points["y"].tolist() == list(range(len(table.cells)))[::-1]
        half = table.scales[0] * log(10)
        for line in elements_of(shown, "fill_between_y"):
            assert np.ptp(line["x"]) == pytest.approx(2 * half)
        assert f"± {half:.3g} (90%" in elements_of(shown, "xlabel")[0]["string"]


class Made:
    """A rehearsal of known numbers: two parameters, three tables."""

    parameters, interval, tables, coverage = ("slope", "spread"), 0.8, 3, 0.5
    errors = np.array([[0.5, 1.0], [-1.0, 0.0], [0.0, 4.0]])
    released = np.array([1.0, 4.0])


def test_points_are_errors_over_half_the_released_widths():
    figure = plots.rehearsal(Made(), backend="none")
    bands, points = (figure.viz[name]["error"].values for name in ("bands", "points"))
    assert len(bands) == len(points) == 2
    assert [point["x"].tolist() for point in points] == [[1.0, -2.0, 0.0], [0.5, 0.0, 2.0]]
    assert [point["y"].tolist() for point in points] == [[1.0] * 3, [0.0] * 3]
    assert [band["x"].tolist() for band in bands] == [[-1.0, 1.0]] * 2


@pytest.mark.parametrize("backend", ["matplotlib", "plotly", "bokeh"])
def test_every_backend_draws_it(backend):
    pytest.importorskip(backend)
    figure = plots.rehearsal(Made(), backend=backend)
    assert figure.viz["points"]["error"].size == 2


COLUMNS = ("variable", "method", "epsilon", "width", "rmse", "coverage", "width_error", "rmse_error")


class Made_TRADEOFF:
    """A plan of known numbers: two variables, two methods, and one draw that has no interval."""

    interval, repeats, rows = 0.8, 25, "500 rows"

    def to_frame(self):
        rows = []
        for name, unit in (("rate", 1.0), ("a_name_too_long_for_a_title_" * 3, 10.0)):
            rows.append((name, "not private", np.inf, 0.1 * unit, 0.05, 0.81))
            rows += [(name, "laplace", eps, unit / eps, 0.2, 0.8) for eps in (0.1, 1.0)]
            rows += [(name, "gaussian", eps, 2 * unit / eps, 0.2, 0.8) for eps in (0.1, 1.0)]
            rows += [(name, "OPS", eps, np.nan, 0.7, np.nan) for eps in (0.1, 1.0)]
        return pd.DataFrame([(*row, 0.1 * row[3], 0.02) for row in rows], columns=list(COLUMNS))

    def suggest(self, width):
        raise NotImplementedError


def test_every_method_with_an_interval_has_a_line():
    figure = plots.tradeoff(Made_TRADEOFF(), backend="none")
    lines = figure.viz["lines"]["rate"]
    assert lines["method"].values.tolist() == ["laplace", "gaussian", "not private"]
    assert [line["y"].tolist() for line in lines.values] == [[10.0, 1.0], [20.0, 2.0], [0.1, 0.1]]
    assert [line["x"].tolist() for line in lines.values] == [[-1.0, 0.0]] * 3
    assert len({line["color"] for line in lines.values}) == 3
    assert figure.viz["points"]["rate"]["method"].values.tolist() == ["laplace", "gaussian"]


def test_a_plan_is_drawn_with_a_legend(planned_by_hand, agg):
    figure = plots.tradeoff(planned_by_hand, backend="matplotlib").viz["figure"].item()
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["laplace", "gaussian", "not private"]
    assert legend.get_title().get_text() == "500 rows,\n25 simulations"
    box = figure.bbox
    texts = [*figure.axes[0].get_yticklabels(), figure.axes[0].yaxis.label, figure.axes[0].xaxis.label, legend]
    assert all(box.x0 <= text.get_window_extent().x0 and text.get_window_extent().x1 <= box.x1 for text in texts)


@pytest.fixture
def planned_by_hand():
    return Made_TRADEOFF()
