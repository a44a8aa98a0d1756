"""``dp.plots.tradeoff``: what each ε would buy, one line for each method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.plots._figure import backend_name, drawing, make_panels, shorten

if TYPE_CHECKING:
    import pandas as pd

QUANTITIES = {"width": "mean width of the {interval:.0%} interval", "rmse": "RMSE of the posterior mean",
              "coverage": "coverage of the {interval:.0%} interval"}  # fmt: skip
REFERENCE = "#505050"


@runtime_checkable
class Simulated(Protocol):
    """What is drawn of a plan."""

    interval: float

    def to_frame(self) -> pd.DataFrame:
        """Return one row per variable, method and ε."""

    def suggest(self, width: float) -> Any:
        """Return the ε of a width."""


def tradeoff(
    plan: Simulated,
    *,
    var_names: str | list[str] | None = None,
    quantity: str = "width",
    backend: str | None = None,
    **pc_kwargs: Any,
) -> Any:
    """Draw what each ε would buy: a panel for each variable, a line for each method.

    The dashed line is the posterior that is not private, with as many rows (for "coverage": what it should be).

    Parameters
    ----------
    plan : Plan
        What ``dp.plan`` returns.
    var_names : str or list of str, optional
        Default: all variables of the plan.
    quantity : {"width", "rmse", "coverage"}
        Mean interval width, root mean squared error of the posterior mean, or coverage of the interval.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Defaults to ``arviz_base.rcParams["plot.backend"]``.
    **pc_kwargs
        Passed to ``arviz_plots.PlotCollection.wrap``, for example ``figure_kwargs={"figsize": (8, 3)}``.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``viz`` holds the figure, ``lines``, ``points`` and ``reference``.

    Raises
    ------
    ArgumentError
        If `plan` is no plan, or does not hold what is asked for.

    Notes
    -----
    **Guarantee.** Shows a simulation from the prior, which has read no private row.

    Examples
    --------
    >>> tradeoff(None)
    Traceback (most recent call last):
    pymc_dp.errors.ArgumentError: plan must be what dp.plan returns, got None.
    """
    if not isinstance(plan, Simulated):
        raise ArgumentError(f"plan must be what dp.plan returns, got {_validate.shown(plan)}.")
    frame, quantity = plan.to_frame(), _validate.choice("quantity", quantity, QUANTITIES)
    names = (
        list(dict.fromkeys(frame["variable"]))
        if var_names is None
        else _validate.choices("var_names", var_names, list(dict.fromkeys(frame["variable"])))
    )
    data, plain = _lines_of(frame, names, quantity)
    if not data.sizes["method"]:
        raise ArgumentError(f"no method of this plan has a {quantity}; quantity='rmse' can be drawn.")
    if quantity == "coverage":
        plain = dict.fromkeys(names, plan.interval)
    name = backend_name(backend)
    columns = min(len(names), int(pc_kwargs.get("col_wrap", 3)))
    size = (2.2 + 3.4 * columns, 3.2 * -(-len(names) // columns))
    options: dict[str, Any] = {"col_wrap": 3, "aes": {"color": ["method"]}} | pc_kwargs
    figure = make_panels(data, ["__variable__"], name, size, **options)
    figure.map(_reference, "reference", plain=plain, subset_info=True, ignore_aes="all")
    figure.map(_line, "lines")
    figure.map(_points, "points")
    label = QUANTITIES[quantity].format(interval=plan.interval)
    figure.map(_axes, "axes", plain=plain, label=label, subset_info=True, ignore_aes="all", store_artist=False)
    if name != "none":
        figure.add_legend("method")
    return figure


def _lines_of(frame: pd.DataFrame, names: list[str], quantity: str) -> tuple[xr.Dataset, dict[str, float]]:
    """Values by variable, method and ε, and those that are not private."""
    finite = np.isfinite(frame["epsilon"])
    plain = {name: float(frame[~finite & (frame["variable"] == name)][quantity].iloc[0]) for name in names}
    private = frame[finite & frame[quantity].notna() & frame["variable"].isin(names)]
    methods = list(dict.fromkeys(private["method"]))
    epsilons = np.array(sorted(set(private["epsilon"])))
    data = {
        name: (
            ("method", "epsilon"),
            private[private["variable"] == name]
            .pivot_table(index="method", columns="epsilon", values=quantity)
            .reindex(index=methods, columns=epsilons)
            .to_numpy(),
        )
        for name in names
    }
    return xr.Dataset(data, coords={"method": methods, "epsilon": epsilons}), plain


def _places(da: xr.DataArray) -> np.ndarray[Any, Any]:
    """Budgets on a logarithmic axis."""
    return np.log10(da["epsilon"].to_numpy())


def _line(da: xr.DataArray, target: Any, **kwargs: Any) -> Any:
    return drawing(target).line(_places(da), da.to_numpy(), target, width=2, **kwargs)


def _points(da: xr.DataArray, target: Any, **kwargs: Any) -> Any:
    return drawing(target).scatter(_places(da), da.to_numpy(), target, size=30, **kwargs)


def _reference(
    da: xr.DataArray, target: Any, plain: dict[str, float], var_name: str, sel: dict[str, Any], isel: Any
) -> Any:
    return drawing(target).hline(plain[var_name], target, color=REFERENCE, linestyle="C1", width=1.5)


def _axes(
    da: xr.DataArray, target: Any, plain: dict[str, float], label: str, var_name: str, sel: dict[str, Any], isel: Any
) -> None:
    plot, places = drawing(target), _places(da)
    top = 1.08 * max(float(np.nanmax(da.to_numpy())), plain[var_name])
    plot.xticks(places, [f"{epsilon:g}" for epsilon in da["epsilon"].to_numpy()], target)
    plot.ylim((0.0, top), target)
    plot.xlabel("privacy loss ε", target)
    plot.ylabel(label, target)
    plot.title(shorten(var_name, 34), target)


__all__ = ["tradeoff"]
