"""Tables for logistic regression whose rows are scaled by public constants, and what else is private about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from pymc_dp.datasets._sources import FOLDER_VARIABLE, local_copy
from pymc_dp.datasets.adult import load_adult

RADIUS = 3.0
"""Rows of standardised columns are divided by this public number, and shortened to norm 1 where still longer."""
LOSS_CURVATURE = 0.25
LEVELS = {
    "marital_status": ("Married-civ-spouse", "Never-married"),
    "occupation": (
        *("Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty"),
        *("Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving"),
        *("Priv-house-serv", "Protective-serv"),
    ),
    "workclass": ("Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov"),
    "sex": ("Male",),
    "race": ("White",),
    "native_country": ("United-States",),
}
"""Columns of Adult beside seven of numbers: thirty in all, the most that one exact draw is accepted for."""
CATEGORIES = (
    *("workclass", "education", "marital_status", "occupation"),
    *("relationship", "race", "sex", "native_country"),
)
ABALONE = {
    "length": (0.5, 0.12),
    "diameter": (0.4, 0.1),
    "height": (0.14, 0.04),
    "whole_weight": (0.8, 0.5),
    "shucked_weight": (0.35, 0.22),
    "viscera_weight": (0.18, 0.11),
    "shell_weight": (0.24, 0.14),
}
"""Round numbers for middle and spread of what is measured: they are taken for public."""


@dataclass(frozen=True)
class Table:
    """Rows of norm 1 at most, a constant among their columns, and answers 0 or 1."""

    x: np.ndarray
    y: np.ndarray

    @classmethod
    def of(cls, columns: list[np.ndarray], y: np.ndarray) -> Table:
        x = np.column_stack([np.ones(len(y)), *columns]).astype(float) / RADIUS
        return cls(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0), y.astype(int))

    def part(self, rows: np.ndarray) -> Table:
        return Table(self.x[rows], self.y[rows])


def adult(*, every_level: bool = False) -> tuple[Table, Table]:
    """Income above 50,000 dollars; train and test file. With `every_level` the 109 columns that studies of it have."""
    tables = [load_adult(split) for split in ("train", "test")]
    levels = LEVELS if not every_level else {name: sorted(tables[0][name].unique()) for name in CATEGORIES}
    train, test = (_adult(table, levels, weights=every_level) for table in tables)
    return train, test


def _adult(table: pd.DataFrame, levels: Mapping[str, Sequence[str]], *, weights: bool) -> Table:
    """Numbers, the second of them the weight in the census or else the square of age, and marks of levels."""
    age = (table["age"].to_numpy() - 40) / 15
    numbers = [
        age,
        (np.log(table["fnlwgt"].to_numpy()) - 12) / 0.6 if weights else age**2 - 1,
        (table["education_num"].to_numpy() - 10) / 3,
        (table["hours_per_week"].to_numpy() - 40) / 12,
        np.log1p(table["capital_gain"].to_numpy()) / 5,
        np.log1p(table["capital_loss"].to_numpy()) / 5,
    ]
    marks = [(table[name] == level).to_numpy() for name, found in levels.items() for level in found]
    return Table.of([*numbers, *marks], (table["income"] == ">50K").to_numpy())


def abalone(seed: int) -> tuple[Table, Table]:
    """More than nine rings; four fifths of the animals at random, and the others."""
    path = local_copy("abalone/abalone.parquet")
    if path is None:
        raise FileNotFoundError(f"abalone/abalone.parquet is in no folder that {FOLDER_VARIABLE} names.")
    found = pd.read_parquet(path)
    numbers = [(found[name].to_numpy() - middle) / spread for name, (middle, spread) in ABALONE.items()]
    table = Table.of([*numbers, (found["sex"] == "I").to_numpy()], (found["rings"] > 9).to_numpy())
    order = np.random.default_rng(seed).permutation(len(found))
    split = len(found) * 4 // 5
    return table.part(order[:split]), table.part(order[split:])


def simulated(n_rows: int, width: int, seed: int) -> tuple[Table, Table]:
    """What a public choice is made on: columns of numbers and of levels, coefficients from a standard normal law."""
    rng = np.random.default_rng(seed)
    total = n_rows + 5000
    numbers = list(rng.normal(size=(width // 2, total)))
    levels = list(rng.random((width - 1 - width // 2, total)) < 0.3)
    table = Table.of([*numbers, *levels], np.zeros(total))
    y = rng.random(total) < special.expit(RADIUS * table.x @ rng.normal(size=width))
    whole = Table(table.x, y.astype(int))
    return whole.part(np.arange(n_rows)), whole.part(np.arange(n_rows, total))


def two_normals(n_rows: int, width: int, seed: int, apart: float = 2.0) -> tuple[Table, Table]:
    """Two classes of rows, normal with unit variances about centres that are `apart`: Wang et al. (2015), fig. 2(a)."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows + 5000) < 0.5
    centres = np.where(y, 0.5, -0.5)[:, None] * apart / np.sqrt(width - 1)
    whole = Table.of(list((centres + rng.normal(size=(len(y), width - 1))).T), y)
    return whole.part(np.arange(n_rows)), whole.part(np.arange(n_rows, len(y)))


