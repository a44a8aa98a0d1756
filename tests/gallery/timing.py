"""CPU seconds of a release, beside those of compiling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

from numba.core.dispatcher import Dispatcher
from pytensor.compile.maker import FunctionMaker

import pymc_dp as dp
from tests.gallery.entry import DELTA, Entry

COMPILING = ((FunctionMaker, "__init__"), (FunctionMaker, "create"), (Dispatcher, "_compile_for_args"))
"""What PyTensor and Numba do once for each function."""


def release_seconds(entry: Entry, epsilon: float = 1.0) -> float:
    """Return the CPU seconds of a ``dp.privatize`` in this process, less those of compiling.

    A release at another budget, of the model built once before, has everything imported. What is kept of one model, or
    of one budget, helps none of the second.
    """
    for budget in (1.5 * epsilon, epsilon):
        model = entry.model()
        domain = entry.domain(model)
        with compiling() as spent:
            begun = time.process_time()
            dp.privatize(model, epsilon=budget, delta=DELTA, domain=domain, progressbar=False)
            whole = time.process_time() - begun
    return whole - sum(spent)


@contextmanager
def compiling() -> Iterator[list[float]]:
    """Collect the CPU seconds of each time that something is compiled; what that compiles itself is part of it."""
    spent, within = list[float](), list[bool]()

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if within:
                return call(*args, **kwargs)
            within.append(True)
            begun = time.process_time()
            try:
                return call(*args, **kwargs)
            finally:
                within.clear()
                spent.append(time.process_time() - begun)

        return wrapper

    with ExitStack() as stack:
        for owner, name in COMPILING:
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name))))
        yield spent
