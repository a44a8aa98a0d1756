"""``dp.sensitivity``: how far one row can move what is computed from the data, as it is found on simulated rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, override

from pymc import Model

from pymc_dp._display import Page, Shown, Table
from pymc_dp.domain import Domain, Neighbours
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import lay_out, table_problems
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import TablePlan
from pymc_dp.samplers.found_range import FoundRange, found_range
from pymc_dp.transforms.prior_model import shared_prior_model

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("quantity", "value", "of", "where")


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """The largest number that was found; behaves as it.

    Attributes
    ----------
    value : float
        In nats.
    reason : str
        What it is the largest of, and how it was looked for.
    where : tuple of (str, float)
        A row, and two points of the parameters between which its log-likelihood ranges farthest.

    Examples
    --------
    >>> found = Found(value=2.0, reason="an example", where=())
    >>> float(found)
    2.0
    """

    value: float
    reason: str
    where: tuple[tuple[str, float], ...] = ()

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"Found(value={self.value:.7g}, reason={self.reason!r})"


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticsSensitivity:
    """How far one row moves the sufficient statistics of one observed variable.

    Attributes
    ----------
    name : str
    l1, l2 : float
        Δ1 and Δ2, in units of the statistics.
    reason : str
    """

    name: str
    l1: float
    l2: float
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sensitivity(Shown):
    """What one row can change, as it was found; prints as text and renders in notebooks.

    Attributes
    ----------
    neighbours : {"replace", "add_remove"}
    range : Found
        R: the largest range of a difference of two rows over the parameters (``"replace"``), or of one row
        (``"add_remove"``). The exponential mechanism pays for it, and samplers that do enforce it on every row. Under
        ``"replace"`` it is twice the range of one row, less the mean of some simulated rows.
    log_likelihood : Found
        Δl [Foulds et al. 2016, equation 9]: the largest ``|l(x, θ) - l(x', θ)|``, or ``|l(x, θ)|``.
    statistics : tuple of StatisticsSensitivity
        One per observed variable whose sums can be released; empty where none can. These are closed forms.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     p = pm.Uniform("p", 0.3, 0.6)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1]))
    >>> found = sensitivity(model)
    >>> round(found.range.value, 3), round(found.log_likelihood.value, 3), found.statistics[0].l1
    (1.253, 0.847, 1.0)
    """

    neighbours: Neighbours
    range: Found
    log_likelihood: Found
    statistics: tuple[StatisticsSensitivity, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per quantity of the log-likelihood."""
        import pandas as pd

        named = {"range": self.range, "sensitivity": self.log_likelihood}
        return pd.DataFrame(
            [(quantity, found.value, found.reason, dict(found.where)) for quantity, found in named.items()],
            columns=list(COLUMNS),
        )

    @cached_property
    @override
    def _page(self) -> Page:
        named = {"range R": self.range, "sensitivity Δl": self.log_likelihood}
        rows = [(quantity, f"{one.value:.6g}", one.reason, _written(one)) for quantity, one in named.items()]
        parts = [Table(title="One row's log-likelihood (nats)", columns=COLUMNS, rows=rows)]
        if self.statistics:
            sums = [(item.name, f"{item.l1:.6g}", f"{item.l2:.6g}", item.reason) for item in self.statistics]
            parts.append(Table(title="Sufficient statistics", columns=("variable", "Δ1", "Δ2", "why"), rows=sums))
        headline = (
            f"R = {self.range.value:.6g}, Δl = {self.log_likelihood.value:.6g}: the largest found, and enforced where "
            f"a sampler pays for it (neighbours: {self.neighbours})"
        )
        return Page(title="How far one row moves the likelihood", headline=headline, good=True, parts=parts)


def _written(found: Found) -> str:
    return ", ".join(f"{name} = {value:.4g}" for name, value in found.where)


def sensitivity(model: Model | None = None, domain: Domain | None = None) -> Sensitivity:
    """Find how far one row can move the log-likelihood and the sums of a model.

    Parameters
    ----------
    model : pymc.Model or bambi.Model, optional
        Defaults to the model of the context.
    domain : Domain, optional
        What is public about one row. Private values need bounds, there or by the model; the parameter space is the
        support of the priors (``dp.truncate`` narrows it).

    Returns
    -------
    Sensitivity

    Raises
    ------
    UnsupportedModelError
        If the likelihood does not factorise over rows, if a private column has no bounds, or if the range grows with a
        parameter without bounds or towards an end of a prior: the text names the bounds to give. Under a metric.

    Notes
    -----
    **Nothing is proved.** Numbers are the largest found on simulated rows and points of the parameters: at the ends of
    what is public, at random, and moved on from there to where they are larger. A row between these may move the
    log-likelihood a little farther. Where a sampler pays for a range it enforces it, on every row: privacy does not
    depend on how well it was found. Reads shapes and dtypes of private arrays, never a value (public columns are read),
    and spends nothing.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), equation 9; Dong, Durfee, Rogers (2020) for the range.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     p = pm.Uniform("p", 0.05, 0.95)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1]))
    >>> round(float(sensitivity(model).log_likelihood), 5)
    2.94444
    """
    source, domain = given_model(model, domain)
    whole = inspect(source, domain)
    whole.rows.require()
    found = found_range(whole.rows, shared_prior_model(whole.rows))
    return found_sensitivity(found, whole.domain.neighbours, _statistics(whole.sums))


def found_sensitivity(
    found: FoundRange, neighbours: Neighbours, statistics: tuple[StatisticsSensitivity, ...] = ()
) -> Sensitivity:
    """Put what was found into words."""
    replace = neighbours == "replace"
    of = "range of l(x, θ) - l(x', θ) over θ" if replace else "range of l(x, θ) over θ"
    size = "largest |l(x, θ) - l(x', θ)|" if replace else "largest |l(x, θ)|"
    return Sensitivity(
        neighbours=neighbours,
        range=Found(value=found.value, reason=f"{of}: {found.reason}", where=found.worst),
        log_likelihood=Found(value=found.size, reason=size),
        statistics=statistics,
    )


def _statistics(inspection: Inspection) -> tuple[StatisticsSensitivity, ...]:
    if inspection.problems or table_problems(inspection):
        return ()
    return tuple(_moved(table) for table in lay_out(inspection, Statistics()).tables)


def _moved(table: TablePlan) -> StatisticsSensitivity:
    """Add up the blocks of a table: each moves by its own, in its units."""
    l1 = sum(block.sensitivity.l1 * max(block.steps) for block in table.blocks)
    squares = [block.sensitivity.l2_squared * max(block.steps) ** 2 for block in table.blocks]
    return StatisticsSensitivity(
        name=table.name,
        l1=l1,
        l2=math.sqrt(sum(squares)),
        reason="; ".join(block.sensitivity.reason for block in table.blocks),
    )


__all__ = ["Found", "Sensitivity", "StatisticsSensitivity", "sensitivity"]
