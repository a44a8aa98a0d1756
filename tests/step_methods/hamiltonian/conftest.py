from collections.abc import Iterator

import pytensor
import pytest


@pytest.fixture(autouse=True)
def quick_compiles(request: pytest.FixtureRequest) -> Iterator[None]:
    """Few steps per graph: interpreting them takes less than compiling. The slow tests run what a user runs."""
    if "slow" in request.keywords:
        yield
        return
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield
