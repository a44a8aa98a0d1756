"""Keys of compiled functions: they change with all that a function may run, and with the names of its files."""

import importlib
import sys

import pytest

from pymc_dp.transforms.source_hash import source_hash

HELPER = """
import numba

@numba.njit
def helper(x):
    return x + {number}
"""
LOOP = """
import numba
from made_up.{helpers} import helper
{numbers}

@numba.njit
def loop(x):
    return helper(x)

def with_a_number_of_its_own(number):
    @numba.njit
    def inner(x):
        return x + number
    return inner
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a package of a loop and of a helper in another file, and import it."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "made_up").mkdir()

    def write(number=1, numbers="", constants="SIZE = 3", helpers="helpers"):
        loops = LOOP.format(numbers=numbers, helpers="helpers").replace("helpers", helpers)
        files = {"__init__": "", helpers: HELPER.format(number=number), "loops": loops, "constants": constants}
        for name, text in files.items():
            (tmp_path / "made_up" / f"{name}.py").write_text(text)
        for name in [name for name in sys.modules if name.startswith("made_up")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        importlib.invalidate_caches()
        return importlib.import_module("made_up.loops")

    return write


def test_a_change_of_the_source_changes_the_hash(written):
    hashes = [
        source_hash(written(**changed).loop)
        for changed in (
            {},
            {"number": 2},
            {"numbers": "# another line"},
            {"numbers": "from made_up.constants import SIZE"},
            {"numbers": "from made_up.constants import SIZE", "constants": "SIZE = 4"},
        )
    ]
    assert len(set(hashes)) == len(hashes) and None not in hashes
    assert source_hash(written().loop) == hashes[0]
