"""What the noise costs in accuracy: p = 0.1, ε = 0.1, against the published numbers and the theory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from _measure import Report

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.calibration.test_utility import EPSILON, N_SEEDS, PUBLISHED, P, noise_aware_draws, releases


def within(report: Report, what: str, values: np.ndarray, expected: float, rounding: float = 5e-5) -> None:
    error = values.std(ddof=1) / np.sqrt(len(values))
    met = abs(values.mean() - expected) < 3 * error + rounding
    report.add(what, f"{values.mean():.5f} ± {error:.5f}", f"{expected:.4f} ± 3 s.e.", met=bool(met))


def main() -> bool:
    rng = np.random.default_rng(1)
    errors = Report(f"Mean |error| of one posterior draw, p = {P}, ε = {EPSILON}, {N_SEEDS} tables each")
    ratios = Report("Mean squared errors over p (1 - p) / n")
    for n_rows in (*PUBLISHED, 1_000_000):
        ones, _ = releases(n_rows, "library")
        ours = noise_aware_draws(n_rows, 200, rng)
        if n_rows in PUBLISHED:
            papers, not_private = PUBLISHED[n_rows]
            _, pair = releases(n_rows, "papers")
            form = np.abs(rng.beta(1 + pair[:, 1], 1 + pair[:, 0]) - P)
            within(errors, f"n = {n_rows:>6}: the papers' pair, plug-in", form, papers)
            within(
                errors, f"n = {n_rows:>6}: not private", np.abs(rng.beta(1 + ones, 1 + n_rows - ones) - P), not_private
            )
            error = np.abs(ours - P).mean(axis=1)
            errors.add(
                f"n = {n_rows:>6}: one count, noise-aware (the default)",
                f"{error.mean():.5f} ± {error.std() / np.sqrt(N_SEEDS):.5f}",
                f"< {papers}" if papers > 1.1 * not_private else "",
                met=bool(error.mean() < papers) if papers > 1.1 * not_private else None,
            )
        best = P * (1 - P) / n_rows
        for what, squares, limit in (
            ("one draw", ((ours - P) ** 2).mean(axis=1) / best, 2),
            ("posterior mean", (ours.mean(axis=1) - P) ** 2 / best, 1),
        ):
            error = squares.std(ddof=1) / np.sqrt(N_SEEDS)
            last = n_rows == 1_000_000
            ratios.add(
                f"n = {n_rows:>7}: {what}",
                f"{squares.mean():.3f} ± {error:.3f}",
                f"-> {limit}",
                met=bool(abs(squares.mean() - limit) < 3 * error) if last else None,
            )
    return all([errors.finish(), ratios.finish()])


if __name__ == "__main__":
    sys.exit(not main())
