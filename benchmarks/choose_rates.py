"""Print mean losses of DP-SGD by settings, on simulated tables: no budget pays for a choice made on the rows.

``python benchmarks/choose_rates.py``; the least of each line is in `RATES` of `peers/_job.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent / "peers"))

from _job import Job, Rates
from _logistic import score, simulated
from by_hand_jax import fit

SHAPES = {"as Adult": (32561, 30), "as Abalone": (3341, 9)}
SIZES = {"logistic": (2.0, 8.0, 32.0), "linear": (0.1, 0.3, 1.0)}
STEPS, SHARE, EPSILONS, DELTA = (50, 100, 200), 0.1, (0.1, 1.0), 1e-5


def logistic_loss(job: Job, settings: Rates, shape: tuple[int, int]) -> float:
    train, test = simulated(*shape, 0)
    return score(fit(job, train.x, train.y, 0, settings), test)[1]


def linear_loss(job: Job, settings: Rates) -> float:
    rng = np.random.default_rng(3)
    x, w = rng.uniform(-1, 1, (20_000, 5)), rng.normal(0, 0.1, 6)
    u = np.clip(w[0] + x @ w[1:] + 0.2 * rng.normal(size=len(x)), -1, 1)
    found = fit(job, x, u, 0, settings)[0]
    return float(np.mean((found[0] + x @ found[1:] - w[0] - x @ w[1:]) ** 2))


def main(runs: int = 3) -> None:
    for epsilon in EPSILONS:
        for kind, sizes in SIZES.items():
            job = Job(kind=kind, x=np.empty(0), y=np.empty(0), epsilon=epsilon, delta=DELTA)
            for steps in STEPS:
                for size in sizes:
                    settings = Rates(SHARE, steps, size)
                    if kind == "linear":
                        found = {"linear": np.mean([linear_loss(job, settings) for _ in range(runs)])}
                    else:
                        found = {
                            name: np.mean([logistic_loss(job, settings, shape) for _ in range(runs)])
                            for name, shape in SHAPES.items()
                        }
                    print(epsilon, settings, {name: round(float(x), 5) for name, x in found.items()}, flush=True)


if __name__ == "__main__":
    main()
