"""``dp.sensitivity``: how far one row can move what is computed from the data, proved from the model's graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, override

from pymc import Model

from pymc_dp._display import Listing, Page, Shown, Table
from pymc_dp.domain import Domain, Neighbours
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Inspection, RowInspection
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.inspect import inspect
from pymc_dp.proofs.certificates import Certificates, certify
from pymc_dp.proofs.lipschitz_in_rows import PerUnit, prove_per_unit
from pymc_dp.proofs.remedies import problems_of
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.proofs.row_ranges import Proof, prove_range, prove_sensitivity
from pymc_dp.release.plan import lay_out, table_problems
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import TablePlan
from pymc_dp.transforms.prior_model import prior_model

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("variable", "quantity", "bound", "best point", "gap", "worst case")


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """A proved upper bound; behaves as its number.

    Attributes
    ----------
    value : float
        In nats; no row, neighbour and parameters of the declared domain exceed it.
    attained : float
        Largest value met at a point of the domain, where linear predictors and elements chosen by the row are free
        within their ranges.
    reason : str
    worst : tuple of (str, float)
        Where it was met: values of two rows (``row 0``, ``row 1``) and of two places of the parameters.

    Examples
    --------
    >>> bound = Bound(value=2.0, attained=1.9, reason="an example", worst=())
    >>> float(bound), round(bound.gap, 3)
    (2.0, 0.05)
    """

    value: float
    attained: float
    reason: str
    worst: tuple[tuple[str, float], ...]

    def __float__(self) -> float:
        return self.value

    @property
    def gap(self) -> float:
        """What a better search could gain at most, relative to the bound."""
        return (self.value - self.attained) / self.value if self.value > 0 else 0.0

    def __repr__(self) -> str:
        return f"Bound(value={self.value:.7g}, attained={self.attained:.7g}, reason={self.reason!r})"


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
    """What one row can change, with proofs; prints as text and renders in notebooks.

    Attributes
    ----------
    neighbours : {"replace", "add_remove"}
    statistics : tuple of StatisticsSensitivity
        One per observed variable whose sums can be released; empty where none can.
    by_variable : dict of str to (Proof, Proof)
        Range and Δl of each observed variable; they add up.
    problems : tuple of Problem
        What is in the way of a finite range, with what would do; empty if it is finite.
    certificates : Certificates
        Lipschitz constants, concavity, and strong concavity of the prior; each proved when first asked for.
    per_unit, lipschitz : PerUnit or None
        Under a metric ρ: the range R per unit of it, which is what posterior samples pay for, and L_ρ, the largest
        ``|l(x, θ) - l(y, θ)| / ρ(x, y)`` [Dimitrakakis et al. 2017, assumption 1]; R is at most 2 L_ρ.

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
    statistics: tuple[StatisticsSensitivity, ...]
    by_variable: dict[str, tuple[Proof, Proof]]
    problems: tuple[Problem, ...]
    certificates: Certificates
    per_unit: PerUnit | None = None
    lipschitz: PerUnit | None = None

    @property
    def range(self) -> Bound:
        """R: what the exponential mechanism and the private samplers pay for. Raises if nothing bounds it."""
        return self._bound(0, "range of l(x, θ) - l(x', θ) over θ" if self._replace else "range of l(x, θ) over θ")

    @property
    def log_likelihood(self) -> Bound:
        """Δl [Foulds et al. 2016, equation 9]: the largest ``|l(x, θ) - l(x', θ)|``, or ``|l(x, θ)|``.

        Raises as `range`.
        """
        return self._bound(1, "largest |l(x, θ) - l(x', θ)|" if self._replace else "largest |l(x, θ)|")

    @property
    def gaussian(self) -> float:
        """G / √m: an exact posterior draw at inverse temperature β is μ-GDP with μ = β G / √m; inf if not proved.

        A theorem about exact draws, by Gopi, Lee, Liu (2022). No sampler of this package is charged by it.
        """
        return self.certificates.gaussian()

    @property
    def _replace(self) -> bool:
        return self.neighbours == "replace"

    def _bound(self, place: int, words: str) -> Bound:
        proofs = [pair[place] for pair in self.by_variable.values()]
        lost = [name for name, pair in self.by_variable.items() if not math.isfinite(pair[place].value)]
        if lost:
            raise UnsupportedModelError(self.problems or [_unbounded(name, self.by_variable[name][1]) for name in lost])
        boxes = sum(proof.boxes for proof in proofs)
        several = ", added over observed variables" if len(proofs) > 1 else ""
        return Bound(
            value=sum(proof.value for proof in proofs),
            attained=sum(proof.attained for proof in proofs) if len(proofs) == 1 else _jointly(proofs),
            reason=f"{words}{several}: interval arithmetic and branch and bound over {boxes} boxes",
            worst=tuple(item for proof in proofs for item in proof.where),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per observed variable and quantity."""
        import pandas as pd

        return pd.DataFrame(
            [
                (name, quantity, proof.value, proof.attained, proof.gap, dict(proof.where))
                for name, pair in self.by_variable.items()
                for quantity, proof in zip(("range", "sensitivity"), pair, strict=True)
            ],
            columns=list(COLUMNS),
        )

    @cached_property
    @override
    def _page(self) -> Page:
        rows = [
            (name, quantity, f"{proof.value:.6g}", f"{proof.attained:.6g}", f"{proof.gap:.2%}", worst_case(proof))
            if math.isfinite(proof.value)
            else (name, quantity, "not proved", "", "", proof.obstacle)
            for name, pair in self.by_variable.items()
            for quantity, proof in zip(("range R", "sensitivity Δl"), pair, strict=True)
        ]
        parts: list[Table | Listing] = [Table(title="One row's log-likelihood (nats)", columns=COLUMNS, rows=rows)]
        if self.statistics:
            sums = [(item.name, f"{item.l1:.6g}", f"{item.l2:.6g}", item.reason) for item in self.statistics]
            parts.append(Table(title="Sufficient statistics", columns=("variable", "Δ1", "Δ2", "why"), rows=sums))
        parts.append(Table(title="Certificates", rows=_certified(self.certificates, self.neighbours)))
        if self.per_unit is not None and self.lipschitz is not None:
            parts.append(Table(title="Per unit of the metric", rows=_per_unit(self.per_unit, self.lipschitz)))
        if self.problems:
            parts.append(Listing(title="What would make the range finite", lines=[str(item) for item in self.problems]))
        title, good = "How far one row moves the likelihood", not self.problems
        return Page(title=title, headline=self._headline(), good=good, parts=parts)

    def _headline(self) -> str:
        if self.problems:
            return "No finite range is proved, which dp.OPS needs."
        size = sum(proof.value for _, proof in self.by_variable.values())
        known = f", Δl = {size:.6g}" if math.isfinite(size) else ""
        return f"R = {self.range.value:.6g}{known} (neighbours: {self.neighbours})"


def _unbounded(name: str, proof: Proof) -> Problem:
    return Problem(
        where=name,
        what=f"its log-likelihood itself has no proved bound, only its range has: {proof.obstacle}",
        remedy="Use `.range`, which is what samplers pay for.",
    )


def _jointly(proofs: Sequence[Proof]) -> float:
    """Several variables may have their worst cases at different parameters: only the largest is attained for sure."""
    return max(proof.attained for proof in proofs)


def worst_case(proof: Proof) -> str:
    """Say where the largest value was met: values of the rows and of the parameters."""
    found = sorted(proof.where, key=lambda item: ("(place" in item[0], item[0]))  # values of rows first
    return ", ".join(f"{name} = {value:.4g}" for name, value in found)


def _certified(found: Certificates, neighbours: Neighbours) -> list[tuple[str, str]]:
    lines = [("L_θ, slope in θ", _number(found.lipschitz)), ("G, slope of a difference", _number(found.difference))]
    lines += [(f"L_x, slope in {name}", _number(proof)) for name, proof in found.by_column.items()]
    lines.append(("likelihood concave in θ", "proved" if found.concave else "not proved"))
    lines.append(("prior strongly log-concave", f"m = {found.modulus:.6g}" if found.modulus > 0 else "not proved"))
    if math.isfinite(found.gaussian()):
        loss = f"μ-GDP with μ = {found.gaussian():.6g} / T at temperature T, with or without bounds on θ"
        lines.append(("an exact posterior draw", loss))
    lines += [("", reason) for reason in found.reasons]
    return lines


def _per_unit(found: PerUnit, lipschitz: PerUnit) -> list[tuple[str, str]]:
    lines = [("R, range per unit of ρ", f"{found.value:.6g}"), ("L_ρ, slope per unit of ρ", f"{lipschitz.value:.6g}")]
    lines += [(f"R per unit of {name}", f"{value:.6g}") for name, value in found.parts if len(found.parts) > 1]
    return [*lines, ("largest ρ of two rows", f"{found.diameter:.6g}")]


def _number(proof: Proof) -> str:
    return f"{proof.value:.6g}" if math.isfinite(proof.value) else f"not proved: {proof.obstacle}"


def sensitivity(model: Model | None = None, domain: Domain | None = None) -> Sensitivity:
    """Prove how far one row can move the log-likelihood, the sums and the gradients of a model.

    Parameters
    ----------
    model : pymc.Model or bambi.Model, optional
        Defaults to the model of the context.
    domain : Domain, optional
        What is public about one row. Values without bounds, there or by the model, are unbounded; the parameter space
        is the support of the priors (``dp.truncate`` narrows it).

    Returns
    -------
    Sensitivity

    Raises
    ------
    UnsupportedModelError
        If the likelihood does not factorise over rows, or if neither a finite range nor `Sensitivity.gaussian` is
        proved: the text names the operation or the unbounded variable, and bounds that were tried and would do.

    Notes
    -----
    **Guarantee.** Every bound is an upper bound, over all rows and neighbours of the domain and all parameters, of the
    log-likelihood as PyMC codes it (for values clamped to the domain, parameter checks left out): interval arithmetic
    with outward rounding and branch and bound. Reads shapes and dtypes of private arrays, never a value (public columns
    are read), and spends nothing.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), equation 9; Dong, Durfee, Rogers (2020) for the range; Gopi, Lee, Liu
    (2022) for log-concave models.

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
    whole = inspect(source, domain, per_unit=True)
    inspection = whole.rows
    inspection.require()
    found = _proved(inspection)
    if found.problems and not math.isfinite(found.gaussian):
        raise UnsupportedModelError(found.problems)
    per_unit, lipschitz = (_under_metric(inspection, found, papers=papers) for papers in (False, True))
    return Sensitivity(
        neighbours=found.neighbours,
        statistics=_statistics(whole.sums),
        by_variable=found.by_variable,
        problems=found.problems,
        certificates=found.certificates,
        per_unit=per_unit,
        lipschitz=lipschitz,
    )


def _under_metric(inspection: RowInspection, found: Sensitivity, *, papers: bool) -> PerUnit | None:
    metric, rows = inspection.domain.metric, found.certificates.rows
    return None if metric is None else prove_per_unit(rows, inspection.columns, metric, papers=papers)


def _proved(inspection: RowInspection) -> Sensitivity:
    neighbours = inspection.domain.neighbours
    model = prior_model(inspection)
    rows, priors = row_likelihoods(inspection, model)
    ranges = [prove_range(row, neighbours) for row in rows]
    sizes = [prove_sensitivity(row, neighbours) for row in rows]
    problems = problems_of(rows, ranges, partial(prove_range, neighbours=neighbours))
    return Sensitivity(
        neighbours=neighbours,
        statistics=(),
        by_variable={row.name: pair for row, pair in zip(rows, zip(ranges, sizes, strict=True), strict=True)},
        problems=tuple(problems),
        certificates=certify(rows, priors, neighbours, model),
    )


def _statistics(inspection: Inspection) -> tuple[StatisticsSensitivity, ...]:
    if inspection.domain.metric is not None or inspection.problems or table_problems(inspection):
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


__all__ = ["Bound", "Sensitivity", "StatisticsSensitivity", "sensitivity", "worst_case"]
