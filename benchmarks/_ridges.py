"""Prior scales and ridges of logistic regressions, as `bench_logistic.py choose` chose them on simulated tables."""

from __future__ import annotations

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
ONE = "OPS, one draw"
GAUSSIAN = "objective perturbation (ε, δ), Kifer et al."
PURE = "objective perturbation (ε, 0), Chaudhuri et al."
THEIRS = "objective perturbation (ε, 0), diffprivlib"
CHOSEN: dict[str, dict[str, tuple[float, ...]]] = {
    "Adult": {
        ONE: (1.0, 1.0, 1.0, 1.0, 1.0),
        GAUSSIAN: (100.0, 10.0, 0.3, 0.3, 0.3),
        PURE: (30.0, 10.0, 0.3, 0.3, 0.1),
        THEIRS: (30.0, 10.0, 0.3, 0.3, 0.1),
    },
    "Abalone": {
        ONE: (2.0, 2.0, 2.0, 2.0, 2.0),
        GAUSSIAN: (100.0, 30.0, 3.0, 1.0, 0.3),
        PURE: (30.0, 10.0, 3.0, 0.3, 0.1),
        THEIRS: (30.0, 10.0, 3.0, 0.3, 0.1),
    },
}
"""Standard deviations of the prior and ridges, one per ε."""
