"""Loops over compiled functions: cached by what the functions compute, and by their own source."""

import importlib
import sys

import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.step_methods.langevin import dynamics, kernels
from pymc_dp.step_methods.row_functions.cached_loop import cache_key, closed_over, source_hash


@numba.njit(error_model="numpy", inline="always")
def handed_on(function, values):
    return function(values)[0].sum()


@numba.njit(error_model="numpy", inline="always")
def repeated(function, values, times):
    total = 0.0
    for _ in range(times):
        total += handed_on(function, values)
    return total


def compiled(factor):
    x = pt.vector("x")
    return pytensor.function([x], [factor * x], mode="NUMBA").vm.jit_fn


def test_a_loop_is_made_once_and_computes_what_it_says():
    double = compiled(2.0)
    loop = closed_over(repeated, double)
    assert loop is closed_over(repeated, double)
    assert loop(np.arange(4.0), 3) == 36.0


def test_another_process_would_find_it_in_the_cache():
    for hits in (0, 1):
        closed_over.cache_clear()
        loop = closed_over(repeated, compiled(np.pi))
        assert loop(np.arange(3.0), 2) == pytest.approx(6 * np.pi)
        if hits:
            assert sum(loop.stats.cache_hits.values()) == 1 and not loop.stats.cache_misses


def test_the_key_is_that_of_what_is_computed():
    assert cache_key(repeated, compiled(2.0)) == cache_key(repeated, compiled(2.0))
    keys = [cache_key(repeated, compiled(2.0)), cache_key(repeated, compiled(3.0)), cache_key(handed_on, compiled(2.0))]
    assert len(set(keys)) == 3 and None not in keys
    walks = [
        (kernels.walk, compiled(2.0), dynamics.nothing_before, after) for after in (dynamics.langevin, kernels.walk)
    ]
    assert cache_key(*walks[0]) != cache_key(*walks[1])


def test_without_pytensors_cache_there_is_none():
    function = compiled(2.0)
    with pytensor.config.change_flags(numba__cache=False):
        assert cache_key(repeated, function) is None


HELPER = """
import numba

@numba.njit
def helper(x):
    return x + {number}
"""
LOOP = """
import numba
from made_up.helpers import helper
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
    """Write a package of a loop and of a helper in another file, and hash the loop."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "made_up").mkdir()

    def write(number=1, numbers="", constants="SIZE = 3"):
        files = {"__init__": "", "helpers": HELPER.format(number=number), "loops": LOOP.format(numbers=numbers)}
        for name, text in {**files, "constants": constants}.items():
            (tmp_path / "made_up" / f"{name}.py").write_text(text)
        for name in [name for name in sys.modules if name.startswith("made_up")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        importlib.invalidate_caches()
        return importlib.import_module("made_up.loops")

    return write


def test_a_change_of_the_source_changes_the_key(written):
    keys = [
        source_hash(written(**changed).loop)
        for changed in (
            {},
            {"number": 2},
            {"numbers": "# another line"},
            {"numbers": "from made_up.constants import SIZE"},
            {"numbers": "from made_up.constants import SIZE", "constants": "SIZE = 4"},
        )
    ]
    assert len(set(keys)) == len(keys) and None not in keys
    assert source_hash(written().loop) == keys[0]


def test_a_function_with_numbers_that_are_in_no_source_has_no_key(written):
    module = written()
    assert source_hash(module.with_a_number_of_its_own(1)) is None
    assert cache_key(module.loop, module.with_a_number_of_its_own(1)) is None
    scope = {}
    exec("def unknown(x): return x", {"__name__": "nowhere"}, scope)
    assert source_hash(numba.njit(scope["unknown"])) is None


@pytest.mark.parametrize("loop", [kernels.walk, kernels.add_clipped])
def test_the_hash_of_a_loop_covers_the_files_of_its_helpers(loop, monkeypatch):
    from pymc_dp.step_methods.row_functions import clipped_sums

    before = source_hash(loop)
    monkeypatch.setattr(clipped_sums, "SOME", 1)
    assert source_hash(loop) not in (None, before)
