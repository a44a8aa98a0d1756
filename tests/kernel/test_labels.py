"""Labels of rows: which are shown and with which counts, on neighbours too; one charge before one pass."""

import copy
import itertools
import math
import pickle
import traceback
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from pymc_dp.accounting import ApproximateEvent, PureEvent
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError
from pymc_dp.kernel import draw
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.labels import Coded, LabelCounts, label_event
from pymc_dp.kernel.noise import tail
from pymc_dp.testing import without_noise

REACH = 24
MISSED = 2e-5
"""Probability of noise beyond the reach."""
GIVEN = {"scale": 2.0, "least": 5}


class Held:
    """Blocks of labels as a source, which notes what is done with it."""

    def __init__(self, blocks, relation="replace", log=None):
        self.blocks, self.relation, self.log = blocks, relation, [] if log is None else log

    @contextmanager
    def opened(self):
        self.log.append("opened")
        yield lambda: iter(self.blocks)
        self.log.append("closed")


class Charges:
    """An account that notes when it is asked, and may refuse."""

    def __init__(self, log, *, fits=True, relation="replace"):
        self.log, self.fits, self.relation = log, fits, relation

    def charge(self, event, label):
        self.log.append((event, label))
        if not self.fits:
            raise BudgetExceeded("no")


def shown(blocks, relation="replace", **given):
    return LabelCounts(Held(blocks, relation), Rehearsal(relation), **{**GIVEN, **given}).shown()


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0, 1e6, 2.0 / 0.3])
@pytest.mark.parametrize("least", [1, 2, 17, 300])
def test_the_tail_is_exact_and_never_too_small(scale, least):
    mp.dps = 80
    ratio = mp.exp(-1 / mpf(scale))
    exact = ratio**least / (1 + ratio)
    found = tail(scale, least)
    error = (mpf(found.numerator) / found.denominator - exact) / exact
    assert 0 < error < mpf(10) ** -40


def outcomes(rows, relation, monkeypatch):
    """Every outcome with its probability, noise beyond a reach left out: by the code that releases."""
    ratio = math.exp(-1 / GIVEN["scale"])
    chance = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-REACH, REACH + 1)}
    found = {}
    for noise in itertools.product(chance, repeat=len(set(rows))):
        monkeypatch.setattr(draw, "noised", lambda counts, kind, scale, noise=noise: counts + np.array(noise))
        out = frozenset(shown([rows], relation).items())
        found[out] = found.get(out, 0.0) + math.prod(chance[k] for k in noise)
    return found


def divergence(here, there, epsilon):
    """Integral of (P - e^epsilon Q)+ over the outcomes."""
    return sum(max(0.0, p - math.exp(epsilon) * there.get(out, 0.0)) for out, p in here.items())


def moved(*counts):
    return [label for label, count in zip("uv", counts, strict=False) for _ in range(count)]


NEIGHBOURS = {
    "replace": [(moved(a, b), moved(a - 1, b + 1)) for a in (1, 2, 9) for b in (0, 1, 9)],
    "add_remove": [(moved(a), moved(a - 1)) for a in (1, 2, 9)],
}


@pytest.mark.parametrize("relation", NEIGHBOURS)
def test_all_outcomes_of_neighbours_are_within_what_is_charged(relation, monkeypatch):
    event, found = label_event(**GIVEN, neighbours=relation), 0.0
    for pair in NEIGHBOURS[relation]:
        here, there = (outcomes(rows, relation, monkeypatch) for rows in pair)
        found = max(found, divergence(here, there, event.epsilon), divergence(there, here, event.epsilon))
    assert found == pytest.approx(event.delta, abs=MISSED) and event.delta > 0.01


def test_a_label_of_one_row_alone_is_shown_with_the_probability_that_is_charged(monkeypatch):
    found = outcomes(["u"], "add_remove", monkeypatch)
    event = label_event(**GIVEN, neighbours="add_remove")
    assert 1 - found[frozenset()] == pytest.approx(event.delta, abs=MISSED)
    assert outcomes([], "add_remove", monkeypatch) == {frozenset(): 1.0}


@pytest.mark.parametrize(("relation", "sense"), [("replace", 2), ("add_remove", 1)])
def test_what_labels_cost_follows_from_noise_threshold_and_neighbours(relation, sense):
    event = label_event(2.0, 20, relation)
    ratio = math.exp(-1 / 2.0)
    chance = Fraction(ratio**19 / (1 + ratio))
    assert event.epsilon == sense / 2.0
    assert event.delta == pytest.approx(float(chance), rel=1e-12)
    assert label_event(1e-7, 20, relation).delta == math.ulp(0.0)


ROWS = ["b"] * 7 + ["a", "c"] * 5 + ["d"] * 4 + [None] * 9


