"""A small table, what is public about it, and models of it."""

import bambi
import numpy as np
import pandas as pd

import pymc_dp as dp
from pymc_dp.inspection.given import from_bambi

BOUNDS = {"y": (-3, 3), "x": (0, 1), "w": (0.5, 10), "c": (0, 30), "k": (0, 20), "m": (0, 20), "n": (1, 20)}
NORMAL = bambi.Prior("Normal", mu=0.3, sigma=1.7)
GROUPS = bambi.Prior("Normal", mu=0, sigma=bambi.Prior("HalfNormal", sigma=1.2))
GIVEN = {"common": NORMAL, "group_specific": GROUPS}


def labels(values, levels):
    return pd.Categorical(values, categories=list(levels), ordered=True)


def table(seed, n=40):
    rng = np.random.default_rng(seed)
    trials = rng.integers(1, 21, n)
    return pd.DataFrame(
        {
            "y": rng.uniform(-2, 2, n),
            "x": rng.uniform(size=n),
            "w": rng.uniform(1, 9, n),
            "b": rng.integers(0, 2, n),
            "c": rng.poisson(3, n),
            "g": labels(rng.permutation(np.resize(list("abc"), n)), "bca"),
            "h": labels(rng.permutation(np.resize(list("uv"), n)), "vu"),
            "n": trials,
            "k": rng.binomial(trials, 0.4),
            "m": rng.binomial(9, 0.4, n),
            "status": labels(rng.permutation(np.resize(["none", "right", "left"], n)), ["none", "left", "right"]),
        }
    )


def bounded(formula, family="gaussian", data=None, *, bounds=BOUNDS, public=(), **options):
    """Return bambi's model of a table, and the PyMC model and domain that are written from it."""
    data = table(0) if data is None else data
    source = bambi.Model(formula, data, family=family, **options)
    named = {name: pair for name, pair in bounds.items() if name in data}
    return source, *from_bambi(source, dp.Domain(bounds=named, public=public))
