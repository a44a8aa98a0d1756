"""Utilities by name: how good a response is, where the truth is what a draw says about a query."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array


def _squared_error(asked: Array, response: Array) -> Array:
    return -_summed((_numbers(asked) - _shaped(asked, _numbers(response))) ** 2)


def _absolute_error(asked: Array, response: Array) -> Array:
    return -_summed(np.abs(_numbers(asked) - _shaped(asked, _numbers(response))))


def _zero_one(asked: Array, response: Array) -> Array:
    equal = asked == _shaped(asked, response)
    return equal.reshape(len(asked), -1).all(axis=1).astype(np.float64)


def _log_score(asked: Array, response: Array) -> Array:
    chances, forecast = _numbers(asked), _shaped(asked, _numbers(response))
    if chances.ndim == 1:
        chances, forecast = np.stack([chances, 1 - chances], axis=1), np.array([forecast, 1 - forecast])
    for what, held in (("query", chances), ("response", forecast)):
        if (held < 0).any() or (abs(held.sum(axis=-1) - 1) > 1e-6).any():
            raise ArgumentError(f"log_score needs probabilities, one or a vector that adds up to 1; the {what} is not.")
    with np.errstate(divide="ignore"):
        logs = np.log(forecast)
    return _summed(chances * np.where(chances > 0, logs, 0.0))


def _numbers(array: Array) -> Array:
    return np.asarray(array, dtype=np.float64)


def _shaped(asked: Array, response: Array) -> Array:
    if response.shape != asked.shape[1:]:
        raise ValueError
    return response


def _summed(array: Array) -> Array:
    return array.reshape(len(array), -1).sum(axis=1)


UTILITIES: dict[str, Callable[[Array, Array], Array]] = {
    "squared_error": _squared_error,
    "absolute_error": _absolute_error,
    "zero_one": _zero_one,
    "log_score": _log_score,
}
"""Of (n, ...) values of a query and a response: (n,) utilities."""

__all__ = ["UTILITIES"]
