"""Chunks that threads share: each is worked off once, by whoever it is, and nobody waits for a thread that is late."""

from functools import partial
from threading import Event

import numba
import numpy as np
import pytest

from pymc_dp.step_methods.row_functions import taken_chunks
from pymc_dp.step_methods.row_functions.taken_chunks import (
    WORTHWHILE,
    follow,
    hand_over,
    helped,
    lay_out,
    lead,
    new_board,
    rows_of,
    spare_threads,
    worked_off,
)


@numba.njit(nogil=True)
def batches(board, totals, counts, total):
    """Lay out one batch after the other; of every chunk, its number plus one is added."""
    for i in range(counts.size):
        lay_out(board, 10 * counts[i], counts[i])
        chunk = lead(board, counts[i])
        while chunk >= 0:
            total[i] += chunk + 1
            worked_off(board)
            chunk = lead(board, counts[i])
        for k in range(totals.shape[0]):
            total[i] += totals[k, 0]
            totals[k, 0] = 0.0


@numba.njit(nogil=True)
def assist(board, totals, helper):
    found, part = 0, np.zeros(1)
    chunk = follow(board, helper)
    while chunk >= 0:
        part[0] += chunk + 1
        if not hand_over(board, helper, chunk, part, totals[helper]):
            break
        found += 1
        chunk = follow(board, helper)
    return found


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_every_chunk_is_worked_off_once(helpers, rng):
    board, totals, counts = new_board(helpers), np.zeros((helpers, 1)), rng.integers(0, 70, size=20_000)
    total = np.zeros(counts.size)
    with helped(board, [partial(assist, board, totals, k) for k in range(helpers)]):
        batches(board, totals, counts, total)
    assert (total == counts * (counts + 1) / 2).all()


def test_what_a_late_helper_has_taken_is_worked_off_again_and_dropped():
    board, total = new_board(1), np.zeros(1)
    lay_out(board, 30, 3)
    assert follow(board, 0) == 0 and rows_of(board) == 30
    found = []
    while (chunk := lead(board, 3)) >= 0:
        found.append(chunk)
        worked_off(board)
    assert found == [2, 1, 0]
    lay_out(board, 10, 1)
    assert not hand_over(board, 0, 0, np.ones(1), total), "it was of the batch before"
    assert total[0] == 0 and lead(board, 1) == 0
    lay_out(board, 10, 1)
    assert follow(board, 0) == 0 and hand_over(board, 0, 0, np.ones(1), total)
    assert total[0] == 1 and lead(board, 1) == -1


def test_an_error_of_a_helper_is_raised_and_its_chunk_is_not_lost():
    board, taken = new_board(1), Event()

    def fails():
        while follow(board, 0) != 0:
            pass
        taken.set()
        raise ValueError("in a helper")

    with pytest.raises(ValueError, match="in a helper"), helped(board, [fails]):
        lay_out(board, 20, 2)
        assert taken.wait(60)
        found = [lead(board, 2), lead(board, 2)]
    assert found == [1, 0]


def test_a_thread_that_cannot_be_started_costs_help_alone(monkeypatch):
    began, plain = [], taken_chunks.Thread

    class Scarce(plain):
        def start(self):
            if began:
                raise RuntimeError("can't start new thread")
            began.append(self)
            super().start()

    monkeypatch.setattr(taken_chunks, "Thread", Scarce)
    board, totals, counts, total = new_board(2), np.zeros((2, 1)), np.full(100, 50), np.zeros(100)
    with helped(board, [partial(assist, board, totals, k) for k in range(2)]):
        batches(board, totals, counts, total)
    assert (total == 50 * 51 / 2).all()
    assert len(began) == 1 and not began[0].is_alive()


def test_threads_are_started_where_they_are_worth_it_and_no_other_chain_is_beside(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 3)
    assert spare_threads(WORTHWHILE, 16) == 2
    assert spare_threads(WORTHWHILE, 2) == 1
    assert spare_threads(WORTHWHILE, 0) == spare_threads(WORTHWHILE - 1, 16) == 0
    monkeypatch.setattr(taken_chunks, "parent_process", lambda: "another process")
    assert spare_threads(WORTHWHILE, 16) == 0
    monkeypatch.undo()
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    assert spare_threads(WORTHWHILE, 16) == 0
