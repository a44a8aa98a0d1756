"""Loops over compiled functions: cached by what the functions compute, and by their own source."""

import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dp.step_methods.langevin import dynamics, kernels
from pymc_dp.step_methods.row_functions.cached_loop import cache_key, closed_over


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
