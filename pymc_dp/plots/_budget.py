"""``dp.plots.budget``: what was spent on what, against the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from pymc_dp import _validate
from pymc_dp.accounting import ComposedEvent, Ledger, event_from_dict, total_epsilon
from pymc_dp.errors import ArgumentError
from pymc_dp.plots._figure import GREY, INK, SHADE, backend_name, colours, drawing, make_panels, shorten
from pymc_dp.trace.accessor import PrivacyAccessor

BAR = 0.36
"""Half the height of a bar."""


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Releases in order, the total after each, and the budget they are taken from; all losses are ε per `each`."""

    labels: tuple[str, ...]
    alone: tuple[float, ...]
    totals: tuple[float, ...]
    epsilon: float
    delta: float
    title: str
    each: str = "row"

    @property
    def left(self) -> float:
        """What the total is short of the budget; rounding in sums of shares is nothing left."""
        left = self.epsilon - (self.totals[-1] if self.totals else 0.0)
        return left if left > 1e-9 * self.epsilon else 0.0


def budget(source: xr.DataTree | Ledger, *, backend: str | None = None, **pc_kwargs: Any) -> Any:
    """Draw what was spent on what, against the budget.

    One bar for each release, from the total before it to the total after it, and a last one for what is left. Bars of a
    ledger have the labels that were given to ``dp.sample(label=...)``.

    Parameters
    ----------
    source : DataTree or Ledger
        A trace of ``dp.sample`` (one bar for each observed variable, the budget is the ε of the trace), or the ledger
        of a data set (one bar for each spend). Where a ledger adds up by an accountant better than plain sums, a bar
        is shorter than what its release costs by itself; both numbers are written beside it.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Defaults to ``arviz_base.rcParams["plot.backend"]``.
    **pc_kwargs
        Passed to ``arviz_plots.PlotCollection.wrap``, for example ``figure_kwargs={"figsize": (8, 3)}``.

    Returns
    -------
    arviz_plots.PlotCollection
        Its ``viz`` holds the figure and ``bars``, ``notes`` and ``budget_line``.

    Raises
    ------
    ArgumentError
        If `source` is neither a trace nor a ledger.
    TraceError
        If the trace has no ``/privacy`` group.

    Notes
    -----
    **Guarantee.** Shows only what a trace or a ledger says about itself, which is public.

    Examples
    --------
    >>> from pymc_dp.accounting import Ledger
    >>> from pymc_dp.accounting import PureEvent
    >>> ledger = Ledger(epsilon=1.0)
    >>> _ = ledger.spend(PureEvent(epsilon=0.25), label="ages", neighbours="replace")
    >>> figure = budget(ledger, backend="none")
    >>> [bar["x"].tolist() for bar in figure.viz["bars"]["epsilon"].values]
    [[0.0, 0.25], [0.25, 1.0]]
    """
    spending = _spending(source)
    name = backend_name(backend)
    rows = [*spending.labels, *(["left"] if spending.left else [])]
    totals = [0.0, *spending.totals, *([spending.epsilon] if spending.left else [])]
    data = xr.Dataset({"epsilon": (("release", "end"), np.array(list(pairwise(totals))))})
    figure = make_panels(data, ["__variable__"], name, (8, 1.3 + 0.42 * len(rows)), **pc_kwargs)
    fills = [*colours(name, len(spending.labels)), GREY]
    figure.map(_bars, "bars", fills=fills, artist_dims={"release": len(rows)})
    figure.map(_notes, "notes", texts=_texts(spending), limit=spending.epsilon, artist_dims={"release": len(rows)})
    figure.map(_budget_line, "budget_line", limit=spending.epsilon)
    figure.map(_axes, "axes", labels=rows, spending=spending, store_artist=False)
    return figure


