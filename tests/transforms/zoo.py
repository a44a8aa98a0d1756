"""One small table and, on it, every likelihood under every way of indexing: one compile serves many tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases

N_ROWS = 60
BOUNDS = {
    **dict.fromkeys(("count", "count_public", "count_private", "count_mixed", "count_pair", "count_computed"), (2, 9)),
    **{f"{kind}{group}": (-1.0, 5.0) for kind in ("mean", "scale", "both") for group in ("", "_private", "_public")},
    "rating": (1, 5),
}
COORDS = {"two": range(2), "three": range(3), "four": range(4), "five": range(1, 6)}


def table(rng: np.random.Generator, n: int = N_ROWS) -> dict[str, np.ndarray]:
    """Columns inside their public ranges; every level of every index occurs."""
    return {
        "a": np.resize(np.arange(3), n),
        "b": rng.integers(0, 2, n),
        "region": rng.permutation(np.resize(np.arange(2), n)),
        "rating": rng.permutation(np.resize(np.arange(1, 6), n)),
        "binary": rng.integers(0, 2, n),
        "level": rng.integers(0, 4, n),
        "count": rng.integers(2, 10, n),
        "value": rng.uniform(-1, 5, n),
    }


def indexed_model(columns: dict[str, np.ndarray]) -> pm.Model:
    """All four likelihoods: not grouped, by private and public columns, by two, by a computed one."""
    with pm.Model(coords=COORDS) as model:
        a, b, region, rating = (pm.Data(name, columns[name]) for name in ("a", "b", "region", "rating"))
        places = {
            "": ((), ()),
            "_private": (("three",), (a,)),
            "_public": (("two",), (region,)),
            "_mixed": (("three", "two"), (a, region)),
            "_pair": (("three", "two"), (a, b)),
            "_computed": (("five",), (rating - 1,)),
        }
        for suffix, (dims, index) in places.items():
            p = pm.Beta(f"p{suffix}", 2, 3, dims=dims)
            q = pm.Dirichlet(f"q{suffix}", np.ones(4), dims=(*dims, "four"))
            rate = pm.Gamma(f"rate{suffix}", 2, 1, dims=dims)
            pm.Bernoulli(f"binary{suffix}", p[index] if index else p, observed=columns["binary"])
            pm.Categorical(f"level{suffix}", q[index] if index else q, observed=columns["level"])
            pm.Poisson(f"count{suffix}", rate[index] if index else rate, observed=columns["count"])
        for suffix in ("", "_private", "_public"):
            dims, index = places[suffix]
            mu, sigma = pm.Normal(f"mu{suffix}", dims=dims), pm.HalfNormal(f"sigma{suffix}", dims=dims)
            mu, sigma = (mu[index], sigma[index]) if index else (mu, sigma)
            pm.Normal(f"mean{suffix}", mu, 1.5, observed=columns["value"])
            pm.Normal(f"scale{suffix}", 0.7, sigma, observed=columns["value"])
            pm.Normal(f"both{suffix}", mu, sigma, observed=columns["value"])
    return model


def points(model: pm.Model, rng: np.random.Generator, count: int = 4) -> list[dict[str, np.ndarray]]:
    """Scattered values of the unconstrained parameters."""
    start = model.initial_point(random_seed=1)
    return [{k: np.asarray(v + rng.normal(0, 0.7, np.shape(v))) for k, v in start.items()} for _ in range(count)]


def log_likelihoods(
    model: pm.Model, at: list[dict[str, np.ndarray]], names: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    """Log density of observed variables (all, or those named), summed over rows or cells, at each point."""
    names = names or tuple(rv.name for rv in model.observed_RVs)
    terms = [term.sum() for term in model.logp(vars=[model[name] for name in names], sum=False)]
    evaluate = model.compile_fn(terms, inputs=model.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")
    return dict(zip(names, np.array([evaluate(point) for point in at]).T, strict=True))


def privatize(model: pm.Model, epsilon: float = 1.0, **arguments: object) -> pm.Model:
    """`dp.privatize`, with the memory of earlier releases cleared: tests use many tables of one schema."""
    forget_releases()
    return dp.privatize(model, epsilon=epsilon, **arguments)


@contextmanager
def no_reading(monkeypatch) -> Iterator[None]:
    """Inside, reading the rows is an error."""

    def refuse(*_: object) -> None:
        raise AssertionError("rows were read")

    with monkeypatch.context() as patch:
        patch.setattr("pymc_dp.rows.gate._array", refuse)
        yield
