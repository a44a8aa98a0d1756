"""Walks: no unit adds more than was charged, whatever a block function returns, and each sum is made once, and paid."""

import copy
import pickle
from contextlib import contextmanager
from math import sqrt

import numpy as np
import pytest

from pymc_dp.accounting import DiscreteGaussianEvent, DiscreteLaplaceEvent, Ledger
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError
from pymc_dp.kernel import draw
from pymc_dp.kernel.account import LedgerAccount, Rehearsal
from pymc_dp.kernel.limits import MOST_ROWS, UNITS
from pymc_dp.kernel.walk_kinds import MATRIX, Bins, Collapsed, Counts, Kind, Matrix, Vector, WalkSum, walk_event
from pymc_dp.kernel.walk_limits import joined
from pymc_dp.kernel.walks import Walk
from pymc_dp.testing import without_noise

HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 1.0, -1.0, 1 + 1e-15, 2.0, 0.7071067811865476, -0.0)
SLOTS = Collapsed((0, 1, 1, 1, 2, 2, 2, 3, 3), (0, 1, 1, 1), 3)
"""One parameter that all rows meet, intercepts and slopes of three groups, and another factor of two levels."""
KINDS = {
    "vector": Vector(4),
    "bins": Bins(5),
    "one bin": Bins(1),
    "matrix": Matrix(4, 3),
    "slots": SLOTS,
}
BOTH = ("replace", "add_remove")


def summed(kind, found):
    total = kind._empty()
    kind._add(np.ascontiguousarray(found, dtype=float), total)
    return total


def symmetric(upper):
    return upper + np.triu(upper, 1).T


def squared(kind, total):
    """The square of a norm in which entries off a diagonal count twice, exactly: in Python's integers."""
    matrices, rest = [], total
    if isinstance(kind, Matrix):
        matrices, rest = [symmetric(total)], ()
    elif isinstance(kind, Collapsed):
        count = len(kind.shared)
        matrices, rest = [symmetric(total[: count**2].reshape(count, count))], total[count**2 :]
    return sum(int(entry) ** 2 for entry in (*(one for each in matrices for one in np.ravel(each)), *rest))


def hostile(rng, kind):
    """Floats of one unit."""
    if isinstance(kind, Bins):
        place = rng.choice([-1, kind.count, 0.5, 2.0**33, np.nan, np.inf]) if rng.random() < 0.3 else rng.integers(5)
        share = rng.choice(HOSTILE) if rng.random() < 0.5 else rng.uniform(-0.5, 1.5)
        return np.array([[place, share]], dtype=float)
    shape = kind.shape if len(kind.shape) == 1 else (rng.integers(1, kind.shape[0] + 1), kind.shape[1])
    found = rng.normal(size=shape) * rng.choice([0.05, 0.2, 0.5, 1.0, 10.0])
    found = np.where(rng.random(shape) < rng.choice([0.0, 0.7]), 0.0, found)
    return np.where(rng.random(shape) < rng.choice([0.0, 0.02, 0.5]), rng.choice(HOSTILE, shape), found)[None]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("neighbours", BOTH)
def test_no_unit_moves_a_sum_further_than_is_charged_whatever_floats_it_has(name, neighbours):
    rng, kind, most = np.random.default_rng(1), KINDS[name], 0
    for _ in range(4000):
        one, other = summed(kind, hostile(rng, kind)), summed(kind, hostile(rng, kind))
        moved = squared(kind, one - other) if neighbours == "replace" else squared(kind, one)
        assert moved <= kind.squared(neighbours)
        most = max(most, moved)
    assert most > 0.2 * kind.squared(neighbours), "and it comes to something"


