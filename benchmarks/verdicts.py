"""``python -m benchmarks.verdicts``: does the verdict say so where an interval is far off, and only there?

Releases of made-up tables, half of them of the model and half not, held against the posterior of the same clamped rows
without privacy. Resumable: what `verdicts.jsonl` holds is left out.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real.measure import Score, released, said, score
from benchmarks.real.models import Column, Response, Rows
from benchmarks.real.posterior import by_mode
from benchmarks.real.table import Table

STORED = Path(__file__).with_name("verdicts.jsonl")
EPSILONS, SIZES, TABLES = (0.3, 1.0, 3.0), (1000, 3000, 10_000), 5
"""Of each kind, likelihood, ε and number of rows there are so many tables."""
COLUMNS = (Column("even", -2, 2), Column("normal", -4, 4), Column("skewed", 0, 20), Column("half"), Column("rare"))
RESPONSES = {
    "logistic": Response("y", "logistic"),
    "poisson": Response("y", "poisson", (0, 60)),
    "negative binomial": Response("y", "negative binomial", (0, 100)),
    "normal": Response("y", "normal", (-12, 12)),
    "student t": Response("y", "student t", (-12, 12)),
    "ordered": Response("y", "ordered", levels=4),
    "gamma": Response("y", "gamma", (0.01, 40)),
}
KINDS = ("of the model", "not of the model")
FAR, NEAR = 3.0, 2.0
"""Standard deviations of the noise beyond which an estimate is far off, and up to which it is not."""


def columns_of(rng: np.random.Generator, n: int) -> Rows:
    """Make up the covariates."""
    return {
        "even": rng.uniform(-2, 2, n),
        "normal": rng.normal(size=n),
        "skewed": np.minimum(rng.lognormal(-0.5, 0.8, n), 20),
        "half": (rng.random(n) < 0.5).astype(float),
        "rare": (rng.random(n) < 0.05).astype(float),
    }


def drawn(likelihood: str, kind: str, rng: np.random.Generator, n: int) -> Rows:
    """Make up a table: of the model, or of one with other tails, more spread or a bent predictor."""
    rows, right = columns_of(rng, n), kind == KINDS[0]
    slopes = rng.normal(0, 0.3, len(COLUMNS)) * [1, 1, 0.3, 1, 1]
    eta = rng.normal(0, 0.5) + sum(slope * rows[one.name] for slope, one in zip(slopes, COLUMNS, strict=True))
    y = (_of_the_model if right else _not_of_the_model)(likelihood, eta, rows, rng)
    return rows | {"y": y}


def _of_the_model(likelihood: str, eta: np.ndarray, rows: Rows, rng: np.random.Generator) -> np.ndarray:
    n = len(eta)
    if likelihood == "logistic":
        return rng.random(n) < 1 / (1 + np.exp(-eta))
    if likelihood == "poisson":
        return rng.poisson(np.exp(eta))
    if likelihood == "negative binomial":
        return rng.poisson(np.exp(eta) * rng.gamma(1.5, 1 / 1.5, n))
    if likelihood == "normal":
        return eta + rng.normal(0, 0.8, n)
    if likelihood == "student t":
        return eta + 0.6 * rng.standard_t(4, n)
    if likelihood == "ordered":
        return np.searchsorted([-1.0, 0.2, 1.5], eta + rng.logistic(size=n))
    return rng.gamma(2.0, np.exp(eta) / 2.0)


def _not_of_the_model(likelihood: str, eta: np.ndarray, rows: Rows, rng: np.random.Generator) -> np.ndarray:
    n = len(eta)
    bent = np.clip(eta + 0.4 * (rows["normal"] ** 2 - 1), -4, 4)
    if likelihood == "logistic":
        return rng.random(n) < 1 / (1 + np.exp(-bent - rng.normal(0, 1, n)))
    if likelihood == "poisson":
        return rng.poisson(np.exp(eta) * rng.gamma(0.7, 1 / 0.7, n))
    if likelihood == "negative binomial":
        return rng.poisson(np.exp(bent) * rng.gamma(1.5, 1 / 1.5, n)) * (rng.random(n) > 0.3)
    if likelihood == "normal":
        return eta + 0.4 * np.exp(0.3 * rows["normal"]) * rng.standard_t(3, n)
    if likelihood == "student t":
        return bent + 0.6 * (rng.exponential(size=n) - 1)
    if likelihood == "ordered":
        return np.searchsorted([-1.0, 0.2, 1.5], bent + rng.logistic(size=n) * np.exp(0.5 * rows["half"]))
    return np.exp(eta + rng.normal(-0.5, 1, n))


def one(kind: str, likelihood: str, epsilon: float, n: int, place: int) -> dict[str, Any]:
    """Release a table, and hold it against the posterior without privacy."""
    rng = np.random.default_rng(zlib.crc32(f"{kind} {likelihood} {n} {place}".encode()))
    rows = drawn(likelihood, kind, rng, n)
    table = Table(likelihood, "made up", lambda: rows, COLUMNS, RESPONSES[likelihood])
    model = table.model()
    found = released(table, model, epsilon)
    own = score(found | {"warm": True}, by_mode(model))
    silent, alarm = marks(own)
    return {
        "kind": kind,
        "likelihood": likelihood,
        "epsilon": epsilon,
        "rows": n,
        "place": place,
        "z": [round(float(value), 3) for value in own.z],
        "width": [round(float(value), 3) for value in own.width],
        "verdict": own.verdict,
        "silent": silent,
        "alarm": alarm,
    }


def load() -> list[dict[str, Any]]:
    """Return what is stored."""
    return [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()] if STORED.exists() else []


def cells() -> Iterator[tuple[str, str, float, int, int]]:
    """Yield every table and ε, those of all kinds in turn."""
    for place in range(TABLES):
        for likelihood in RESPONSES:
            for n in SIZES:
                for epsilon in EPSILONS:
                    for kind in KINDS:
                        yield kind, likelihood, epsilon, n, place


def marks(own: Score) -> tuple[bool, bool]:
    """Say whether a release failed without a word, and whether it was doubted for nothing."""
    worst = float(np.abs(own.z).max(initial=0.0))
    return worst > FAR and not said(own), said(own) and not own.failed and worst <= NEAR


def says(held: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the docs' table."""
    yield "| tables | releases | rms z | above 3 | failed without a word | doubted for nothing | median width |"
    yield "|---|---|---|---|---|---|---|"
    for kind in KINDS:
        own = [found for found in held if found["kind"] == kind]
        if own:
            yield line(kind, own)


def line(kind: str, held: list[dict[str, Any]]) -> str:
    """Return one line of it."""
    silent, alarm = np.mean([(found["silent"], found["alarm"]) for found in held], axis=0)
    z, width = (np.concatenate([found[key] for found in held]) for key in ("z", "width"))
    return (
        f"| {kind} | {len(held)} | {np.sqrt(np.mean(z**2)):.2f} | {(np.abs(z) > FAR).mean():.1%} | {silent:.1%} | "
        f"{alarm:.1%} | {np.median(width):.2f} |"
    )


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__)
    parser.add_argument("--most", type=int, default=None, help="releases to make now")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    held = {(found["kind"], found["likelihood"], found["epsilon"], found["rows"], found["place"]) for found in load()}
    for cell in [cell for cell in cells() if cell not in held][: chosen.most]:
        with STORED.open("a", encoding="utf-8") as file:
            file.write(json.dumps(one(*cell), ensure_ascii=False) + "\n")
    for text in says(load()):
        print(text)


if __name__ == "__main__":
    main()
