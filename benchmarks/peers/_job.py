"""What a peer is asked for and what it answers, in plain arrays: peers may live in environments without pymc_dp.

This file and every peer that has an environment of its own import nothing of the project.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Fit = Callable[["Job", np.ndarray, np.ndarray, int], np.ndarray]
"""``fit(job, x, y, seed)``: (draws, d) coefficients, or (1, n_test) probabilities of naive Bayes."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Tables to learn from, and at what price.

    Attributes
    ----------
    kind : {"logistic", "persons", "linear", "naive_bayes"}
        Logistic rows have norm 1 at most, a constant among their columns; others lie in [-1, 1], without a constant.
        ``"persons"`` is a logistic regression whose ε is for a person with several rows.
    x, y : (tables, n, d) and (tables, n) arrays
        Answers are 0 or 1, of linear regression in [-1, 1]. Of persons, (tables, n, m, d) and (tables, n, m): those
        with fewer than m rows have rows of zeros, whose answers are -1.
    x_test : (n_test, d) array
        Rows to predict, for naive Bayes only.
    ridge : float, optional
        Of penalised minima; without it the peer's own choice.
    epsilon, delta : float
    runs : int
        How often each table is fitted, with fresh noise.
    small : bool
        Whether it is one of the little tables that are fitted hundreds of times, so that few steps must do.
    """

    kind: str
    x: np.ndarray
    y: np.ndarray
    epsilon: float
    delta: float
    runs: int = 1
    small: bool = False
    x_test: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    ridge: float | None = None

    def save(self, path: Path) -> None:
        plain = {"kind": self.kind, "epsilon": self.epsilon, "delta": self.delta, "runs": self.runs}
        text = json.dumps({**plain, "small": self.small, "ridge": self.ridge})
        np.savez(path, x=self.x, y=self.y, x_test=self.x_test, plain=np.array(text))

    @classmethod
    def load(cls, path: Path) -> Job:
        with np.load(path) as found:
            return cls(x=found["x"], y=found["y"], x_test=found["x_test"], **json.loads(str(found["plain"])))


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One line of the table.

    Attributes
    ----------
    name : str
    neighbours : str
        What ε is for: one row replaced, or one more or less.
    delta : bool
        Whether the guarantee needs a δ > 0.
    fits : mapping of kind to fit
    packages : tuple of str
        Distributions whose versions belong into the table.
    intervals : bool
        Whether draws are meant to show how uncertain coefficients are.
    audited : mapping of kind to fit
        What is run for the audit where that is not the fit: the release that all else follows from.
    """

    name: str
    neighbours: str
    fits: Mapping[str, Fit]
    packages: tuple[str, ...] = ()
    delta: bool = True
    intervals: bool = False
    audited: Mapping[str, Fit] = field(default_factory=dict)


@dataclass(frozen=True)
class Rates:
    """Public settings of stochastic gradients: rows of a batch over all rows, steps, and step size."""

    share: float
    steps: int
    size: float


RATES = {
    ("logistic", True): {0.1: Rates(0.1, 200, 8.0), 1.0: Rates(0.1, 200, 32.0)},
    ("logistic", False): {0.1: Rates(0.1, 200, 2.0), 1.0: Rates(0.1, 200, 8.0)},
    ("linear", True): {0.1: Rates(0.1, 100, 0.3), 1.0: Rates(0.1, 200, 0.3)},
}
"""By kind, whether there are more rows than `MANY`, and ε; DP-SGD by hand and by Opacus use the same.

`choose_rates.py` prints the scores they came from.
"""
MANY = 10_000
SMALL = Rates(0.25, 12, 2.0)


def rates(job: Job) -> Rates:
    """The settings for a job; between those that were chosen, of the nearest ε."""
    kind = "logistic" if job.kind == "persons" else job.kind
    held = RATES[kind, kind == "linear" or job.x.shape[1] > MANY]
    return SMALL if job.small else held[min(held, key=lambda one: abs(np.log(one / job.epsilon)))]


def rows_of(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their answers, and whose row each is, of one table of persons."""
    held = y >= 0
    return x[held], y[held], np.nonzero(held)[0]


def with_constant(job: Job, x: np.ndarray) -> np.ndarray:
    """Rows with a constant before the columns, where they have none."""
    return np.column_stack([np.ones(len(x)), x]) if job.kind == "linear" else x
