"""Proofs of how far one row moves the log-likelihood: their bounds, gaps and times on every likelihood of the tests."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _measure import Report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "sensitivity"))

from zoo import ZOO, Likelihood

from pymc_dp.inspection.inspect import inspect
from pymc_dp.proofs.row_likelihood import RowLikelihood, row_likelihoods
from pymc_dp.proofs.row_ranges import Proof, prove_range, prove_sensitivity
from pymc_dp.transforms.prior_model import prior_model

SECONDS, GAP = 1.0, 1e-3
QUANTITIES: dict[str, Callable[..., Proof]] = {"R": prove_range, "Δl": prove_sensitivity}


def cpu_seconds(call: Callable[[], object]) -> tuple[object, float]:
    """What a call returns, and the time that this process worked at it: others on the machine do not count."""
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def reference() -> None:
    """Elementwise operations on arrays as long as those of a search."""
    values = np.linspace(0.1, 1.0, 4096)
    for _ in range(40_000):
        np.maximum(values * values, values) + np.log(values)


def compiled(likelihood: Likelihood, neighbours: str) -> RowLikelihood:
    inspection = inspect(likelihood.model(), likelihood.domain(neighbours)).rows
    inspection.require()
    (row,), _ = row_likelihoods(inspection, prior_model(inspection))
    return row


def bench(neighbours: str, unit: float) -> bool:
    report = Report(f"One row's log-likelihood, {neighbours}: seconds of work, and ratio to {unit:.2f} s of NumPy")
    slow, wide = [], []
    for name, likelihood in ZOO.items():
        if neighbours not in likelihood.relations:
            report.add(name, "not told apart from columns")
            continue
        row = compiled(likelihood, neighbours)
        for quantity, prove in QUANTITIES.items():
            proof, seconds = cpu_seconds(lambda prove=prove, row=row: prove(row, neighbours))
            report.add(
                f"{name}, {quantity}",
                f"{proof.value:.6g}, gap {proof.gap:.3%}, {proof.boxes} boxes, {seconds:.2f} s, {seconds / unit:.2f}",
                f"<= {SECONDS:g} s, {GAP:.1%}",
                met=seconds <= SECONDS and proof.gap <= GAP,
            )
            slow += [f"{name}, {quantity}"] * (seconds > SECONDS)
            wide += [f"{name}, {quantity}"] * (proof.gap > GAP)
    met = report.finish()
    for what, names in ((f"slower than {SECONDS:g} s", slow), (f"wider than {GAP:.1%}", wide)):
        print(f"  {what}: {'; '.join(names) or 'none'}")
    print(flush=True)
    return met


if __name__ == "__main__":
    reference()
    _, work = cpu_seconds(reference)
    found = [bench(neighbours, work) for neighbours in ("replace", "add_remove")]
    sys.exit(not all(found))
