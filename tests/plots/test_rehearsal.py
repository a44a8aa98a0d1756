"""What `dp.plots.rehearsal` draws: bands, points in their units, and labels."""

import numpy as np
import pytest

from pymc_dp import plots


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
