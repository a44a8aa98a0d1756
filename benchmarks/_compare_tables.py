"""What `compare.py` asks of every peer: tables to learn from, what is known of them, and how answers are scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _logistic import ABALONE, Table, abalone, adult, score
from _peer import Job, rows_of
from _regression import tax_units
from scipy import special

from pymc_dp.datasets._sources import local_copy

DELTA = 1e-5
N_TAX, WIDTH, N_SYNTHETIC, N_AUDIT = 20_000, 24, 5_000, 100
LINEAR_WIDTH, LINEAR_SPREAD = 5, 0.15
N_PERSONS, MOST = 5_000, 5
"""Persons of a simulated table, and rows of one: equally many have 1, 2, ... rows."""
Scores = dict[str, list[float]]


@dataclass(frozen=True)
class Question:
    """A job but for its price, and what its answers are worth: one list of numbers, one per fit, for each measure.

    Where `tables_are_runs`, each of several simulated tables is fitted once; else one table, as often as is asked.
    `rows_of_one` is how many rows the ε of a table is for, where a peer protects rows one by one; `timed`, whether
    it begins without anything compiled.
    """

    kind: str
    x: np.ndarray
    y: np.ndarray
    scores: Callable[[np.ndarray], Scores]
    x_test: np.ndarray
    small: bool = False
    tables_are_runs: bool = False
    rows_of_one: int = 1
    timed: bool = False

    def fits(self, repeats: int) -> int:
        """How many there are in all."""
        return len(self.x) if self.tables_are_runs else repeats

    def job(self, epsilon: float, repeats: int) -> Job:
        runs = 1 if self.tables_are_runs else repeats
        epsilon, delta = of_each_row(epsilon, DELTA, self.rows_of_one)
        return Job(
            kind=self.kind,
            x=self.x,
            y=self.y,
            epsilon=epsilon,
            delta=delta,
            runs=runs,
            small=self.small,
            x_test=self.x_test,
        )


def of_each_row(epsilon: float, delta: float, rows: int) -> tuple[float, float]:
    """What a method must promise for each row so that `rows` of them together have (ε, δ).

    A group loses rows ε and δ (1 + e^ε + ... + e^((rows - 1) ε)) of what one row does: Vadhan (2017), lemma 2.2, before
    its δ is rounded up.
    """
    each = epsilon / rows
    return each, delta * float(np.expm1(each) / np.expm1(epsilon))


def _question(kind: str, x: np.ndarray, y: np.ndarray, scores: Callable[[np.ndarray], Scores], **more) -> Question:
    return Question(kind, x[None], y[None], scores, **{"x_test": np.zeros((0, 0)), **more})


def _classified(name: str, train: Table, test: Table) -> Question:
    def scores(draws: np.ndarray) -> Scores:
        pairs = [score(found, test) for found in draws]
        return {f"{name}: accuracy": [a for a, _ in pairs], f"{name}: log loss": [b for _, b in pairs]}

    return _question("logistic", train.x, train.y, scores, timed=True)


def _bayes() -> Question:
    """The seven numbers of Abalone, scaled to [-1, 1] by three public spreads and clamped."""
    train, test = abalone(0)
    # Rows of `Table` were scaled to norm 1; columns beside one another keep their proportions.
    x, x_test = (np.clip(part.x[:, 1 : 1 + len(ABALONE)] / part.x[:, :1] / 3, -1, 1) for part in (train, test))

    def scores(probability: np.ndarray) -> Scores:
        p = np.clip(probability[:, 0], 1e-12, 1 - 1e-12)
        loss = -np.log(np.where(test.y == 1, p, 1 - p)).mean(axis=1)
        right = ((p > 0.5) == (test.y == 1)).mean(axis=1)
        return {"naive Bayes: accuracy": list(right), "naive Bayes: log loss": list(loss)}

    return _question("naive_bayes", x, train.y, scores, x_test=x_test)


def _earnings() -> Question:
    x, u = tax_units()
    order = np.random.default_rng(0).permutation(len(u))
    rows, others = order[:N_TAX], order[N_TAX : 3 * N_TAX]

    def scores(draws: np.ndarray) -> Scores:
        w = draws.mean(axis=1)
        error = ((w[:, :1] + w[:, 1:] @ x[others].T - u[others]) ** 2).mean(axis=1)
        # Of diffprivlib some fits are so far off that a mean would say nothing of the others.
        return {"Tax units: R²": list(np.maximum(1 - error / u[others].var(), -1.0))}

    return _question("linear", x[rows], u[rows], scores, timed=True)


Simulated = tuple[np.ndarray, np.ndarray, np.ndarray]


def synthetic(seed: int, n: int = N_SYNTHETIC) -> Simulated:
    """Rows of norm 1, a constant among their columns, answers, and coefficients from the prior that all peers have."""
    rng = np.random.default_rng([seed, 5])
    x = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, WIDTH - 1))])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    truth = rng.normal(size=WIDTH)
    return x, (rng.random(n) < special.expit(x @ truth)).astype(int), truth


def straight(seed: int) -> Simulated:
    """A linear regression all of whose columns lie in [-1, 1]; its constant is the first coefficient."""
    rng = np.random.default_rng([seed, 6])
    x, truth = rng.uniform(-1, 1, (N_SYNTHETIC, LINEAR_WIDTH)), rng.normal(0, LINEAR_SPREAD, LINEAR_WIDTH + 1)
    mean = truth[0] + x @ truth[1:]
    # What the bounds cut off is drawn anew, and hardly ever happens.
    y = rng.normal(mean, LINEAR_SPREAD)
    while (far := np.abs(y) > 1).any():
        y[far] = rng.normal(mean[far], LINEAR_SPREAD)
    return x, y, truth


def persons(seed: int) -> Simulated:
    """Tables of persons: an array of rows for each, and answers, -1 where somebody has no more rows."""
    counts = np.random.default_rng([seed, 7]).permutation(np.resize(np.arange(1, MOST + 1), N_PERSONS))
    rows, answers, truth = synthetic(seed, counts.sum())
    held = np.arange(MOST) < counts[:, None]
    x, y = np.zeros((*held.shape, WIDTH)), np.full(held.shape, -1)
    x[held], y[held] = rows, answers
    return x, y, truth


def one_by_one(seed: int) -> Simulated:
    """The rows of `persons`, whosever they are."""
    x, y, truth = persons(seed)
    return (*rows_of(x, y)[:2], truth)


def _covered(name: str, kind: str, draw: Callable[[int], Simulated], n_tables: int, **more) -> Question:
    """Many simulated tables: how far posterior means are from what is true, and how often 90% intervals hold it."""
    x, y, truth = (np.stack(parts) for parts in zip(*(draw(seed) for seed in range(n_tables)), strict=True))

    def scores(draws: np.ndarray) -> Scores:
        error = np.sqrt(((draws.mean(axis=1) - truth) ** 2).mean(axis=1))
        found = {f"{name}: error": list(error)}
        if draws.shape[1] > 1:
            low, high = np.quantile(draws, [0.05, 0.95], axis=1)
            found[f"{name}: coverage"] = list(((low < truth) & (truth < high)).mean(axis=1))
        return found

    return Question(kind, x, y, scores, x_test=np.zeros((0, 0)), tables_are_runs=True, **more)


def neighbours(relation: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of which one has another answer, and the same with one that says the contrary in its place, or without."""
    x = np.tile([1.0, 1.0], (N_AUDIT, 1)) / np.sqrt(2)
    y = np.zeros(N_AUDIT, dtype=int)
    y[0] = 1  # diffprivlib takes no table whose answers are all the same
    other_x, other_y = x.copy(), y.copy()
    other_x[-1], other_y[-1] = [1 / np.sqrt(2), -1 / np.sqrt(2)], 1
    # The row that differs is the odd one: with it, and without it.
    return (other_x, other_y, x[:-1], y[:-1]) if relation == "add or remove" else (x, y, other_x, other_y)


