"""The comparison asks what it says: prices of groups, tables of persons, what is forgotten, shortcuts of audits."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import _compare_lines
import _compare_page
import _compare_stored
import _compare_tables
import compare
from _compare_stored import Found, Score, Time
from _job import Job, rows_of

HERE = [line for line in _compare_lines.LINES if not line.interpreter and line.module != "by_hand_jax"]


def peer_of(line):
    return next(peer for peer in importlib.import_module(line.module).PEERS if peer.name == line.name)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_group_of_rows_has_the_price(rows):
    epsilon, delta = _compare_tables.of_each_row(1.0, 1e-5, rows)
    assert rows * epsilon == pytest.approx(1.0)
    # Removing rows one after the other: each δ counts for as much as the steps before it may have raised it.
    assert sum(delta * np.exp(before * epsilon) for before in range(rows)) == pytest.approx(1e-5)


def test_persons_hold_the_rows_that_are_asked_one_by_one():
    x, y, truth = _compare_tables.persons(3)
    rows, answers, person = rows_of(x, y)
    counts = np.bincount(person)
    assert sorted(set(counts)) == list(range(1, _compare_tables.MOST + 1)) and len(counts) == len(x)
    assert (x[y < 0] == 0).all() and np.allclose(np.linalg.norm(rows, axis=1), 1)
    again = _compare_tables.one_by_one(3)
    assert [np.array_equal(*pair) for pair in zip((rows, answers, truth), again, strict=True)] == [True] * 3


def test_answers_of_one_peer_are_forgotten_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "KEPT", tmp_path)
    kept = [f"{compare.stem(line.name)}-adult-1-3.npz" for line in _compare_lines.LINES]
    for name in kept:
        (tmp_path / name).touch()
    compare.forget(["not private"])
    assert {path.name for path in tmp_path.iterdir()} == set(kept) - {"not_private-adult-1-3.npz"}
    compare.forget([])
    assert list(tmp_path.iterdir()) == []


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


def test_a_page_of_no_answers_says_so():
    found = {line.name: Found() for line in _compare_lines.LINES}
    found["diffprivlib"].why["adult"] = "not installed"
    page = _compare_page.page(found, [], epsilon=1.0)
    assert page.count("\n## ") == 5 and "- diffprivlib, adult: not installed" in page


def of_one(day, error=0.2):
    return Found(scores={"Logistic: error": Score(error, 0.01, 18, day)}, times={"adult": Time(40.0, 4.0, day)})


def test_what_is_not_asked_again_keeps_its_numbers(tmp_path):
    held = {line.name: Found() for line in _compare_lines.LINES}
    held["diffprivlib"] = of_one("2026-01-01")
    _compare_stored.store(held, tmp_path / "kept.json")
    now = {line.name: Found() for line in _compare_lines.LINES}
    now["not private"] = of_one("2026-02-01", 0.1)
    now["diffprivlib"].why.update(synthetic="not installed", adult="not installed")
    found = _compare_stored.renewed(_compare_stored.load(tmp_path / "kept.json"), now)
    assert found["diffprivlib"].scores == held["diffprivlib"].scores
    assert found["diffprivlib"].why == {"adult": "not installed"}
    assert found["not private"].scores["Logistic: error"].mean == 0.1
    page = _compare_page.page(found, [], epsilon=1.0)
    assert (
        "| diffprivlib | replaced | 0.20\xa0±\xa00.01 |" in page and "| not private | — | 0.10\xa0±\xa00.01 |" in page
    )
    assert "Measured 2026-01-01: diffprivlib (Logistic)." in page


def test_an_earlier_answer_replaces_no_later_one():
    held = {line.name: Found() for line in _compare_lines.LINES} | {"diffprivlib": of_one("2026-02-01", 0.1)}
    now = {line.name: Found() for line in _compare_lines.LINES} | {"diffprivlib": of_one("2026-01-01", 0.2)}
    assert _compare_stored.renewed(held, now)["diffprivlib"].scores["Logistic: error"].mean == 0.1


def test_times_are_divided_by_those_of_the_same_machine():
    none = {line.name: Found() for line in _compare_lines.LINES}
    now = none | {"diffprivlib": of_one("2026-02-01")}
    assert _compare_stored.renewed(none, now)["diffprivlib"].times == {}
    now |= {_compare_lines.REFERENCE: Found(times={"adult": Time(100.0, 8.0, "2026-02-01")})}
    assert _compare_stored.renewed(none, now)["diffprivlib"].times["adult"] == Time(5.0, 0.5, "2026-02-01")


def test_tables_of_the_documentation_are_replaced():
    whole = "# Title\n\nText.\n\nMeasured once.\n\n## Accuracy\n\nold\n\n## How to read it\n\nMore.\n"
    found = _compare_page.replaced(whole, "Measured twice.\n\n## Accuracy\n\nnew")
    assert found == whole.replace("once", "twice").replace("old", "new")
    assert _compare_page.replaced(found, "Measured twice.\n\n## Accuracy\n\nnew") == found
