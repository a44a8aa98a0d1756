"""``dp.plots.release``: the released statistics, and how far the noise may have moved them."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log, log10
from statistics import NormalDist
from typing import Any

import numpy as np
import xarray as xr

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.plots._figure import INK, SHADE, backend_name, colours, drawing, make_panels, shorten
from pymc_dp.trace.accessor import PrivacyAccessor

# Half width of the interval with a probability, in noise scales.
HALF_WIDTHS: dict[str, Callable[[float], float]] = {
    "discrete Laplace": lambda probability: -log(1 - probability),
    "discrete Gaussian": lambda probability: NormalDist().inv_cdf((1 + probability) / 2),
}
HALF_WIDTHS |= {"Laplace": HALF_WIDTHS["discrete Laplace"], "Gaussian": HALF_WIDTHS["discrete Gaussian"]}
# Beyond these, labels and numbers would run into each other.
MOST_LABELS, MOST_NUMBERS = 60, 25
MOST_PANELS = 12
"""Statistics with a panel each; where there are more, and fewer cells, each cell has a panel of all of them."""
# Of the width of a panel, at either side: what numbers need that stand over the outermost points.
MARGIN = 0.2
BAND = 0.13
"""Half the height of the band of an interval."""


def release(
    idata: xr.DataTree,
    *,
    var_name: str | None = None,
    ci_prob: float = 0.9,
    backend: str | None = None,
    **pc_kwargs: Any,
) -> Any:
    """Draw the released statistics of each cell with the interval of their noise.

    The band is the interval, the tick the released value; both are written above it, since the noise of large counts
    is too narrow to be seen.

    The exact statistic lies within the interval with probability `ci_prob` (by the noise alone). A count may be
    negative: it is shown, as it was released.

    Parameters
    ----------
    idata : DataTree
        A trace of ``dp.sample`` or ``dp.scrub``.
    var_name : str, optional
        One observed variable. Default: all of them.
    ci_prob : float
        Probability of the interval, in (0, 1).
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Defaults to ``arviz_base.rcParams["plot.backend"]``.
    **pc_kwargs
        Passed to ``arviz_plots.PlotCollection.wrap``, for example ``figure_kwargs={"figsize": (8, 3)}``.

    Returns
    -------
    arviz_plots.PlotCollection
        One panel for each statistic, or for each cell where there are many statistics, as of bins; its ``viz`` holds
        the figure, ``intervals`` and ``points``.

    Raises
    ------
    ArgumentError
        If `var_name` is not in the release, or `ci_prob` is not a probability.
    TraceError
        If the trace has no ``/privacy`` group.

    Notes
    -----
    **Guarantee.** Shows only what was released, which was paid for.

    Laplace noise of scale b exceeds t in size with probability exp(-t / b), up to the width of one grid step, so the
    half-width is -b log(1 - ci_prob); that of Gaussian noise of scale s is s times the quantile of a normal variable.

    Examples
    --------
    >>> release(xr.DataTree())
    Traceback (most recent call last):
    pymc_dp.errors.TraceError: This DataTree has no /privacy group: ...
    """
    released = PrivacyAccessor(idata).release
    tables = _tables(released, list(PrivacyAccessor(idata).history["variable"]), var_name)
    width = _half_width_per_scale(released.attrs.get("noise", "discrete Laplace"), ci_prob)
    halves = {name: width * released[f"{name}_noise_scale"] for name in tables}
    name = backend_name(backend)
    released = released.assign({table: _turned(released[table]) for table in tables})
    facets = ["__variable__", *(str(released[table].dims[1]) for table in tables)]
    most_cells = max(released[table].shape[0] for table in tables)
    panels = sum(released[table].shape[1] for table in tables)
    wrap = int(pc_kwargs.get("col_wrap", 2 if panels == 4 else 3))
    columns = min(panels, wrap)
    size = (1.5 + 3.2 * columns, (1.2 + 0.36 * min(most_cells, 2 * MOST_LABELS)) * -(-panels // columns))
    figure = make_panels(released[tables], facets, name, size, **pc_kwargs | {"col_wrap": wrap})
    figure.map(_intervals, "intervals", halves=halves, fill=colours(name, 1)[0], subset_info=True, store_artist=False)
    figure.map(_points, "points")
    if most_cells <= MOST_NUMBERS:
        figure.map(_numbers, "numbers", halves=halves, subset_info=True, store_artist=False)
    figure.map(_axes, "axes", halves=halves, ci_prob=ci_prob, subset_info=True, store_artist=False)
    return figure


def _tables(released: xr.Dataset, names: list[str], var_name: str | None) -> list[str]:
    if var_name is None:
        return names
    return [_validate.choice("var_name", var_name, names)]


def _turned(table: xr.DataArray) -> xr.DataArray:
    """Return a table with cells along its first axis, or along the second where each has a panel."""
    cells, statistics = table.shape
    return table.transpose() if statistics > max(cells, MOST_PANELS) else table


def _half_width_per_scale(noise: str, ci_prob: float) -> float:
    half_width = HALF_WIDTHS[_validate.choice("noise of this trace", noise, HALF_WIDTHS)]
    probability = _validate.number("ci_prob", ci_prob)
    if not 0 < probability < 1:
        raise ArgumentError(f"ci_prob must be between 0 and 1, got {probability:g}. Take 0.9, for example.")
    return half_width(probability)


def _half(halves: dict[str, xr.DataArray], var_name: str, sel: dict[str, Any]) -> xr.DataArray:
    """Half width of all intervals of a statistic, or of each where every cell has noise of its own."""
    found = halves[var_name]
    return found.sel({dim: label for dim, label in sel.items() if dim in found.dims})


def _labels(da: xr.DataArray) -> tuple[str, list[str]]:
    """Return the labels of cells, and the column that all are levels of, where they are of one."""
    labels = [str(label) for label in da[da.dims[0]].values]
    parts = [label.partition("=") for label in labels]
    column = parts[0][0]
    if len(labels) > 1 and all(part[:2] == (column, "=") and "=" not in part[2] for part in parts):
        return column, [shorten(part[2], 30) for part in parts]
    return "", [shorten(label, 30) for label in labels]


def _heights(da: xr.DataArray) -> np.ndarray[Any, Any]:
    """Cells from top to bottom."""
    return np.arange(da.size)[::-1]


def _intervals(
    da: xr.DataArray,
    target: Any,
    halves: dict[str, xr.DataArray],
    fill: Any,
    var_name: str,
    sel: dict[str, Any],
    isel: Any,
) -> None:
    plot = drawing(target)
    for value, own, y in zip(da.values, _own(da, halves, var_name, sel), _heights(da), strict=True):
        plot.fill_between_y([value - own, value + own], [y - BAND] * 2, [y + BAND] * 2, target, color=fill, alpha=SHADE)


def _points(da: xr.DataArray, target: Any) -> Any:
    return drawing(target).scatter(da.values, _heights(da), target, color=INK, marker="|", size=110, width=2)


def _numbers(
    da: xr.DataArray, target: Any, halves: dict[str, xr.DataArray], var_name: str, sel: dict[str, Any], isel: Any
) -> None:
    plot = drawing(target)
    for value, own, y in zip(da.values, _own(da, halves, var_name, sel), _heights(da), strict=True):
        plot.text(value, y + 0.16, _with_noise(value, own), target, vertical_align="bottom", color=INK)


def _own(da: xr.DataArray, halves: dict[str, xr.DataArray], var_name: str, sel: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Half width of the interval of each cell."""
    return np.broadcast_to(_half(halves, var_name, sel).values, da.shape)


