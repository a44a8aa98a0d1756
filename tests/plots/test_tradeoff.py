"""What `dp.plots.tradeoff` draws: lines, the reference, and labels."""

import numpy as np
import pandas as pd
import pytest

from pymc_dp import plots
from pymc_dp.errors import ArgumentError

COLUMNS = ("variable", "method", "epsilon", "width", "rmse", "coverage", "width_error", "rmse_error")


class Made:
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
    figure = plots.tradeoff(Made(), backend="none")
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
    return Made()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"plan": 1.0}, "must be what dp.plan returns, got 1.0"),
        ({"quantity": "widht"}, "Did you mean 'width'"),
        ({"var_names": "rats"}, "Did you mean 'rate'"),
        ({"var_names": []}, "at least one of"),
    ],
)
def test_others_are_refused(arguments, match):
    with pytest.raises(ArgumentError, match=match):
        plots.tradeoff(**{"plan": Made(), "backend": "none"} | arguments)
