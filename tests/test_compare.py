"""The comparison asks what it says: prices of groups, tables of persons, what is forgotten, shortcuts of audits."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import _compare_lines
import _compare_tables
from _job import Job

HERE = [line for line in _compare_lines.LINES if not line.interpreter and line.module != "by_hand_jax"]


def peer_of(line):
    return next(peer for peer in importlib.import_module(line.module).PEERS if peer.name == line.name)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_group_of_rows_has_the_price(rows):
    epsilon, delta = _compare_tables.of_each_row(1.0, 1e-5, rows)
    assert rows * epsilon == pytest.approx(1.0)
    # Removing rows one after the other: each δ counts for as much as the steps before it may have raised it.
    assert sum(delta * np.exp(before * epsilon) for before in range(rows)) == pytest.approx(1e-5)


@pytest.mark.parametrize("line", HERE, ids=lambda line: line.name)
def test_a_peer_is_what_its_line_says(line):
    peer = peer_of(line)
    kinds = {"bayes": "naive_bayes", "tax": "linear", "straight": "linear", "persons": "persons"}
    assert {kinds.get(asked, "logistic") for asked in line.kinds} <= set(peer.fits)
    assert line.neighbours == peer.neighbours
    assert (bool(line.persons), line.pure) == ("persons" in peer.fits, not peer.delta and line.neighbours != "none")


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in HERE if line.audited], ids=lambda line: line.name)
@pytest.mark.filterwarnings("ignore")
def test_what_is_audited_is_drawn_anew(line):
    x, y, *_ = _compare_tables.neighbours("replace")
    job = Job(kind="logistic", x=x[None], y=y[None], epsilon=1.0, delta=1e-5, small=True)
    peer = peer_of(line)
    fit = peer.audited.get("logistic") or peer.fits["logistic"]
    assert not np.array_equal(fit(job, x, y, 0), fit(job, x, y, 1))
