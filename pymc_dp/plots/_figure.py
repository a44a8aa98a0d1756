"""What all figures share: the backend, one collection of panels, colours and labels."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import xarray as xr

from pymc_dp import _validate
from pymc_dp._optional import require

BACKENDS = ("matplotlib", "plotly", "bokeh", "none")
GREY, INK = "#b8bec6", "#202020"
SHADE = 0.6
"""Of what is filled: pale enough for dark numbers on it."""


def backend_name(backend: str | None) -> str:
    """Return the backend asked for, or the one that ArviZ is set to use."""
    from arviz_base import rcParams

    name = _validate.choice("backend", rcParams["plot.backend"] if backend is None else backend, BACKENDS)
    if name != "none":
        require(name, by="dp.plots")
    return name


def make_panels(data: xr.Dataset, facets: list[str], backend: str, size: tuple[float, float], **options: Any) -> Any:
    """Return a PlotCollection with one panel per variable and level of the other facets.

    Parameters
    ----------
    size : (float, float)
        Width and height of the whole figure, in hundreds of dots.
    **options
        As in ``arviz_plots.PlotCollection.wrap``; they win over what is set here.
    """
    from arviz_plots.plot_collection import PlotCollection

    figure: dict[str, Any]
    if backend == "matplotlib":
        # Labels of cells and releases are long: in the default layout matplotlib cuts them off.
        figure = {"figsize": _for_font(size), "figsize_units": "inches", "layout": "constrained"}
    else:
        figure = {"figsize": (100 * size[0], 100 * size[1]), "figsize_units": "dots"}
    figure |= options.pop("figure_kwargs", {})
    return PlotCollection.wrap(data, cols=facets, backend=backend, figure_kwargs=figure, **options)


def drawing(target: Any) -> Any:
    """Return the drawing functions of the backend that a panel belongs to."""
    from arviz_plots.plot_collection import backend_from_object

    return backend_from_object(target)


def colours(backend: str, count: int) -> list[Any]:
    """Return colours of the style in use; filled areas take no aliases such as "C0"."""
    return list(import_module(f"arviz_plots.backend.{backend}").get_default_aes("color", count))


def line_break(backend: str) -> str:
    """Return what begins a new line in a text of a figure."""
    return "<br>" if backend == "plotly" else "\n"


def shorten(text: str, most: int) -> str:
    """Cut a label that would leave no room for the figure."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _for_font(size: tuple[float, float]) -> tuple[float, float]:
    """Enlarge a figure made for labels of 10 points; styles of ArviZ have 14."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    scale = max(1.0, FontProperties(size=rcParams["axes.labelsize"]).get_size_in_points() / 10)
    return scale * size[0], scale * size[1]
