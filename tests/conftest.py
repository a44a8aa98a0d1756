"""Shared by all tests; nothing here compiles."""

import zlib
from collections.abc import Iterator

import numpy as np
import pytensor
import pytest


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Derived from the name of the test file: the same on every run and machine, another in every file."""
    return zlib.crc32(request.path.name.encode())


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True, scope="session")
def no_compiler_of_c() -> Iterator[None]:
    """PyTensor folds constants by C, a compilation each; what runs often is compiled by Numba."""
    with pytensor.config.change_flags(cxx=""):
        yield


@pytest.fixture(autouse=True, scope="session")
def no_progress_bars() -> Iterator[None]:
    """PyMC draws its bars with rich, for which each bar is a thread and a screenful of log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rich.progress.Progress.start", lambda self: None)
        patch.setattr("rich.progress.Progress.stop", lambda self: None)
        yield
