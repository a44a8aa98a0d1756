"""The gate: private values of a model are read here and nowhere else, and only once they are paid for.

What is public about a column (its shape, its dtype, its bounds) is known without it, and so are values of public
columns (`inspection.rows.known_rows`). `release.paid` opens the gate between the charge and the release, and a step
does for as long as a move takes that was paid for; it is shut in every other thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.design import Design
from pymc_dp.inspection.rows import Array, Column, known_rows

_OPEN: ContextVar[bool] = ContextVar("pymc_dp_gate", default=False)
SHUT = "Rows would be read before they are paid for; this is an error of pymc_dp. Nothing was read."


@contextmanager
def opened_gate() -> Iterator[None]:
    """Let private values be read within a block, by this thread: the budget must have been charged."""
    token = _OPEN.set(True)
    try:
        yield
    finally:
        _OPEN.reset(token)


def require_open() -> None:
    """Raise PrivacyError where nothing has been paid for."""
    if not is_open():
        raise PrivacyError(SHUT)


def is_open() -> bool:
    """Whether something has been paid for, and is being read."""
    return _OPEN.get()


def private_values(leaf: Variable) -> Array:
    """Return the array behind a constant or shared variable, without a copy. Reads private data."""
    require_open()
    return _array(leaf)


def _array(leaf: Variable) -> Array:
    if isinstance(leaf, SharedVariable):
        return np.asarray(leaf.get_value(borrow=True))
    assert isinstance(leaf, Constant)
    return np.asarray(leaf.data)


def values_of(column: Column) -> Array:
    """Return the array of a column, without a copy. Reads private data, unless the column is public."""
    return column.of(lambda one: known_rows(one) if one.public else private_values(one.leaf))


def read(column: Column) -> Array:
    """Return a clamped, contiguous copy of a column. Reads private data, unless the column is public."""
    return column.clamped(values_of(column))


def predictors_of(design: Design) -> list[Array]:
    """Return the arrays of a design, without a copy. Reads private data, unless they are public."""
    return [values_of(item) for item in design.predictors]


__all__ = ["SHUT", "is_open", "opened_gate", "predictors_of", "private_values", "read", "require_open", "values_of"]
