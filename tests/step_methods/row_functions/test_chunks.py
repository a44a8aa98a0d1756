"""Rows are evaluated in whole groups."""

import pytest

from pymc_dp.step_methods.row_functions.chunks import ALIKE, UNDIVIDED, filled, whole_chunk


@pytest.mark.parametrize("entries", [0, 1, 3, 10, 256, 10_000])
@pytest.mark.parametrize("most", [32, 1000, 8192])
def test_chunks_are_whole_groups_of_few_entries(entries, most):
    chunk = whole_chunk(entries, most)
    assert chunk % ALIKE == 0 and ALIKE <= chunk <= most
    assert chunk * entries <= UNDIVIDED or chunk == ALIKE


@pytest.mark.parametrize(("count", "whole"), [(0, 0), (1, 32), (32, 32), (33, 64)])
def test_groups_are_filled_up(count, whole):
    assert filled(count) == whole
