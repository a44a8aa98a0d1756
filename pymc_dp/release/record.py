"""The public record of a release, in plain values: what travels with private models and traces."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pymc_dp._column_bounds import pairs_of
from pymc_dp._display import shorten
from pymc_dp.accounting import loss_at, total_epsilon
from pymc_dp.domain import Domain
from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.histogram import Bins
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.release.approximations import approximations_of, of_counts_and_sums
from pymc_dp.release.tables import Block, ReleasePlan, TablePlan
from pymc_dp.release.typical_noise import noise_over_sampling
from pymc_dp.release.verdict import NOISE
from pymc_dp.release.written import written
from pymc_dp.unit import Unit

STATED = "stated"
"""What a record says that others state, and nothing here proves."""
GUARANTEES = ("none", STATED, "asymptotic", "stepwise", "exact")
"""Classes of guarantees, the weakest first."""
NOT_ALWAYS = ("chosen", "label", "ledger", "account", "maker", "sources")
"""Parts of a record that are left out where there is nothing to say."""
ALL_OF_IT = 0.98
"""Share of what was asked for from which nothing is said to be left: searches for the least noise, and rounding."""


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """One released table: labels, noise, sensitivity and its proof. Holds no value.

    Attributes
    ----------
    plan : mapping
        What others need to fit a model to the table, in JSON types (`release.written`).
    approximations : tuple of str
        What of the likelihood of the table is approximate; the privacy of the release does not depend on it.
    """

    name: str
    likelihood: str
    cell_dim: str
    column_dim: str
    cells: tuple[str, ...]
    columns: tuple[str, ...]
    scales: tuple[float, ...]
    epsilon: float
    sensitivities: tuple[str, ...]
    sizes_public: bool
    plan: Mapping[str, Any]
    approximations: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PartRecord:
    """One of several mechanisms that a run is composed of.

    Attributes
    ----------
    name : str
        What it is: a step method, the start of a chain, the path of annealing.
    variables : tuple of str
    uses : str
        How often it was used, in words.
    noise : str
    epsilon : float
        Its loss by itself, at the δ of the run. Parts compose to no more than the sum of these; mostly to less.
    """

    name: str
    variables: tuple[str, ...]
    uses: str
    noise: str
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class SamplerRecord:
    """What a private sampler did, in public terms. Holds no value.

    Attributes
    ----------
    name : str
        Class of the step method.
    noise : str
        Temperature or noise, in one phrase.
    variables : tuple of str
        Free variables drawn.
    chains, steps : int
        Chains, and steps of each, tuning and thinned steps included; all are paid for.
    facts : tuple of (str, str)
        What else a reader of the report should know: range and its proof, batch, proposal.
    parts : tuple of PartRecord
        The mechanisms that were composed; none where there is one.
    power : float
        To which the likelihood is taken in what is drawn from: 1 for the posterior itself.
    """

    name: str
    noise: str
    variables: tuple[str, ...]
    chains: int
    steps: int
    facts: tuple[tuple[str, str], ...] = ()
    parts: tuple[PartRecord, ...] = ()
    power: float = 1.0

    def as_part(self, epsilon: float) -> PartRecord:
        """Return it as one of several mechanisms, which by itself costs `epsilon`."""
        uses = uses_of(self.chains, self.steps)
        return PartRecord(name=self.name, variables=self.variables, uses=uses, noise=self.noise, epsilon=epsilon)


def uses_of(chains: int, steps: int) -> str:
    """Return chains and steps in words.

    Examples
    --------
    >>> uses_of(1, 200), uses_of(2, 1)
    ('1 chain of 200 steps', '2 chains of 1 step')
    """
    return f"{chains} chain{'s' * (chains != 1)} of {steps} step{'s' * (steps != 1)}"


@dataclass(frozen=True, kw_only=True)
class MetricRecord:
    """A guarantee per unit of a metric.

    Attributes
    ----------
    metric : str
        ρ, in words.
    columns : tuple of str
        Columns that it is about; none where it is about whole rows.
    epsilon_per_unit : float
        Privacy loss per unit of ρ.
    diameter : float or None
        Largest ρ of two rows; None where there is none.
    grids : tuple of str
        What values are rounded to before their distance is taken.
    """

    metric: str
    columns: tuple[str, ...]
    epsilon_per_unit: float
    diameter: float | None
    grids: tuple[str, ...] = ()

    @classmethod
    def of(cls, domain: Domain, epsilon: float, diameter: float, grids: tuple[str, ...] = ()) -> MetricRecord | None:
        """Return the record of a domain's metric; None where it has none."""
        if domain.metric is None:
            return None
        return cls(
            metric=str(domain.metric),
            columns=domain.metric.columns,
            epsilon_per_unit=epsilon,
            diameter=diameter if math.isfinite(diameter) else None,
            grids=grids,
        )


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord:
    """Everything the trace says about the release: guarantee, cost, assumptions.

    Attributes
    ----------
    epsilon : float
        What the event of the run costs at `delta`, by itself, for one row, whatever it changes to; inf where only
        `metric` says how much it is per unit.
    asked : float, optional
        What was asked for: per row, or per unit of the metric. Unknown of traces of earlier versions.
    rest : str
        What would use the rest of what was asked for, where there is something.
    chosen : str
        What the library chose to release, and why; empty where the user did.
    label : str
        What it was paid for, in the words of the user; empty where there are none.
    ledger : mapping, optional
        ``Ledger.head`` after the charge, of one that is stored: whoever has the record can see later that the ledger
        still holds it.
    account : str
        Random identity of the ledger that paid, where that is in memory; `account_of` finds it for both kinds. Releases
        that one ledger paid for are of one data set. Empty where no ledger paid, where noise was seeded, and where an
        earlier version did not write it.
    """

    epsilon: float
    delta: float
    guarantee: str
    arithmetic: str
    neighbours: str
    noise: str
    noise_aware: bool
    event: Mapping[str, Any]
    tables: tuple[TableRecord, ...]
    assumptions: tuple[str, ...]
    left_out: tuple[str, ...]
    sampler: SamplerRecord | None = None
    domain: Mapping[str, Any] | None = None
    metric: MetricRecord | None = None
    asked: float | None = None
    rest: str = ""
    chosen: str = ""
    label: str = ""
    ledger: Mapping[str, Any] | None = None
    account: str = ""
    maker: Mapping[str, Any] | None = None
    sources: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON types; nothing of a choice that was not made, a ledger that is not stored, or no other maker."""
        return {name: item for name, item in asdict(self).items() if item or name not in NOT_ALWAYS}


def make_tables(plan: ReleasePlan) -> tuple[TableRecord, ...]:
    """Describe the tables of a planned release."""
    return tuple(
        TableRecord(
            name=table.name,
            likelihood=_likelihood(table),
            cell_dim=f"{table.name}_cell",
            column_dim=f"{table.name}_statistic",
            cells=table.cell_labels,
            columns=table.labels,
            scales=tuple(float(scale) for scale in table.scales),
            epsilon=loss_at(total_epsilon(table.event, plan.delta).epsilon, plan.diameter),
            sensitivities=tuple(map(_proof, table.blocks)),
            sizes_public=table.sizes_known,
            plan={**written(table), NOISE: noise_over_sampling(table)},
            approximations=_of_persons(table, plan) + approximations_of(table) + of_counts_and_sums(table, plan),
        )
        for table in plan.tables
    )


def _of_persons(table: TablePlan, plan: ReleasePlan) -> tuple[str, ...]:
    if plan.unit is None:
        return ()
    return (f"{table.name}: {plan.unit.estimand}. How many rows are left out is not released.",)


def _proof(block: Block) -> str:
    sensitivity = _natural(block.noise.weight(block.sensitivity), block.steps)
    return f"{block.noise.norm} = {sensitivity}: {block.sensitivity.reason}"


def _likelihood(table: TablePlan) -> str:
    if isinstance(table.statistic, NetworkSums):
        return "Bayesian network"
    if table.family is None:
        return f"{table.observed.title} regression"
    return (
        f"{table.observed.title}, as a histogram" if isinstance(table.statistic, Bins) else table.observed.distribution
    )


def describe(inspection: Inspection, plan: ReleasePlan, guarantee: str = "exact") -> ReleaseRecord:
    """Describe a planned release."""
    tables, cost = make_tables(plan), total_epsilon(plan.event, plan.delta).epsilon
    return ReleaseRecord(
        epsilon=loss_at(cost, plan.diameter),
        delta=plan.delta,
        asked=plan.epsilon,
        guarantee=guarantee,
        arithmetic="hardened",
        neighbours=plan.neighbours,
        noise=plan.blocks[0].noise.name,
        noise_aware=plan.statistics.noise_aware,
        event=plan.event.to_dict(),
        tables=tables,
        assumptions=(*inspection.assumptions, *_edges(plan)),
        left_out=inspection.dropped,
        domain=described_domain(inspection.domain),
        metric=MetricRecord.of(inspection.domain, cost, plan.diameter, plan.grids),
    )


def _edges(plan: ReleasePlan) -> list[str]:
    """Return where values are cut into bins, for the list of what is assumed public."""
    return [
        f"bins of {table.name}: cut at {', '.join(shorten([f'{edge:g}' for edge in table.statistic.edges], 8))}"
        for table in plan.tables
        if isinstance(table.statistic, Bins)
    ]


def written_release(record: ReleaseRecord, tables: Mapping[str, Array]) -> dict[str, Any]:
    """Return released tables and their record in JSON types, as ``dp.Release`` reads them."""
    return {"record": record.to_dict(), "tables": {name: np.asarray(table).tolist() for name, table in tables.items()}}


def described_domain(domain: Domain) -> dict[str, Any]:
    """Return what a domain says about released tables, in JSON types."""
    return {
        "bounds": {name: [*map(list, pairs_of(ends))] or list(ends) for name, ends in domain.bounds.items()},
        "norms": dict(domain.norms),
        "public": sorted(domain.public),
        "neighbours": domain.neighbours,
        "n_max": domain.n_max,
        **({} if domain.unit is None else {"unit": asdict(domain.unit)}),
        **({"weights": dict(domain.weights)} if domain.weights else {}),
    }


def read_domain(described: Mapping[str, Any] | None, known: Collection[str] | None = None) -> Domain:
    """Return the domain that `described_domain` wrote, or what it says about `known` names; a metric is not in it.

    With `known` names it is for a model to which a release is applied: what was weighed is so already.
    """
    found = described or {}
    kept = (lambda name: True) if known is None else known.__contains__
    return Domain(
        bounds={name: ends for name, ends in found.get("bounds", {}).items() if kept(name)},
        norms={name: norm for name, norm in found.get("norms", {}).items() if kept(name)},
        public=[name for name in found.get("public", ()) if kept(name)],
        neighbours=found.get("neighbours", "replace"),
        n_max=found.get("n_max"),
        unit=None if (unit := found.get("unit")) is None else Unit(**unit),
        weights=found.get("weights") if known is None else None,
    )


def read_record(written: Mapping[str, Any]) -> ReleaseRecord:
    """Return a record that was written as JSON."""
    tables = tuple(TableRecord(**{**table, **_tuples(table)}) for table in written["tables"])
    found = None if (metric := written.get("metric")) is None else MetricRecord(**{**metric, **_tuples(metric)})
    return ReleaseRecord(**{**written, **_tuples(written), "tables": tables, "metric": found})


def _tuples(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) for name, value in written.items() if isinstance(value, list)}


def _natural(steps: float, sizes: tuple[float, ...]) -> str:
    """Sensitivity in units of the data where the block has one unit, else in its share of each."""
    each = sizes[:1] if len(set(sizes)) == 1 else sizes
    return " / ".join(f"{steps * size:.6g}" for size in each)


def rows_counted(record: Mapping[str, Any]) -> str:
    """Say how many rows of a person count."""
    most = record["domain"]["unit"]["max_rows"]
    return f", of which at most {most} row{'s' * (most != 1)} count"
