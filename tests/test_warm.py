"""The command that compiles kernels fits every kind of model once, and says what that took."""

import pytest

from pymc_dp import warm
from pymc_dp.warm import KINDS


@pytest.fixture
def fitted(monkeypatch):
    """Names of the kinds that were fitted, each in place of its fit."""
    names = []
    monkeypatch.setattr(warm, "KINDS", {name: lambda name=name: names.append(name) for name in KINDS})
    return names


def test_every_kind_is_fitted_once(fitted):
    found = list(warm.warm())
    assert fitted == list(KINDS) == [one.kind for one in found]
    assert [one.functions for one in found] == [0] * len(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_fits(kind):
    KINDS[kind]()
