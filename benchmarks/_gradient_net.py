"""A small neural net by ``dp.Gradients(momentum_steps=...)``: how well the posterior predicts rows it has not seen.

Ten tanh units of three inputs, 41 weights, 20,000 rows simulated from such a net: its own predictions are right for
.835 of the rows. One row is replaced, δ = 1e-5. ``python benchmarks/_gradient_net.py 5`` takes five seeds of the noise
and of the rows.
"""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special

import pymc_dp as dp

INPUTS, UNITS, ROWS, DELTA = 3, 10, 20_000, 1e-5
SPREAD = (3.0, 1.5)
"""Prior standard deviations of the weights before and after the units."""
NET = 128
"""Seed of the weights that rows are simulated with."""
MOMENTUM_STEPS = 150
Array = np.ndarray


def weights_of(seed: int) -> dict[str, Array]:
    """Draw a net from the prior."""
    rng = np.random.default_rng(seed)
    first, second = SPREAD
    return {
        "w": first * rng.normal(size=(INPUTS, UNITS)),
        "v": second * rng.normal(size=UNITS),
        "c": second * rng.normal(),
    }


def logits(weights: dict[str, Array], x: Array) -> Array:
    """Evaluate a net, or each of many along a first axis."""
    hidden = np.tanh(x @ weights["w"])
    return np.squeeze(hidden @ np.asarray(weights["v"])[..., None], -1) + np.asarray(weights["c"])[..., None]


def table(weights: dict[str, Array], rng: np.random.Generator, n_rows: int = ROWS) -> tuple[Array, Array]:
    """Draw inputs evenly from their bounds, and answers."""
    x = rng.uniform(-1, 1, size=(n_rows, INPUTS))
    return x, (rng.random(n_rows) < special.expit(logits(weights, x))).astype(int)


def model_of(x: Array, y: Array) -> pm.Model:
    """Write the net as a model."""
    first, second = SPREAD
    with pm.Model() as model:
        w, v = pm.Normal("w", 0, first, shape=(INPUTS, UNITS)), pm.Normal("v", 0, second, shape=UNITS)
        c = pm.Normal("c", 0, second)
        pm.Bernoulli("y", logit_p=pt.tanh(pm.Data("x", x) @ w) @ v + c, observed=y)
    return model


def score(shares: Array, y: Array) -> tuple[float, float]:
    """Accuracy and log loss of predicted probabilities of 1."""
    return float(((shares > 0.5) == y).mean()), float(-np.mean(np.log(np.where(y == 1, shares, 1 - shares))))


def bayes(net: int = NET) -> tuple[float, float]:
    """Score of the net itself."""
    truth = weights_of(net)
    x, y = table(truth, np.random.default_rng([net, 0]), 100_000)
    return score(special.expit(logits(truth, x)), y)


def predicted(draws: dict[str, Array], x: Array) -> Array:
    """Mean probability of 1 under draws of the weights."""
    return np.mean(
        [special.expit(logits({k: one[i] for k, one in draws.items()}, x)) for i in range(len(draws["c"]))], 0
    )


def fitted(
    seed: int, epsilon: float = 1.0, net: int = NET, momentum_steps: int = MOMENTUM_STEPS
) -> tuple[tuple[float, float], Any]:
    """Release gradients of a table, sample, and predict another table."""
    truth, rng = weights_of(net), np.random.default_rng([net, 1, seed])
    x, y = table(truth, rng)
    others, answers = table(truth, rng)
    with model_of(x, y):
        found = dp.sample(
            300, tune=500, chains=1, cores=1, random_seed=seed, progressbar=False,
            epsilon=epsilon, delta=DELTA, domain=dp.Domain(bounds={"x": (-1, 1)}),
            statistics=dp.Gradients(momentum_steps=momentum_steps), ledger=dp.Ledger(epsilon, DELTA),
        )  # fmt: skip
    draws = {name: found["posterior"][name].values[0] for name in ("w", "v", "c")}
    return score(predicted(draws, others), answers), found


def main(seeds: int) -> None:
    """Print the score of each seed, and their mean."""
    print("the net itself: {:.4f}, log loss {:.4f}".format(*bayes()), flush=True)
    for steps in (MOMENTUM_STEPS, 0):
        scores = []
        for seed in range(seeds):
            own, found = fitted(seed, momentum_steps=steps)
            scores.append(own)
            print(steps, seed, np.round(own, 4), found.dp.approximations[-2:], flush=True)
        print(f"momentum_steps={steps}: {np.mean(scores, axis=0).round(4)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