def minimum(table: Table, ridge: float, tilt: np.ndarray | None = None) -> np.ndarray:
    """Minimise ``sum of losses + ridge |w|^2 / 2 + <tilt, w>`` by damped Newton steps, to rounding."""
    x, y = table.x, table.y
    tilt = np.zeros(x.shape[1]) if tilt is None else tilt

    def value(w: np.ndarray) -> float:
        eta = x @ w
        return float((np.logaddexp(0, eta) - y * eta).sum() + ridge * (w @ w) / 2 + tilt @ w)

    w = np.zeros(x.shape[1])
    for _ in range(100):
        p = special.expit(x @ w)
        slope = x.T @ (p - y) + ridge * w + tilt
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge * np.eye(len(w)), slope)
        share = next((s for s in 0.5 ** np.arange(30) if value(w - s * step) < value(w)), 0.0)
        w = w - share * step
        if share == 0 or slope @ step < 1e-18:
            break
    return w


def chaudhuri(rng: np.random.Generator, table: Table, epsilon: float, ridge: float) -> np.ndarray:
    """Objective perturbation, (ε, 0): Chaudhuri, Monteleoni, Sarwate (2011), algorithm 2."""
    ratio = LOSS_CURVATURE / ridge
    left = epsilon - np.log1p(2 * ratio + ratio**2)
    if left <= 0:
        ridge, left = LOSS_CURVATURE / np.expm1(epsilon / 4), epsilon / 2
    direction = rng.normal(size=table.x.shape[1])
    tilt = rng.gamma(len(direction), 2 / left) * direction / np.linalg.norm(direction)
    return minimum(table, ridge, tilt)


def kifer(rng: np.random.Generator, table: Table, epsilon: float, delta: float, ridge: float) -> np.ndarray:
    """Objective perturbation, (ε, δ): Kifer, Smith, Thakurta (2012), algorithm 1.

    Their noise is for a row more or less, which adds a gradient of norm 1 at most; one that is replaced moves the sum
    of gradients by 2.
    """
    scale = 2 * np.sqrt(8 * np.log(2 / delta) + 4 * epsilon) / epsilon
    return minimum(table, max(ridge, 2 * LOSS_CURVATURE / epsilon), scale * rng.normal(size=table.x.shape[1]))


def score(draws: np.ndarray, table: Table) -> tuple[float, float]:
    """Accuracy and log loss of probabilities averaged over draws of the coefficients."""
    eta = np.atleast_2d(draws) @ table.x.T
    p = special.expit(eta).mean(axis=0)
    given = np.clip(np.where(table.y == 1, p, 1 - p), 1e-300, 1)
    return float(((p > 0.5) == (table.y == 1)).mean()), float(-np.log(given).mean())


def constant(share: float, table: Table) -> tuple[float, float]:
    """The same where every row has this probability of a 1."""
    ones = table.y.mean()
    return float(ones if share > 0.5 else 1 - ones), float(-ones * np.log(share) - (1 - ones) * np.log1p(-share))


def summary(scores: list[tuple[float, float]]) -> str:
    """Means, and standard deviations over runs."""
    found = np.array(scores)
    mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1) if len(found) > 1 else np.zeros(2)
    return f"{mean[0]:.4f} ± {spread[0]:.4f}   {mean[1]:.4f} ± {spread[1]:.4f}"
