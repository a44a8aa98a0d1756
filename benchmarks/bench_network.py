"""A network of 20 nodes of up to three parents and 1e6 rows: release of its tables and of its coefficients."""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import pymc as pm
from _measure import Report, in_turn, peak_bytes

from pymc_dp.families.characters import sums_of
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.network import Network, Node
from pymc_dp.networks import FourierUpdates, LaplaceUpdates
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan
from pymc_dp.rows.gate import opened_gate
from tests.paid import draw_release

N_ROWS, N_NODES, IN_DEGREE = 1_000_000, 20, 3


def random_network(rng: np.random.Generator, n_nodes: int) -> Network:
    """Parents of every node are three of those before it, or all where these are fewer."""
    parents = [tuple(sorted(rng.choice(i, min(i, IN_DEGREE), replace=False).tolist())) for i in range(n_nodes)]
    return Network(nodes=tuple(Node(name=f"x{i}", n_levels=2, parents=given) for i, given in enumerate(parents)))


def model_of(network: Network, rng: np.random.Generator) -> pm.Model:
    with pm.Model() as model:
        held = []
        for node in network.nodes:
            column = pm.Data(f"{node.name}_rows", rng.integers(2, size=N_ROWS, dtype=np.int8))
            p = pm.Beta(f"p_{node.name}", 1, 1, shape=(2,) * len(node.parents) or None)
            index = tuple(held[parent] for parent in node.parents)
            pm.Bernoulli(node.name, p[index] if index else p, observed=column)
            held.append(column)
    return model


def by_numpy(network: Network, columns: list[np.ndarray]) -> list[np.ndarray]:
    """Count every family by a code per row."""
    tables = []
    for place in range(len(network.nodes)):
        family = network.family(place)
        code = np.zeros(N_ROWS, dtype=np.int64)
        for member in family:
            code = 2 * code + columns[member]
        tables.append(np.bincount(code, minlength=2 ** len(family)))
    return tables


def planned(model: pm.Model, mechanism: LaplaceUpdates | FourierUpdates) -> tuple[ReleasePlan, float]:
    start = time.perf_counter()
    plan = plan_release(inspect(model).sums, Statistics(mechanism=mechanism), 1.0)
    return plan, time.perf_counter() - start


def bench_release(rng: np.random.Generator) -> bool:
    network = random_network(rng, N_NODES)
    model = model_of(network, rng)
    columns = [np.asarray(model[f"{node.name}_rows"].get_value(borrow=True)) for node in network.nodes]
    planned(model, LaplaceUpdates())  # imports of the accountants
    (tables, _), (coefficients, seconds) = planned(model, LaplaceUpdates()), planned(model, FourierUpdates())
    times = in_turn(
        {
            "NumPy": lambda: by_numpy(network, columns),
            "tables": lambda: draw_release(tables),
            "coefficients": lambda: draw_release(coefficients),
        },
        repeats=5,
    )
    report = Report(f"Release {N_NODES} nodes of {N_ROWS:.0e} rows ({os.cpu_count()} cores)")
    for name in ("tables", "coefficients"):
        median, least = times.ratio(name, "NumPy")
        text = f"{name} over counts by NumPy: {times.median(name):.2f} / {times.median('NumPy'):.2f} s"
        report.add(text, f"{median:.2f} (least {least:.2f})", "<= 1", met=median <= 1)
    report.at_most("coefficients, least time of a release", times.least("coefficients"), 5.0, " s")
    report.at_most("inspection, closure, sensitivity and noise", seconds, 5.0, " s")
    peak = peak_bytes(lambda: draw_release(coefficients))
    report.add("peak extra memory", f"{peak / 2**20:.1f} MiB", "< 50", met=peak < 50 * 2**20)
    return report.finish()


def bench_closure(rng: np.random.Generator) -> bool:
    """Twice the nodes are about twice the coefficients, and not 2^20 times the work."""
    report = Report("Closure and sensitivity of growing networks")
    for n_nodes in (10, 20, 40, 80):
        network = random_network(rng, n_nodes)
        start = time.perf_counter()
        sums = sums_of(network, sized=False)
        assert not isinstance(sums, tuple)
        sensitivity = sums.reading().shape.move("replace")
        seconds = time.perf_counter() - start
        cells = sum(2 ** len(network.family(place)) for place in range(n_nodes))
        report.add(
            f"{n_nodes} nodes: {sums.count} of {cells} numbers, Δ1 = {sensitivity.l1} (paper {2 * sums.count + 2})",
            f"{seconds:.2f} s",
            "< 10",
            met=seconds < 10 and sums.count < cells,
        )
    return report.finish()


if __name__ == "__main__":
    with opened_gate():  # the rows are made up
        results = [bench(np.random.default_rng(20240109)) for bench in (bench_release, bench_closure)]
    sys.exit(not all(results))
