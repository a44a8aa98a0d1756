"""Shared by tests of private models."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases


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
