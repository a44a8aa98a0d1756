"""``dp.plots.tradeoff``: what each ε would buy, one line for each method."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.plots._figure import INK, SHADE, backend_name, colours, drawing, line_break, make_panels, shorten

if TYPE_CHECKING:
    import pandas as pd

QUANTITIES = {"width": "mean width of the {interval:.0%} interval", "rmse": "RMSE of the posterior mean",
              "coverage": "coverage of the {interval:.0%} interval"}  # fmt: skip
NOT_PRIVATE = "not private"
SPAN = 2
"""Standard errors from a point to either end of its bar."""


Spans = Mapping[Hashable, xr.DataArray]
"""From a point to either end of its bar, by variable."""


@runtime_checkable
class Simulated(Protocol):
    """What is drawn of a plan."""

    interval: float
    repeats: int
    rows: str

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

    Bars are two standard errors to either side: what chance in the simulations may have done. The dashed line is the
    posterior that is not private, with as many rows (for "coverage": what it should be).

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
        Its ``viz`` holds the figure, ``lines`` (the last is the dashed one) and ``points``.

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
    data = _lines_of(frame, names, quantity)
    if data.sizes["method"] < 2:
        raise ArgumentError(f"no method of this plan has a {quantity}; quantity='rmse' can be drawn.")
    if quantity == "coverage":
        errors = xr.full_like(data, _chance(plan))
        data = _with_last(data, f"should be {plan.interval:.0%}", dict.fromkeys(names, plan.interval))
    else:
        errors = _lines_of(frame, names, f"{quantity}_error")
    spans = {name: SPAN * error for name, error in errors.items()}
    name = backend_name(backend)
    columns = min(len(names), int(pc_kwargs.get("col_wrap", 3)))
    size = (2.6 + 3.4 * columns, 3.2 * -(-len(names) // columns))
    simulated = data.isel(method=slice(-1))
    count = simulated.sizes["method"]
    looks: dict[str, Any] = {"color": [*colours(name, count), INK], "linestyle": [*["C0"] * count, "C1"]}
    aes = pc_kwargs.get("aes", {look: ["method"] for look in looks})
    options: dict[str, Any] = {"col_wrap": 3, "aes": aes} | {look: looks[look] for look in looks.keys() & set(aes)}
    figure = make_panels(data, ["__variable__"], name, size, **options | pc_kwargs)
    figure.map(_line, "lines")
    marks: dict[str, Any] = {"data": simulated, "ignore_aes": {"linestyle"}}
    figure.map(_bars, "bars", spans=spans, subset_info=True, store_artist=False, **marks)
    figure.map(_points, "points", **marks)
    label = QUANTITIES[quantity].format(interval=plan.interval)
    figure.map(_axes, "axes", spans=spans, label=label, subset_info=True, ignore_aes="all", store_artist=False)
    if name != "none":
        figure.add_legend("method", title=f"{plan.rows},{line_break(name)}{plan.repeats} simulations")
    return figure


def _lines_of(frame: pd.DataFrame, names: list[str], quantity: str) -> xr.Dataset:
    """Values by variable, method and ε; what is not private is the last of the methods, the same at each ε."""
    finite = np.isfinite(frame["epsilon"])
    private = frame[finite & frame[quantity].notna() & frame["variable"].isin(names)]
    methods, epsilons = list(dict.fromkeys(private["method"])), np.array(sorted(set(private["epsilon"])))
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
    plain = frame[~finite].drop_duplicates("variable").set_index("variable")[quantity]
    found = xr.Dataset(data, coords={"method": methods, "epsilon": epsilons})
    return _with_last(found.pad(method=(0, 1)), NOT_PRIVATE, plain)


def _with_last(data: xr.Dataset, method: str, values: Mapping[str, float]) -> xr.Dataset:
    """Return lines of which the last is another one, the same at each ε."""
    names = [*data["method"].values[:-1], method]
    kept = data.assign_coords(method=names)
    return xr.Dataset({name: line.where(line["method"] != method, values[str(name)]) for name, line in kept.items()})


def _chance(plan: Simulated) -> float:
    """Standard error of a coverage, were the elements of a variable all covered, or none."""
    return float((plan.interval * (1 - plan.interval) / plan.repeats) ** 0.5)


def _places(da: xr.DataArray) -> np.ndarray[Any, Any]:
    """Budgets on a logarithmic axis."""
    return np.log10(da["epsilon"].to_numpy())


def _line(da: xr.DataArray, target: Any, **kwargs: Any) -> Any:
    return drawing(target).line(_places(da), da.to_numpy(), target, width=2, **kwargs)


def _bars(
    da: xr.DataArray, target: Any, spans: Spans, var_name: str, sel: dict[str, Any], isel: Any, **kwargs: Any
) -> None:
    plot, own = drawing(target), spans[var_name].sel(sel).to_numpy()
    for place, value, span in zip(_places(da), da.to_numpy(), own, strict=True):
        if np.isfinite(span):
            plot.line([place, place], [value - span, value + span], target, width=5, alpha=SHADE, **kwargs)


def _points(da: xr.DataArray, target: Any, **kwargs: Any) -> Any:
    return drawing(target).scatter(_places(da), da.to_numpy(), target, size=30, **kwargs)


def _axes(
    da: xr.DataArray, target: Any, spans: Spans, label: str, var_name: str, sel: dict[str, Any], isel: Any
) -> None:
    plot, places, own = drawing(target), _places(da), spans[var_name].to_numpy()
    top = 1.08 * float(np.nanmax(da.to_numpy() + np.where(np.isfinite(own), own, 0.0)))
    plot.xticks(places, [f"{epsilon:g}" for epsilon in da["epsilon"].to_numpy()], target)
    plot.ylim((0.0, top), target)
    plot.xlabel("privacy loss ε", target)
    plot.ylabel(label, target)
    plot.title(shorten(var_name, 34), target)


__all__ = ["tradeoff"]
