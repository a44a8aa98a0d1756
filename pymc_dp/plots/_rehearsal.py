"""``dp.plots.rehearsal``: errors of simulated releases, beside the intervals of the release at hand."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.plots._figure import INK, SHADE, backend_name, colours, drawing, make_panels, shorten

MOST = 40
"""Parameters whose labels have room; `parameters` chooses others."""
BAND = 0.36
"""Half the height of the band of an interval."""


@runtime_checkable
class Simulated(Protocol):
    """What is drawn of a rehearsal."""

    parameters: tuple[str, ...]
    errors: np.ndarray[Any, Any]
    released: np.ndarray[Any, Any]
    interval: float

    @property
    def tables(self) -> int:
        """Number of simulated tables."""

    @property
    def coverage(self) -> float:
        """Share of intervals that hold their parameter."""


def rehearsal(
    found: Simulated, *, parameters: list[str] | None = None, backend: str | None = None, **pc_kwargs: Any
) -> Any:
    """Draw the error of each simulated release in each parameter, beside the interval of the release at hand.

    A point is a simulated table: posterior mean less the parameter that made the table, in units of half the width of
    the released interval. The band is that interval. About nine in ten points should lie in the band of a 90% interval.

    Parameters
    ----------
    found : Rehearsed
        What ``dp.rehearse`` returns.
    parameters : list of str, optional
        Default: the first 40.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Defaults to ``arviz_base.rcParams["plot.backend"]``.
    **pc_kwargs
        Passed to ``arviz_plots.PlotCollection.wrap``, for example ``figure_kwargs={"figsize": (8, 3)}``.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``viz`` holds the figure, ``bands`` and ``points``.

    Raises
    ------
    ArgumentError
        If `found` is not what ``dp.rehearse`` returns, or has no such parameter.

    Notes
    -----
    **Guarantee.** Shows simulations from a private posterior, which have read no private row (post-processing).

    Examples
    --------
    >>> rehearsal(None)
    Traceback (most recent call last):
    pymc_dp.errors.ArgumentError: found must be what dp.rehearse returns, got None.
    """
    if not isinstance(found, Simulated):
        raise ArgumentError(f"found must be what dp.rehearse returns, got {_validate.shown(found)}.")
    known = list(found.parameters)
    names = known[:MOST] if parameters is None else _validate.choices("parameters", parameters, known)
    places = [known.index(name) for name in names]
    shares = 2 * found.errors[:, places] / found.released[places]
    data = xr.Dataset({"error": (("parameter", "table"), shares.T)})
    name = backend_name(backend)
    figure = make_panels(data, ["__variable__"], name, (8, 1.3 + 0.42 * len(names)), **pc_kwargs)
    figure.map(_bands, "bands", artist_dims={"parameter": len(names)}, fill=colours(name, 1)[0])
    figure.map(_points, "points", artist_dims={"parameter": len(names)})
    figure.map(_axes, "axes", labels=names, found=found, store_artist=False)
    return figure


def _bands(da: xr.DataArray, target: Any, fill: Any) -> np.ndarray[Any, Any]:
    plot, last = drawing(target), da.sizes["parameter"] - 1
    drawn = np.empty(last + 1, dtype=object)
    for row in range(last + 1):
        low, high = last - row - BAND, last - row + BAND
        drawn[row] = plot.fill_between_y(
            np.array([-1.0, 1.0]), [low, low], [high, high], target, color=fill, alpha=SHADE
        )
    return drawn


def _points(da: xr.DataArray, target: Any) -> np.ndarray[Any, Any]:
    plot, last = drawing(target), da.sizes["parameter"] - 1
    drawn = np.empty(last + 1, dtype=object)
    for row, errors in enumerate(da.transpose("parameter", "table").to_numpy()):
        drawn[row] = plot.scatter(errors, np.full(len(errors), last - row), target, size=20, color=INK)
    return drawn


def _axes(da: xr.DataArray, target: Any, labels: list[str], found: Simulated) -> None:
    plot, count = drawing(target), len(labels)
    plot.yticks([count - 1 - row for row in range(count)], [shorten(label, 36) for label in labels], target)
    plot.ylim((-0.6, count - 0.4), target)
    plot.xlabel(f"error, in units of half the released {found.interval:.0%} interval", target)
    plot.title(f"{found.tables} simulated tables: {found.interval:.0%} intervals covered {found.coverage:.0%}", target)


__all__ = ["rehearsal"]
