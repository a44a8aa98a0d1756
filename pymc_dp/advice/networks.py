"""A discrete Bayesian network, drawn, and what each of the mechanisms for it would cost."""

from __future__ import annotations

from math import prod, sqrt

from pymc_dp._display import Drawing, Table
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.families.characters import NetworkSums
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.network import Network, find_network
from pymc_dp.networks import FourierUpdates, LaplaceUpdates
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan, TablePlan

MOST_LINES = 50
"""Of a drawing in a page."""
COLUMNS = ("call", "numbers", "sensitivity (Δ1)", "noise (sd) of a count")


def network_parts(inspection: Inspection, epsilon: float) -> tuple[Drawing | Table, ...]:
    """Draw the network that observed variables form, and price its release; nothing where they form none.

    Parameters
    ----------
    inspection : Inspection
    epsilon : float
        Of Laplace noise.
    """
    network = None if inspection.problems else find_network(inspection)
    if not isinstance(network, Network) or not network.n_edges:
        return ()
    nodes, edges = len(network.nodes), network.n_edges
    title = f"A Bayesian network of {nodes} nodes and {edges} edge{'s' * (edges != 1)} (levels in brackets, if not two)"
    calls = {
        "no mechanism": Statistics(),
        "LaplaceUpdates()": Statistics(mechanism=LaplaceUpdates()),
        "FourierUpdates()": Statistics(mechanism=FourierUpdates()),
    }
    rows = [(call, *_row(inspection, statistics, epsilon)) for call, statistics in calls.items()]
    priced = f"How the network would be released, Statistics(mechanism=dp...), at ε = {epsilon:g}"
    lines = network.drawn()
    if (more := len(lines) - MOST_LINES) > 0:
        lines = [*lines[:MOST_LINES], f"... and {more} more lines"]
    return Drawing(title=title, lines=lines), Table(title=priced, columns=COLUMNS, rows=rows)


def _row(inspection: Inspection, statistics: Statistics, epsilon: float) -> tuple[str, str, str]:
    try:
        plan = plan_release(inspection, statistics, epsilon)
    except UnsupportedModelError as error:
        return "none", "-", str(error.problems[0])
    except ArgumentError as error:  # under a metric
        return "none", "-", str(error)
    moved = sum(block.sensitivity.l1 * block.steps[0] for block in plan.blocks)
    statistic = plan.tables[0].statistic
    count, deviations = _of_coefficients(plan, statistic) if isinstance(statistic, NetworkSums) else _of_counts(plan)
    low, high = min(deviations), max(deviations)
    return f"{count}", f"{moved:.6g}", f"{low:.3g}" if high < 1.001 * low else f"{low:.3g} to {high:.3g}"


def _of_counts(plan: ReleasePlan) -> tuple[int, list[float]]:
    return sum(_size(table) for table in plan.tables), [
        block.noise.deviation(block.scale) for table in plan.tables for block in table.blocks
    ]


def _size(table: TablePlan) -> int:
    return table.cells.count * len(table.labels)


def _of_coefficients(plan: ReleasePlan, sums: NetworkSums) -> tuple[int, list[float]]:
    """Number of coefficients, and the noise of a count of every table that they make.

    Squares of all functions of a table's cells add up to the number of cells.
    """
    (block,), network = plan.blocks, sums.network
    sd = block.noise.deviation(block.scale * block.steps[0])
    sizes = [prod(network.shape(place)) for place in range(len(network.nodes))]
    return sums.count, [sd * sqrt(size - (not sums.sized)) / size for size in sizes]


__all__ = ["network_parts"]
