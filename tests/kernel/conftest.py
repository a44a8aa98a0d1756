import numpy as np
import pytest

from pymc_dp.kernel import draw, table


@pytest.fixture
def same_keys(monkeypatch):
    """The same secret keys for two tables of persons: the guarantee is for each value of them."""
    monkeypatch.setattr(table, "secure_keys", lambda count: np.arange(3, 3 + count, dtype=np.uint64) << np.uint64(50))


@pytest.fixture
def weights(monkeypatch):
    """Whole weights of every choice that is made."""
    caught = []

    def one_of(given):
        caught.append(given)
        return np.zeros(len(given), dtype=np.int64)

    monkeypatch.setattr(draw, "one_of", one_of)
    return caught