@pytest.mark.parametrize("relation", NEIGHBOURS)
def test_labels_are_shown_with_their_counts_and_in_their_own_order_whatever_the_rows_and_blocks(relation):
    coded = Coded(["d", "b", "e"], np.array([1] * 7 + [0] * 4 + [3, -1, 99]))
    with without_noise():
        for blocks in ([ROWS], [ROWS[::-1]], [ROWS[:9], ROWS[9:]], [["a", "c"] * 5, coded], [coded, ["c", "a"] * 5]):
            assert list(shown(blocks, relation).items()) == [("a", 5), ("b", 7), ("c", 5)]
        assert shown([], relation) == shown([[]], relation) == shown([[None] * 9], relation) == {}


def test_noise_is_drawn_in_the_order_of_labels_for_those_that_occur(monkeypatch):
    drawn = []
    monkeypatch.setattr(draw, "noised", lambda counts, *how: drawn.append((counts.tolist(), how)) or counts)
    shown([ROWS[::-1], Coded(["e", "d"], np.array([1]))])
    assert drawn == [([5, 7, 5, 5], ("laplace", 2.0))]


def test_whether_a_label_is_shown_depends_on_its_noised_count(monkeypatch):
    monkeypatch.setattr(draw, "noised", lambda counts, *how: counts + np.array([-1, 0, 4]))
    assert shown([["a"] * 5 + ["b"] * 4 + ["c"]]) == {"c": 5}


def test_what_is_no_label_of_the_kind_that_was_named_is_missing():
    class Text(str):
        pass

    rows = [*([1] * 5), *([True] * 5), *([1.0] * 5), *([Text("1")] * 5), *(["1"] * 6), *([None] * 5), *([b"1"] * 5)]
    with without_noise():
        assert list(shown([rows], integers=True).items()) == [(1, 5)]
        assert list(shown([rows]).items()) == [("1", 6)]
        assert shown([Coded([1, "1"], np.arange(20) % 2)]) == {"1": 10}


def test_all_is_charged_before_anything_is_read_and_counted_once():
    log, event = [], label_event(**GIVEN, neighbours="replace")
    counts = LabelCounts(Held([ROWS], log=log), Charges(log), **GIVEN, label="labels")
    assert log == [(event, "labels")]
    counts.shown()
    with pytest.raises(PrivacyError, match="counted already"):
        counts.shown()
    assert log == [(event, "labels"), "opened", "closed"]
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="cannot be copied"):
            copied(counts)
    refused = []
    with pytest.raises(BudgetExceeded):
        LabelCounts(Held([ROWS], log=refused), Charges(refused, fits=False), **GIVEN)
    assert refused == [(event, "kernel")]


def test_more_than_it_costs_may_be_charged_and_nothing_less():
    event = label_event(**GIVEN, neighbours="replace")
    more = ApproximateEvent(epsilon=event.epsilon * 1.5, delta=event.delta * 1.5)
    account = Rehearsal("replace")
    LabelCounts(Held([]), account, **GIVEN, charged=more)
    assert account.events == [("kernel", more)]
    for less in (
        ApproximateEvent(epsilon=math.nextafter(event.epsilon, 0.0), delta=0.5),
        ApproximateEvent(epsilon=9.0, delta=math.nextafter(event.delta, 0.0)),
        label_event(**GIVEN, neighbours="add_remove"),
        PureEvent(epsilon=9.0),
    ):
        with pytest.raises(ArgumentError, match="charged must be"):
            LabelCounts(Held([]), account, **GIVEN, charged=less)
    assert len(account.events) == 1


class Less(ApproximateEvent):
    """An event that may state any cost."""


@pytest.mark.parametrize(
    "wrong",
    [
        *({"scale": scale} for scale in (0.0, -1.0, np.nan, np.inf, "1", True)),
        *({"least": least} for least in (1, 2.5, "3", True)),
        {"integers": 1},
        {"charged": Less(epsilon=9.0, delta=0.9)},
    ],
)
def test_arguments_that_could_charge_less_than_is_shown_are_refused(wrong):
    account = Rehearsal("replace")
    with pytest.raises(ArgumentError):
        LabelCounts(Held([]), account, **{**GIVEN, **wrong})
    assert not account.events


def test_labels_are_counted_under_the_relation_of_their_rows_alone():
    with pytest.raises(PrivacyError, match="The account counts under"):
        LabelCounts(Held([]), Rehearsal("add_remove"), **GIVEN)
    with pytest.raises(ArgumentError, match="neighbours must be"):
        LabelCounts(Held([], "unit: who"), Rehearsal("unit: who"), **GIVEN)


def test_a_failure_while_labels_are_read_tells_nothing():
    def blocks():
        secret = f"row {4700 + 11}"
        yield [secret]
        raise ValueError(secret)

    with pytest.raises(ReleaseError) as caught:
        shown(blocks())
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    text = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "4711" not in text
