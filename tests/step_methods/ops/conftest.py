import pytest


@pytest.fixture
def blind(monkeypatch):
    """Whoever reads a column fails."""
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))
