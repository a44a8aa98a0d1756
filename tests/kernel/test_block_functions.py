"""The floats of a row are a function of it alone, to the last bit: the kernel trusts block functions in this."""

import json
from pathlib import Path

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.gradients import fit, row_parts
from pymc_dp.kernel.walks import Walk
from pymc_dp.rows.persons import Grouped
from tests.zoo import every
from tests.zoo.kind import ZOO

pytestmark = [
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning"),
]
TABLE = json.loads((Path(every.__file__).parent / "table.json").read_text(encoding="utf-8"))
NAMES = [name for name, one in TABLE.items() if one["released"] == "gradients"]
QUICK = ["logistic", "survey_weights", "persons_in_a_logistic_regression"]
SLOW = [pytest.param(name, marks=pytest.mark.slow(cases="all")) for name in NAMES if name not in QUICK]
HOSTILE = (np.nan, np.inf, -1e308, 0.0)


def test_kinds_of_the_zoo_that_go_by_gradients_are_many():
    assert len(NAMES) > 15 and set(QUICK) <= set(NAMES)


def taken(rows, places):
    """Some units of a block, in an order."""
    if not isinstance(rows, Grouped):
        return [column[places] for column in rows]
    spans = [np.arange(rows.edges[place], rows.edges[place + 1]) for place in places]
    edges = np.append(0, np.cumsum([len(one) for one in spans])).astype(np.int64)
    left = None if rows.left_out is None else rows.left_out[places]
    return Grouped([column[np.concatenate(spans)] for column in rows.columns], edges, left)


def beside(rows, bad, columns):
    """The units of a block between hostile ones, each of one row that is clamped, as rows are."""
    held = rows.columns if isinstance(rows, Grouped) else rows
    row = []
    for column, values in zip(columns, held, strict=True):
        whole = 2**30 if bad > 0 else -5
        row.append(column.clamped(np.full_like(values[:1], bad if values.dtype.kind == "f" else whole)))
    more = [np.concatenate([one, values, one]) for one, values in zip(row, held, strict=True)]
    if not isinstance(rows, Grouped):
        return more
    edges = np.concatenate([[0], rows.edges + 1, [rows.edges[-1] + 2]])
    left = None if rows.left_out is None else np.concatenate([[7], rows.left_out, [7]])
    return Grouped(more, edges, left)


def same(one, other):
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.fixture
def blocks(monkeypatch):
    """What the kernel is handed: block functions of every sum, and the rows."""
    caught, made = [], Walk.made

    def noted(self, place, block):
        caught.append((self, block))
        if len(caught) == 1:
            rows = [one() if callable(one) else one for one in self._rows()]
            assert len(rows) == 1, "all rows are in one block"
            caught[0] = rows[0], block
        return made(self, place, block)

    monkeypatch.setattr(Walk, "made", noted)
    return caught


@pytest.mark.parametrize("name", QUICK + SLOW)
def test_floats_of_a_row_are_the_same_wherever_it_stands(name, blocks, monkeypatch):
    if name.startswith("formula"):
        pytest.importorskip("bambi")
    kind, found, inspected = ZOO[name], [], []
    of = fit.Planned.of
    monkeypatch.setattr(fit.Planned, "of", lambda *given: inspected.append(given[1].inspection) or of(*given))
    with dp.testing.insecure_randomness(1):
        given = {"epsilon": 1.0, "delta": 1e-6, "statistics": dp.Gradients(steps=10, robust=True)}
        dp.privatize(kind.build(kind.table()), domain=kind.domain(kind.relations[0]), progressbar=False, **given)
    rows, columns = blocks[0][0], inspected[0].columns
    count = len(rows.edges) - 1 if isinstance(rows, Grouped) else len(rows[0])
    everywhere, rng = np.arange(count), np.random.default_rng(1)
    for _, block in blocks:
        with np.errstate(all="ignore"):
            whole = block(rows)
            found.append(whole)
            order = rng.permutation(count)
            assert same(block(taken(rows, order)), whole[order]), "at another place"
            for alone in (0, count // 2, count - 1):
                assert same(block(taken(rows, everywhere[alone : alone + 1])), whole[alone : alone + 1]), "alone"
            assert same(block(taken(rows, everywhere[5:12])), whole[5:12]), "in another block"
            for bad in HOSTILE:
                assert same(block(beside(rows, bad, columns))[1:-1], whole), f"beside {bad}"
            with monkeypatch.context() as short:
                short.setattr(row_parts, "block_size", lambda rows: 7)
                assert same(block(rows), whole), "a few rows at a time"
    assert len({one.tobytes() for one in found}) > 5, "and they come to something"