def _spending(source: xr.DataTree | Ledger) -> Spending:
    if isinstance(source, Ledger):
        history = source.history
        unit = "" if source.metric is None else f", per unit of ρ = {source.metric}"
        return Spending(
            labels=tuple(entry.label for entry in history), alone=tuple(entry.alone.epsilon for entry in history),
            totals=tuple(entry.total.epsilon for entry in history), epsilon=source.budget.epsilon,
            delta=source.budget.delta, title=f"Spent on this data set{unit}",
            each="row" if source.metric is None else "unit of ρ",
        )  # fmt: skip
    if not isinstance(source, xr.DataTree):
        raise ArgumentError(
            f"source must be a trace made by dp.sample or a dp.Ledger, got {_validate.shown(source)}. "
            "The ledger of a data set is the one that was passed as dp.sample(ledger=...)."
        )
    trace = PrivacyAccessor(source)
    history, record = trace.history, trace.report().record
    epsilons = tuple(map(float, history["epsilon"]))
    return Spending(
        labels=tuple(f"{row.variable} ({row.likelihood})" for row in history.itertuples()), alone=epsilons,
        totals=_totals(record, epsilons), epsilon=trace.epsilon, delta=trace.delta,
        title=f"Spent on {record.get('label') or 'this trace'}",
    )  # fmt: skip


def _totals(record: Mapping[str, Any], alone: tuple[float, ...]) -> tuple[float, ...]:
    """ε of the first tables together, for each number of them: with a δ it is less than the sum."""
    event = event_from_dict(record["event"]) if record["tables"] and record["delta"] and record["event"] else None
    if not isinstance(event, ComposedEvent):  # parts of a sampler cost together at most their sum
        return tuple(map(float, np.minimum(np.cumsum(alone), record["epsilon"])))
    counts = np.cumsum([len(table["plan"]["blocks"]) for table in record["tables"]])
    return tuple(total_epsilon(replace(event, events=event.events[:n]), record["delta"]).epsilon for n in counts)


def _texts(spending: Spending) -> list[str]:
    before = (0.0, *spending.totals)
    texts = []
    for alone, start, total in zip(spending.alone, before, spending.totals, strict=False):
        added, by_itself = f"{total - start:.3g}", f"{alone:.3g}"
        texts.append(added if added == by_itself else f"{added} (alone {by_itself})")
    return [*texts, *([f"{spending.left:.3g}"] if spending.left else [])]


def _bars(da: xr.DataArray, target: Any, fills: list[Any]) -> np.ndarray[Any, Any]:
    plot, last = drawing(target), da.sizes["release"] - 1
    drawn = np.empty(last + 1, dtype=object)
    for row, (ends, fill) in enumerate(zip(da.values, fills, strict=False)):
        low, high = last - row - BAR, last - row + BAR
        drawn[row] = plot.fill_between_y(ends, [low, low], [high, high], target, color=fill, alpha=SHADE)
    return drawn


def _notes(da: xr.DataArray, target: Any, texts: list[str], limit: float) -> np.ndarray[Any, Any]:
    """Write each number on its bar, or beside it where the bar is short."""
    plot, last = drawing(target), da.sizes["release"] - 1
    drawn = np.empty(last + 1, dtype=object)
    for row, (ends, text) in enumerate(zip(da.values, texts, strict=True)):
        start, end, gap = float(ends[0]), float(ends[1]), 0.012 * limit
        if end - start > 0.25 * limit:
            x, align = (start + end) / 2, "center"
        elif end < 0.6 * limit:
            x, align = end + gap, "left"
        else:
            x, align = start - gap, "right"
        drawn[row] = plot.text(x, last - row, text, target, horizontal_align=align, color=INK)
    return drawn


def _budget_line(da: xr.DataArray, target: Any, limit: float) -> Any:
    return drawing(target).vline(limit, target, color=INK, linestyle="C1", width=1.5)


def _axes(da: xr.DataArray, target: Any, labels: list[str], spending: Spending) -> None:
    plot, count = drawing(target), len(labels)
    plot.yticks([count - 1 - row for row in range(count)], [shorten(label, 36) for label in labels], target)
    plot.ylim((-0.6, count - 0.4), target)
    plot.xlim((0.0, 1.04 * spending.epsilon), target)
    at = f" at δ = {spending.delta:g}" if spending.delta else ""
    plot.xlabel(f"privacy loss ε{at}, per {spending.each}", target)
    plot.title(
        f"{shorten(spending.title, 48)}: ε = {spending.epsilon - spending.left:.3g} of {spending.epsilon:.3g}", target
    )
