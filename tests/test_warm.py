"""The command that compiles kernels fits every kind of model once, and says what that took."""

import pytest

from pymc_dp import warm
from pymc_dp.__main__ import main
from pymc_dp.warm import KINDS, Warmed


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


def test_the_command_says_what_it_compiled_and_how_long_that_took(monkeypatch, capsys):
    monkeypatch.setattr(warm, "warm", lambda: iter([Warmed("counts", 12, 3.21), Warmed("sums", 0, 0.5)]))
    assert main(["warm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == [
        "  counts: 12 functions compiled, 3.2 s",
        "  sums: 0 functions compiled, 0.5 s",
        "12 functions compiled, 4 s in all.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_fits(kind):
    KINDS[kind]()
