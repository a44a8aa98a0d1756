"""What takes long to compile is said once, where bars are shown, and before it has ended."""

import numba
import numpy as np
import pytest

from pymc_dp import _compiling
from pymc_dp._compiling import WORDS, says_when_it_compiles


def fresh():
    """A function that numba has not seen."""
    return numba.njit(lambda x: x + 1)


@says_when_it_compiles
def work(*, progressbar=True):
    """Compile something."""
    return fresh()(1)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, True),
        ({"progressbar": "split"}, True),
        ({"progressbar": False}, False),
        ({"progressbar": np.ones(2)}, False),
    ],
)
def test_a_function_says_it_where_its_bar_is_shown(monkeypatch, capsys, options, shown):
    monkeypatch.setattr(_compiling, "LONG", 0.0)
    assert work(**options) == 2
    assert (WORDS in " ".join(capsys.readouterr().out.split())) == shown
    assert work.__doc__ == "Compile something."