def _with_noise(value: float, half: float) -> str:
    """Write a value with its noise, which is given to two digits; further digits of the value say nothing.

    Examples
    --------
    >>> _with_noise(2197.0, 4.61), _with_noise(-2.91455, 29.8), _with_noise(0.12346, 0.0061), _with_noise(3.5, 0.0)
    ('2197 ± 4.6', '-3 ± 30', '0.1235 ± 0.0061', '3.5')
    """
    if not half > 0:
        return f"{value:.6g}"
    digits = max(0, 1 - floor(log10(half)))
    return f"{value:.{0 if value == round(value) else digits}f} ± {half:.{digits}f}"


def _axes(
    da: xr.DataArray,
    target: Any,
    halves: dict[str, xr.DataArray],
    ci_prob: float,
    var_name: str,
    sel: dict[str, Any],
    isel: Any,
) -> None:
    plot, half = drawing(target), _half(halves, var_name, sel)
    (statistic,) = sel.values()
    column, labels = _labels(da)
    every = -(-len(labels) // MOST_LABELS)
    plot.yticks(_heights(da)[::every], labels[::every], target)
    plot.ylim((-0.6, da.size - 0.2), target)
    if column:
        plot.ylabel(column, target)
    own, widest = _own(da, halves, var_name, sel), float(half.max())
    low, high = float((da.values - own).min()), float((da.values + own).max())
    if low < 0 < high:
        plot.vline(0, target, color="#808080", width=1)
    margin = MARGIN * (high - low) or 1.0
    plot.xlim((low - margin, high + margin), target)
    plot.xlabel(f"released ± {widest:.3g} ({'at most, ' * bool(half.ndim)}{ci_prob:.0%} of the noise)", target)
    plot.title(shorten(f"{var_name}: {statistic}", 34), target)
