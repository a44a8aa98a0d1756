"""Hooks that a package's conftest takes: graphs that are used a few times are not compiled.

Each wraps one test, its setup and teardown. A fixture that lives as long as a package may end after a later test has
changed the same setting, and then leave it changed for all that follows.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytensor
import pytest


def interpreted(conftest: str, *, slow: bool) -> Callable[..., Generator[None, Any, Any]]:
    """Interpret the graphs of a package's tests; those of its slow tests only if `slow`, else as users run them.

    The hook of every conftest is asked about every test.
    """
    package = Path(conftest).parent

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
        if not item.path.is_relative_to(package) or ("slow" in item.keywords and not slow):
            return (yield)
        with pytensor.config.change_flags(mode="FAST_COMPILE"):
            return (yield)

    return pytest_runtest_protocol
