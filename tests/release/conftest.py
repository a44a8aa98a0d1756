import pytest

from pymc_dp.release.paid import forget_releases


@pytest.fixture(autouse=True)
def no_earlier_releases() -> None:
    """Tests release many tables of one schema; what one remembers must not warn in the next."""
    forget_releases()