CHARGED = {
    "vector": (UNITS**2, 4, 4),
    "bins": (UNITS**2, 2, 5),
    "one bin": (UNITS**2, 1, 1),
    "matrix": (MATRIX**2, 2, 10),
    "slots": (MATRIX**2, 4, 4 * 5 // 2 - 3 + 8),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("neighbours", BOTH)
def test_what_is_charged_follows_from_the_kind_and_the_scale(name, neighbours):
    (square, replaced, entries), matrix = CHARGED[name], name in ("matrix", "slots")
    square *= replaced if neighbours == "replace" else 1
    event = walk_event([WalkSum(KINDS[name], 3.0 * 2**24)], neighbours)
    assert type(event) is DiscreteGaussianEvent and event.coordinates == entries and event.shifts is None
    assert event.l2_squared == (square // 2 if matrix else square)
    assert float(event.rho) == pytest.approx(square / (2 * (3.0 * 2**24) ** 2), rel=1e-12)
    assert event.scale <= min(KINDS[name].scales(3.0 * 2**24))


@pytest.mark.parametrize("name", KINDS)
def test_noise_is_drawn_at_the_scales_that_are_charged_for_every_number_that_leaves(name, monkeypatch):
    kind, drawn = KINDS[name], []
    monkeypatch.setattr(draw, "noised", lambda total, noise, scale: drawn.append((total.size, noise, scale)) or total)
    kind._noised(kind._empty(), 1000.0)
    event = walk_event([WalkSum(kind, 1000.0)], "replace")
    assert sum(size for size, *_ in drawn) == kind.entries == event.coordinates
    assert {noise for _, noise, _ in drawn} == {"gaussian"}
    if name not in ("matrix", "slots"):
        assert [scale for *_, scale in drawn] == [event.scale]
        return
    count = 4 if name == "matrix" else 1 + 8
    assert drawn[-1][0] == 6 and drawn[-1][2] == 1000.0 / sqrt(2) >= event.scale
    assert all(scale == 1000.0 for *_, scale in drawn[:-1]) and sum(size for size, *_ in drawn[:-1]) == count


COUNTS = {
    Counts(5): (2, 2, (1, 1), 1, 1, (1,)),
    Counts(5, 3): (6, 18, None, 3, 9, None),
    Counts(1): (1, 1, (1,), 1, 1, (1,)),
    Counts(1, 3): (3, 9, (3,), 3, 9, (3,)),
}
"""Moves in L1 and squared L2 under both relations, and shifts."""


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("neighbours", BOTH)
def test_values_move_counts_by_no_more_than_is_charged_whatever_they_are(kind, neighbours):
    rng, most = np.random.default_rng(1), 0
    l1, square, shifts = COUNTS[kind][:3] if neighbours == "replace" else COUNTS[kind][3:]
    for _ in range(2000):
        rows = rng.choice([*HOSTILE, 0, 1, 4, 4.5, 5, 2.0**63], (2, 1, kind.width))
        one, other = (summed(kind, row) for row in rows)
        assert one.min() >= 0 and one.sum() == ((rows[0] >= 0) & (rows[0] < kind.count)).sum() <= kind.width
        moved = one - other if neighbours == "replace" else one
        assert np.abs(moved).sum() <= l1 and (moved**2).sum() <= square == kind.squared(neighbours)
        most = max(most, int(np.abs(moved).sum()))
    assert most == l1
    event = walk_event([WalkSum(kind, 20.0)], neighbours)
    assert event == DiscreteLaplaceEvent(scale=20.0, sensitivity=l1, shifts=shifts)


def test_noise_on_counts_is_laplace_noise_at_the_scale_that_is_charged(monkeypatch):
    drawn = []
    monkeypatch.setattr(draw, "noised", lambda total, noise, scale: drawn.append((total.size, noise, scale)) or total)
    Counts(5)._noised(np.zeros(5, dtype=np.int64), 20.0)
    assert drawn == [(5, "laplace", 20.0)]


def test_no_matrix_has_a_negative_eigenvalue():
    rng = np.random.default_rng(2)
    for _ in range(4000):
        whole = symmetric(summed(KINDS["matrix"], hostile(rng, KINDS["matrix"])))
        assert np.linalg.eigvalsh(whole.astype(float)).min() >= -1e-12 * MATRIX


def test_two_matrices_are_as_far_apart_as_is_charged():
    opposite = np.zeros((2, 1, 2))
    opposite[0, 0, 0] = opposite[1, 0, 1] = 1 - 1e-4
    one, other = (summed(Matrix(2), opposite[k : k + 1]) for k in range(2))
    assert squared(Matrix(2), one - other) > 1.999 * MATRIX**2
    assert squared(Bins(5), summed(Bins(5), [[2, 1.0]]) - summed(Bins(5), [[4, 1.0]])) == 2 * UNITS**2


@pytest.mark.parametrize("name", KINDS)
def test_sums_are_exact_and_their_order_does_not_matter(name):
    rng, kind = np.random.default_rng(4), KINDS[name]
    if isinstance(kind, Bins):
        found = np.column_stack([rng.integers(0, kind.count, 3000), rng.integers(0, 9, 3000) / 8])
        assert (summed(kind, found) == np.bincount(found[:, 0].astype(int), found[:, 1], kind.count) * UNITS).all()
    else:
        found = rng.normal(size=(3000, *kind.shape)) * 0.3
    parts = sum(summed(kind, one[None]) for one in found)
    assert (summed(kind, found) == parts).all() and (summed(kind, found[rng.permutation(3000)]) == parts).all()


@pytest.mark.parametrize("name", KINDS)
def test_a_unit_that_is_no_number_adds_nothing_and_changes_no_other(name, rng):
    kind = KINDS[name]
    good = np.array([[0, 0.25]]) if isinstance(kind, Bins) else rng.normal(size=(1, *kind.shape)) * 0.05
    assert summed(kind, good).any()
    for bad in (np.nan, np.inf, -np.inf):
        rows = np.concatenate([good, good, good])
        rows[1].flat[-1] = bad
        assert (summed(kind, rows) == 2 * summed(kind, good)).all()


def test_the_most_rows_fit_into_64_bits():
    assert MOST_ROWS * UNITS < 2**63 and MOST_ROWS * MATRIX < 2**63


def test_many_small_vectors_of_one_unit_are_held_exactly():
    """A sum of very many squares in floats loses the small ones: there is room for that."""
    small = np.zeros((1, 512, 4))
    small[0, 0, 0], small[0, 1:, 1] = 1 - 6e-9, 2e-4
    assert squared(Matrix(4, 512), summed(Matrix(4, 512), small)) <= MATRIX**2


@pytest.mark.parametrize("count", [1, 2, 7])
def test_sums_of_sums_are_exact_and_end_where_64_bits_would(count, rng):
    parts = [rng.integers(-(2**62), 2**62, size=(20, 3)) for _ in range(count)]
    parts[0][:2] = [[2**62, -(2**62), 2**62 - 1], [0, -1, 1]]
    if count > 1:
        parts[1][:2] = [[2**62, -(2**62), 2], [-1, 0, -1]]
    exact = sum(part.astype(object) for part in parts)
    held = np.minimum(np.maximum(exact, -(2**62)), 2**62)
    assert (joined(parts).astype(object) == held).all()


class Held:
    """Rows in memory, that note whether they were opened."""

    def __init__(self, rows, relation="replace", size=3):
        self.rows, self.relation, self.size, self.log = rows, relation, size, []

    def count(self, block):
        return len(block)

    @contextmanager
    def opened(self):
        self.log.append("opened")
        try:
            yield lambda: (self.rows[start : start + self.size] for start in range(0, len(self.rows), self.size))
        finally:
            self.log.append("closed")


ROWS = np.random.default_rng(0).normal(size=(10, 4)) * 0.1
LIST = [WalkSum(Vector(4), 2.0**25), WalkSum(Bins(5), 2.0**25), WalkSum(Matrix(4, 3), 2.0**31), WalkSum(SLOTS, 2.0**31)]


def blocks_of(kind):
    if isinstance(kind, Bins):
        return lambda rows: np.column_stack([np.arange(len(rows)) % kind.count, np.abs(rows[:, 0])])
    if isinstance(kind, Vector):
        return lambda rows: rows
    return lambda rows: np.tile(rows, 3)[:, None, : kind.shape[1]]


class Charges:
    """An account that refuses, or notes when it is asked."""

    def __init__(self, source, relation="replace", fits=True):
        self.source, self.relation, self.fits = source, relation, fits

    def charge(self, event, label):
        self.source.log.append(("charged", event, label))
        if not self.fits:
            raise BudgetExceeded("no")


def test_all_sums_are_charged_in_one_charge_before_anything_is_read():
    source = Held(ROWS)
    walk = Walk(source, Charges(source), LIST, label="a walk")
    assert source.log == [("charged", walk_event(LIST, "replace"), "a walk")]
    with walk.opened():
        for place, one in enumerate(LIST):
            assert walk.made(place, blocks_of(one.kind)).size >= one.kind.entries
    assert source.log[1:] == ["opened", "closed"]
    refused = Held(ROWS)
    with pytest.raises(BudgetExceeded):
        Walk(refused, Charges(refused, fits=False), LIST)
    assert len(refused.log) == 1


def test_a_sum_is_made_once_and_none_that_is_not_on_the_list():
    seen = []
    walk = Walk(Held(ROWS), Rehearsal("replace"), LIST)
    with pytest.raises(PrivacyError, match="not open"):
        walk.made(0, seen.append)
    with walk.opened():
        walk.made(0, lambda rows: rows)
        with pytest.raises(BudgetExceeded, match="No use of the grant"):
            walk.made(0, seen.append)
        for place in (-1, 4, 0.0, True, "0"):
            with pytest.raises(ArgumentError, match="place must be a whole number"):
                walk.made(place, seen.append)
    with pytest.raises(PrivacyError, match="not open"):
        walk.made(1, seen.append)
    with pytest.raises(PrivacyError, match="opened once"), walk.opened():
        pass
    assert not seen
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises((PrivacyError, TypeError)):
            copied(Walk(Held(ROWS), Rehearsal("replace"), LIST))


def test_sums_that_are_made_together_are_those_of_one_pass():
    class Counted(Held):
        passes = 0

        @contextmanager
        def opened(self):
            def blocks():
                Counted.passes += 1
                return iter([self.rows[:6], self.rows[6:]])

            yield blocks

    with without_noise():
        walk = Walk(Counted(ROWS), Rehearsal("replace"), LIST, threads=2)
        with walk.opened():
            both = walk.together({2: blocks_of(LIST[2].kind), 0: blocks_of(LIST[0].kind)})
            assert Counted.passes == 1
            with pytest.raises(BudgetExceeded):
                walk.together({1: blocks_of(LIST[1].kind), 0: blocks_of(LIST[0].kind)})
        assert Counted.passes == 1
        walk = Walk(Held(ROWS), Rehearsal("replace"), LIST)
        with walk.opened():
            alone = [walk.made(place, blocks_of(LIST[place].kind)) for place in (2, 0)]
    assert all((one == other).all() for one, other in zip(both, alone, strict=True))


@pytest.mark.parametrize("place", range(4))
def test_no_rows_are_treated_as_some(place):
    walk = Walk(Held(ROWS[:0]), Rehearsal("replace"), LIST)
    with walk.opened(), without_noise():
        assert not walk.made(place, blocks_of(LIST[place].kind)).any()


def test_a_walk_of_nothing_is_refused():
    with pytest.raises(ArgumentError, match="needs sums"):
        Walk(Held(ROWS), Rehearsal("replace"), [])


@pytest.mark.parametrize("relation", [*BOTH, "unit: who"])
def test_relations_of_rows_and_account_are_the_same_and_are_charged(relation):
    account = Rehearsal(relation)
    Walk(Held(ROWS, relation), account, LIST)
    ((_, event),) = account.events
    assert event == walk_event(LIST, "replace" if relation == "replace" else "add_remove")
    with pytest.raises(PrivacyError, match="The account counts under"):
        Walk(Held(ROWS, relation), Rehearsal("other"), LIST)
    with pytest.raises(ArgumentError, match="counts rows or persons"):
        Walk(Held(ROWS, "other"), Rehearsal("other"), LIST)


class Wider(Kind):
    """A kind that states a move of its own."""

    shape, entries = (4,), 4

    def squared(self, neighbours):
        return 1

    _add = None


@pytest.mark.parametrize("bad", [WalkSum(Wider(), 1e9), (Vector(4), 1e9), WalkSum(Vector, 1e9)])
def test_kinds_that_state_their_own_move_are_refused(bad):
    account = Rehearsal("replace")
    with pytest.raises(ArgumentError, match="of a kind that is known"):
        Walk(Held(ROWS), account, [bad])
    assert not account.events


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, "1", True])
def test_scales_that_are_none_are_refused_before_the_charge(scale):
    account = Rehearsal("replace")
    with pytest.raises(ArgumentError, match="scale must be"):
        Walk(Held(ROWS), account, [WalkSum(Vector(4), scale)])
    assert not account.events


@pytest.mark.parametrize(
    "kind",
    [
        lambda: Vector(0),
        lambda: Vector(np.int64(4)),
        lambda: Bins(True),
        lambda: Matrix(3, 4000),
        lambda: Collapsed((0, 2), (1, 0)),
        lambda: Collapsed((0, 1), (1, 2)),
        lambda: Collapsed((), ()),
        lambda: Collapsed(tuple(range(3000)), (0,) * 3000, 1000),
        lambda: Collapsed(tuple(range(4000)), (0,) * 4000),
    ],
)
def test_kinds_that_make_no_sense_are_refused(kind):
    with pytest.raises(ArgumentError):
        kind()


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("place", range(4))
def test_sums_depend_neither_on_blocks_nor_on_threads(relation, place):
    found, block = [], blocks_of(LIST[place].kind)
    if place == 1:
        block = lambda rows: np.column_stack([np.rint(rows[:, 0] * 1e6) % 5, np.abs(rows[:, 1])])  # noqa: E731
    rows = np.random.default_rng(3).normal(size=(500, 4)) * 0.1
    with without_noise():
        for size, threads in ((500, 1), (7, 1), (7, 4), (1, 3)):
            walk = Walk(Held(rows, relation, size), Rehearsal(relation), LIST, threads=threads)
            with walk.opened():
                found.append(walk.made(place, block))
    assert found[0].any() and all((one == found[0]).all() for one in found)


WRONG = {
    "too long": lambda rows: np.zeros((len(rows), 5)),
    "a number": lambda rows: 0.0,
    "more units than there are": lambda rows: np.concatenate([rows, rows]),
    "fewer": lambda rows: rows[1:],
    "an axis more": lambda rows: rows[:, None],
}


@pytest.mark.parametrize("what", WRONG)
def test_block_functions_of_another_shape_are_refused(what):
    walk = Walk(Held(ROWS), Rehearsal("replace"), LIST)
    with walk.opened(), pytest.raises(PrivacyError, match="another shape than was paid for"):
        walk.made(0, WRONG[what])


def test_more_vectors_of_a_unit_than_there_is_room_for_are_refused():
    walk = Walk(Held(ROWS), Rehearsal("replace"), LIST)
    with walk.opened(), pytest.raises(PrivacyError, match="another shape"):
        walk.made(2, lambda rows: np.zeros((len(rows), 4, 4)))


def test_a_failure_while_rows_are_read_tells_nothing():
    def fails(rows):
        secret = rows
        raise ValueError(f"{secret}") from KeyError(secret[0, 0])

    walk = Walk(Held(ROWS), Rehearsal("replace"), LIST, threads=2)
    with walk.opened():
        with pytest.raises(ReleaseError) as failed:
            walk.made(0, fails)
        assert failed.value.__cause__ is failed.value.__context__ is None
        frames, at = [], failed.value.__traceback__
        while at is not None:
            frames.append(at.tb_frame)
            at = at.tb_next
        assert not any(frame.f_code.co_name == "fails" for frame in frames)

        def told(rows):
            raise PrivacyError("The table has changed.") from ValueError(rows)

        with pytest.raises(PrivacyError, match="The table has changed") as failed:
            walk.made(1, told)
        assert failed.value.__cause__ is failed.value.__context__ is None
        with pytest.raises(KeyboardInterrupt) as ended:
            walk.made(2, lambda rows: (_ for _ in ()).throw(KeyboardInterrupt(rows)))
        assert ended.value.args == ()


def test_a_failure_while_rows_are_opened_or_left_tells_nothing():
    class Broken(Held):
        @contextmanager
        def opened(self):
            raise ValueError(self.rows)
            yield

    class Kept(Held):
        @contextmanager
        def opened(self):
            yield lambda: [self.rows]
            raise ValueError(self.rows)

    for source in (Broken(ROWS), Kept(ROWS)):
        with pytest.raises(ReleaseError) as failed, Walk(source, Rehearsal("replace"), LIST).opened():
            pass
        assert failed.value.__cause__ is failed.value.__context__ is None


def test_a_ledger_pays_for_a_walk_as_for_its_event():
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        Walk(Held(ROWS), LedgerAccount(ledger), LIST)
    assert not ledger.history
    Walk(Held(ROWS), LedgerAccount(ledger), [WalkSum(Vector(4), 2.0**29)], label="a gradient")
    (entry,) = ledger.history
    assert entry.label == "a gradient" and entry.event == walk_event([WalkSum(Vector(4), 2.0**29)], "replace")


def test_made_up_rows_are_free_and_guarantee_nothing():
    assert Walk(Held(ROWS), Rehearsal("replace"), LIST).guarantee == "none"
    account = LedgerAccount(Ledger(1.0, 1e-6))
    assert Walk(Held(ROWS), account, [WalkSum(Vector(4), 2.0**29)]).guarantee == "exact"
    with without_noise():
        assert Walk(Held(ROWS), account, [WalkSum(Vector(4), 2.0**30)]).guarantee == "none"