def audited(x: np.ndarray, y: np.ndarray) -> Question:
    return _question("logistic", x, y, lambda draws: {}, small=True)


def questions(n_tables: int) -> tuple[dict[str, Question], list[str]]:
    """Questions by name, and what is missing of the data; most simulated ones have a third of the tables."""
    found, missing = {}, []
    loads = {
        "adult": ("adult/adult_train.parquet", lambda: _classified("Adult", *adult())),
        "abalone": ("abalone/abalone.parquet", lambda: _classified("Abalone", *abalone(0))),
        "bayes": ("abalone/abalone.parquet", _bayes),
        "tax": ("income/cps_taxunits_2012_2014.parquet", _earnings),
    }
    for name, (path, load) in loads.items():
        # Adult can be downloaded; the other tables are local copies or not there.
        if name == "adult" or local_copy(path) is not None:
            found[name] = load()
        else:
            missing.append(path)
    few = max(1, n_tables // 3)
    found["synthetic"] = _covered("Logistic", "logistic", synthetic, n_tables)
    found["straight"] = _covered("Linear", "linear", straight, few)
    found["one row"] = _covered("One row", "logistic", one_by_one, few)
    found["each row"] = _covered("Each row", "logistic", one_by_one, few, rows_of_one=MOST)
    found["persons"] = _covered("Persons", "persons", persons, few)
    return found, missing
