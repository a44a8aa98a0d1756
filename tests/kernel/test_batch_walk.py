"""Walks by batches: a row moves a step by its norm at most, whatever floats it has; all steps are paid for at once."""

import math
import pickle
from collections import namedtuple
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import numba
import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dp.accounting import Ledger
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError
from pymc_dp.kernel import LedgerAccount, RowMap
from pymc_dp.kernel.account import Rehearsal, covers, repeated
from pymc_dp.kernel.accounting.events import SubsampledGaussianEvent
from pymc_dp.kernel.batch_loops import _steps, fixed_rows, poisson_rows, waiting
from pymc_dp.kernel.batch_walk import BatchWalk, batch_event
from pymc_dp.kernel.limits import UNITS
from pymc_dp.kernel.rowmap import LANES
from pymc_dp.testing import insecure_randomness, without_noise
from tests.kernel.pairs import PAIRS, nasty

D, KINDS = 3, 400
LITTLE = 1e-3
"""A scale of noise, for walks without any."""
State = namedtuple("State", "position seen fails")


@numba.njit
def ask(state, step, parameters):
    for j in range(parameters.size):
        parameters[j] = state.position[j]


@numba.njit
def take(state, step, released):
    if state.fails:
        raise ValueError("no step")
    for j in range(released.size):
        state.seen[step, j] = released[j]


@pytest.fixture(scope="module")
def lookup():
    """A row is a place in a list, which is public: its numbers may be any floats."""
    i, q = pt.scalar("i", dtype="int64"), pt.vector("q", shape=(KINDS * D,))
    return RowMap({"i": i}, [q], q.reshape((KINDS, D))[i])


def walked(rowmap, rows, numbers, relation="replace", *, steps=1, size=D, **given):
    """What so many steps release, without noise unless a scale is given; of the whole table unless a batch is."""
    given = {"bound": 1.0, "scale": LITTLE, **({} if "batch" in given else {"rate": 1.0}), **given}
    columns = rows if isinstance(rows, dict) else {"i": np.asarray(rows)}
    walk = BatchWalk(columns, Rehearsal(relation), rowmap, size=size, steps=steps, **given)
    seen = np.full((steps, walk.released), np.nan)
    with without_noise() if given["scale"] == LITTLE else nullcontext():
        walk.walk(ask, take, State(np.ravel(numbers).astype(float), seen, False), steps)
    return seen


def test_functions_are_compiled_for_the_types_of_each_state(lookup):
    """What is handed over by address is never handed a state of another type."""
    walk = BatchWalk({"i": np.arange(4)}, Rehearsal("replace"), lookup, size=D, steps=4, bound=1.0, scale=1.0, rate=1.0)
    numbers = np.linspace(-0.5, 0.5, KINDS * D)
    found = []
    for own in (np.float64, np.float32, np.float64, np.int64):
        seen = np.full((1, D), np.nan if own is not np.int64 else 0, dtype=own)
        with without_noise():
            walk.walk(ask, take, State(numbers, seen, False), 1)
        found.append(seen)
    np.testing.assert_allclose(found[0], numbers.reshape(KINDS, D)[:4].sum(axis=0)[None], atol=1e-5)
    np.testing.assert_array_equal(found[1], found[0].astype(np.float32))
    np.testing.assert_array_equal(found[2], found[0])
    np.testing.assert_array_equal(found[3], np.trunc(found[0]))


@numba.njit
def from_first(state, step, parameters):
    parameters[:] = state[0]


@numba.njit
def to_second(state, step, released):
    state[1][step] = released


def test_classes_of_states_are_not_named_on_disk(lookup):
    """Where one is not found, Numba cannot read its index of what is kept, and no walk of a process would work."""
    walk = BatchWalk({"i": np.arange(4)}, Rehearsal("replace"), lookup, size=D, steps=2, bound=1.0, scale=1.0, rate=1.0)
    numbers, seen = np.zeros(KINDS * D), np.zeros((1, D))
    walk.walk(from_first, to_second, (numbers, seen), 1)
    walk.walk(ask, take, State(numbers, seen, False), 1)
    line = _steps.py_func.__code__.co_firstlineno
    (index,) = Path(_steps.stats.cache_path).glob(f"batch_loops._steps-{line}.*.nbi")
    named = index.read_bytes()
    assert b"Numbers" in named, "classes are named, those of the kernel"
    assert __name__.encode() not in named


def neighbours(rng, relation, most=12):
    rows = rng.integers(0, KINDS, int(rng.integers(2, most)))
    if relation == "add_remove":
        return rows, rows[1:]
    other = rows.copy()
    other[int(rng.integers(len(rows)))] = rng.integers(0, KINDS)
    return rows, other


def matrix(released):
    return released[..., D:].reshape(*released.shape[:-1], D, D)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_a_row_moves_a_step_by_its_norm_at_most(lookup, relation):
    rng, farthest = np.random.default_rng(5), 0
    sense = 2 if relation == "replace" else 1
    for _ in range(PAIRS // 4):
        numbers = nasty(rng, KINDS, D)
        one, two = (walked(lookup, rows, numbers, relation, bound=2.0)[0] for rows in neighbours(rng, relation))
        moved = (one - two) * (UNITS / 2)
        assert (moved == np.rint(moved)).all()
        square = sum(int(each) ** 2 for each in moved)
        assert square <= (sense * UNITS) ** 2
        farthest = max(farthest, square)
    assert farthest > (0.9 * UNITS) ** 2, "rows of that norm count"


def test_a_row_is_shortened_to_its_norm_and_counts_wherever_it_stands(lookup):
    """One row, 31, 32, 33, ..., 300 of them: none is lost, and none counts twice."""
    numbers = np.zeros((KINDS, D))
    numbers[0], numbers[1] = [3.0, 0.0, -4.0], [0.25, 0.0, 0.0]
    for relation in ("replace", "add_remove"):
        for count in (1, 31, 32, 33, 64, 127, 128, 129, 300):
            found = walked(lookup, np.zeros(count, dtype=int), numbers, relation)[0]
            np.testing.assert_allclose(found, count * np.array([0.6, 0.0, -0.8]), rtol=1e-6)
            assert walked(lookup, np.ones(count, dtype=int), numbers, relation)[0][0] == count / 4
    assert walked(lookup, np.zeros(0, dtype=int), numbers, "add_remove").tolist() == [[0.0] * D]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_products_of_a_row_move_by_the_square_of_its_norm(lookup, relation):
    """In the norm of the noise, which is less off the diagonal; together with the sum by what the event says."""
    rng, sense = np.random.default_rng(6), 2 if relation == "replace" else 1
    for _ in range(PAIRS // 8):
        numbers = nasty(rng, KINDS, D)
        found = [walked(lookup, rows, numbers, relation, products=LITTLE)[0] for rows in neighbours(rng, relation)]
        assert all((matrix(one) == matrix(one).T).all() for one in found)
        moved = matrix(found[0] - found[1]) * 4**15
        square = sum(int(each) ** 2 for each in moved.ravel())
        assert (moved == np.rint(moved)).all() and square <= sense * 4**30, "psd matrices: one less another"
    event = batch_event(relation, 5.0, rate=0.5, products=10.0)
    assert event.noise_multiplier == pytest.approx((5.0**-2 + 10.0**-2) ** -0.5)
    assert Fraction(event.noise_multiplier) ** -2 > Fraction(1, 25) + Fraction(1, 100), "rounded down"


def test_products_are_those_of_the_rows(lookup):
    rng = np.random.default_rng(7)
    numbers = rng.normal(size=(KINDS, D))
    rows = rng.integers(0, KINDS, 1000)
    held = numbers * np.minimum(1, 1 / np.linalg.norm(numbers, axis=1))[:, None]
    found = walked(lookup, rows, numbers, products=LITTLE)[0]
    np.testing.assert_allclose(found[:D], held[rows].sum(axis=0), atol=1e-3)
    np.testing.assert_allclose(matrix(found), held[rows].T @ held[rows], atol=0.1)
    centred = walked(lookup, rows, numbers, products=LITTLE, batch=1000, centred=True)[0]
    np.testing.assert_allclose(matrix(centred), np.cov(held[rows].T), atol=1e-4)


def test_a_replaced_row_moves_a_covariance_by_what_is_charged(lookup):
    """By 4 norms² over the rows at most, which is reached from one end to the other where all others are at one."""
    rng, farthest = np.random.default_rng(8), 0.0
    for trial in range(PAIRS // 4):
        numbers = nasty(rng, KINDS, D)
        rows, other = neighbours(rng, "replace")
        if trial % 2:
            numbers[1:3] = [0.6, 0.0, -0.8], [-0.6, 0.0, 0.8]
            numbers[3] = rng.normal(size=D) / 2
            rows = np.ones(len(rows), dtype=int)
            other = rows.copy()
            other[0] = rng.integers(2, 4)
        found = [
            walked(lookup, one, numbers, batch=len(rows), products=LITTLE, centred=True)[0] for one in (rows, other)
        ]
        moved = np.linalg.norm(matrix(found[0] - found[1])) * len(rows)
        assert moved <= 4 * (1 + 1e-9)
        farthest = max(farthest, moved)
    assert farthest > 4 - 1e-3
    event = batch_event("replace", 5.0, batch=4, population=9, products=20.0, centred=True)
    assert event.over_sensitivity == pytest.approx((2**2 / 5**2 + 4**2 / 20**2) ** -0.5)


def test_vectors_of_norm_1_are_no_farther_apart_than_a_covariance_is_charged_for():
    """|(v-m)(v-m)' - (w-m)(w-m)'| <= 4 for all m, v, w of norm 1 at most: the inequality itself, of real numbers."""
    rng = np.random.default_rng(9)
    v, w, m = (one / np.linalg.norm(one, axis=2, keepdims=True) for one in rng.normal(size=(3, 1, 20_000, 2)))
    v, w = (one * rng.choice([1.0, 1.0, 0.5], (1, 20_000, 1)) for one in (v, w))
    a, b = (v - m)[0], (w - m)[0]
    square = (a**2).sum(1) ** 2 + (b**2).sum(1) ** 2 - 2 * (a * b).sum(1) ** 2
    assert 15.9 < square.max() <= 16 + 1e-12


@pytest.mark.parametrize("given", [{"rate": 0.3}, {"batch": 7}])
def test_noise_of_a_step_is_as_large_as_charged_for_every_number(lookup, given):
    """Sums, products and entries off the diagonal: each with noise of its own."""
    scale, products, steps, bound = 1.5, 4.0, 4000, 0.5
    with insecure_randomness(3):
        found = walked(
            lookup, np.zeros(20, dtype=int), np.zeros((KINDS, D)), steps=steps, scale=scale, products=products,
            bound=bound, **given,
        )  # fmt: skip
    lower = np.tril_indices(D)
    drawn = np.hstack([found[:, :D] / bound, matrix(found)[:, *lower] / bound**2])
    wanted = np.append(np.full(D, scale), np.where(lower[0] == lower[1], products, products / math.sqrt(2)))
    np.testing.assert_allclose(drawn.std(axis=0) / wanted, 1, atol=0.06)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(len(wanted))).max() < 0.08
    assert stats.kstest((drawn / wanted).ravel(), "norm").pvalue > 1e-4
    centred = walked(
        lookup, np.zeros(20, dtype=int), np.zeros((KINDS, D)), steps=steps, scale=scale, products=products,
        bound=bound, batch=7, centred=True,
    )  # fmt: skip
    np.testing.assert_allclose(matrix(centred)[:, 1, 1].std() / bound**2 * 7 / products, 1, atol=0.06)


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_poisson_batches_hold_each_row_independently(rate):
    rng, n_rows, draws = np.random.default_rng(0), 50, 20_000
    places, seen = np.empty(n_rows, dtype=np.int64), np.zeros((draws, n_rows), dtype=bool)
    for i in range(draws):
        count = poisson_rows(rng, n_rows, waiting(rate), -1, places)
        seen[i, places[:count]] = True
        assert (np.diff(places[:count]) > 0).all()
    if rate == 1:
        assert seen.all()
        return
    grid = np.arange(n_rows + 2)
    expected = stats.binom(n_rows, rate).cdf(grid - 1)
    sizes = seen.sum(axis=1) + rng.random(draws)
    assert stats.ks_1samp(sizes, lambda x: np.interp(x, grid, expected)).pvalue > 1e-4
    assert np.abs(seen.mean(axis=0) - rate).max() < 5 * np.sqrt(rate * (1 - rate) / draws)
    assert np.abs(np.corrcoef(seen.T) - np.eye(n_rows)).max() < 6 / np.sqrt(draws)


def test_fixed_batches_are_uniform_sets():
    rng, n_rows, batch, draws = np.random.default_rng(0), 8, 3, 30_000
    keys, places, counts = np.empty(8, dtype=np.int64), np.empty(n_rows, dtype=np.int64), {}
    for _ in range(draws):
        assert fixed_rows(rng, n_rows, batch, keys, places) == batch
        found = frozenset(places[:batch].tolist())
        assert len(found) == batch
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == 56
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_every_step_has_a_batch_of_its_own_of_any_size(lookup):
    """Poisson batches that are larger than expected are worked off in parts."""
    numbers = np.zeros((KINDS, D))
    numbers[0, 0] = 1.0
    for relation, given, spread in (("replace", {"batch": 300}, 0), ("add_remove", {"rate": 0.3}, math.sqrt(210))):
        found = walked(lookup, np.zeros(1000, dtype=int), numbers, relation, steps=400, **given)[:, 0]
        assert abs(found.mean() - 300) < 5 and abs(found.std() - spread) < 3
    few = walked(lookup, np.zeros(1000, dtype=int), numbers, "add_remove", rate=1e-4, steps=2000)[:, 0]
    assert few.max() >= 1 and abs(few.mean() - 0.1) < 0.05


def spread(x):
    """1, but -1 where a mean overflows that would not, summed otherwise."""
    return pt.stack([pt.switch(pt.isinf(pt.mean(pt.stack([x, x, x, x]) * 1e308)), -1.0, 1.0)])


@pytest.mark.filterwarnings("ignore:overflow")  # PyTensor, which tries 1e308 in fewer bits
def test_all_rows_of_batches_are_mapped_by_one_graph(monkeypatch):
    """By two, a row in the batch or not would move others."""
    x, t = pt.scalar("x"), pt.vector("t", shape=(1,))
    made = RowMap({"x": x}, [t], spread(x) + 0 * t)
    for relation in ("add_remove", "replace"):
        found = [
            walked(made, {"x": np.ones(n)}, [0.0], relation, size=1, bound=2.0).item() for n in (31, 32, 64, 129, 160)
        ]
        assert [abs(each) for each in found] == [31, 32, 64, 129, 160] and len({each > 0 for each in found}) == 1


X, Y, T = pt.vector("x", shape=(5,)), pt.scalar("y", dtype="int64"), pt.vector("t", shape=(5,))
SCORE = (X * T).sum()
GRAPHS = {
    "logistic": pt.switch(pt.eq(Y, 1), pt.sigmoid(-SCORE), -pt.sigmoid(SCORE)) * X,
    "Poisson": (Y - pt.exp(SCORE)) * X,
    "functions": pt.gammaln(X**2 + 1) + pt.digamma(pt.abs(X) + 0.5) * pt.tanh(T),
    "many terms": pt.stack([pt.logsumexp(X * T), pt.log1p(pt.exp(X)).sum(), (pt.exp(X) / pt.exp(X).sum())[1]]),
    "values that are read": pt.stack([T[Y], X[Y] / T[Y], pt.sqrt(X[0])]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_row_of_a_batch_has_the_same_bits_wherever_it_stands(name):
    """In blocks of any size, beside rows that are NaN, infinite or huge: as among copies of itself."""
    made, rng = RowMap({"x": X, "y": Y}, [T], GRAPHS[name]), np.random.default_rng(0)
    width = 3 if name in ("many terms", "values that are read") else 5
    assert made.of_batches(width)[2] == LANES
    x, y, t = nasty(rng, 400, 5), rng.integers(0, 4, 400), rng.normal(size=5)

    def mapped(places):
        out = np.empty((len(places), width))
        made._blocks(x[places], y[places], t, out)
        return out

    for _ in range(60):
        row, count = int(rng.integers(400)), 32 * int(rng.integers(1, 5))
        places, at = rng.integers(0, 400, count), int(rng.integers(count))
        places[at] = row
        assert np.array_equal(mapped(places)[at], mapped(np.full(32, row))[0], equal_nan=True)


def test_a_graph_that_does_not_treat_rows_alike_is_not_used(monkeypatch):
    x, t = pt.scalar("x"), pt.vector("t", shape=(1,))

    def uneven(self):
        made = by_blocks(self)

        @numba.njit
        def blocks(x, t, out):
            made(x, t, out)
            out[5] *= 1 + 1e-15

        return blocks

    by_blocks = RowMap._by_blocks
    monkeypatch.setattr(RowMap, "_by_blocks", uneven)
    made = RowMap({"x": x}, [t], pt.stack([x]) + 0.25 * t)
    assert made.of_batches(1)[2] == 1
    assert walked(made, {"x": np.full(40, 0.25)}, [1.0], size=1).item() == 20
    wrong = RowMap({"x": x}, [t], pt.stack([x]) + 0.25 * t)
    assert wrong.of_batches(2)[2] == wrong.of_batches(1)[2] == 1  # of a wrong width all is NaN, and alike
    assert RowMap({"x": x}, [t], pt.stack([pt.sqrt(x - 10)]) + t).of_batches(1)[2] == 1
    monkeypatch.undo()
    assert RowMap({"x": x}, [t], pt.stack([x]) + 0.25 * t).of_batches(1)[2] == LANES


def test_rows_are_read_as_they_are_held(tmp_path):
    """Narrow floats, flags, strides and maps of files: widened when they are taken, and never copied where they fit."""
    x, g, t = pt.vector("x", shape=(2,)), pt.scalar("g", dtype="int64"), pt.vector("t", shape=(2,))
    made = RowMap({"x": x, "g": g}, [t], t * x * g)
    wide = np.arange(80.0).reshape(40, 2) / 512
    np.save(tmp_path / "x.npy", wide)
    held = [
        wide,
        wide.astype(np.float32),
        wide.astype(">f8"),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        wide.T.copy().T,
    ]
    for g in (np.ones(40, dtype=bool), np.ones(40, dtype=np.int8), np.ones(40, dtype=np.uint16)):
        for one in held if g.dtype == bool else held[:1]:
            found = walked(made, {"x": one, "g": g}, [1.0, 0.5], size=2, bound=64.0)[0]
            assert found.tolist() == [wide[:, 0].sum(), wide[:, 1].sum() / 2]


def test_all_steps_are_charged_at_once_before_anything_is_read(lookup):
    ledger = Ledger(1.0, 1e-6)
    columns, given = {"i": np.zeros(100, dtype=int)}, {"size": D, "bound": 1.0, "rate": 0.1}
    with pytest.raises(BudgetExceeded):
        BatchWalk(columns, LedgerAccount(ledger), lookup, scale=0.5, steps=1000, **given)
    walk = BatchWalk(columns, LedgerAccount(ledger), lookup, scale=30.0, steps=10, **given)
    event = batch_event("replace", 30.0, rate=0.1)
    assert [entry.event for entry in ledger.history] == [repeated(event, 10)]
    state = State(np.zeros(KINDS * D), np.zeros((10, D)), False)
    walk.walk(ask, take, state, 4)
    with pytest.raises(BudgetExceeded, match="7 steps are asked for, and 6 are left"):
        walk.walk(ask, take, state, 7)
    walk.walk(ask, take, state, 6)
    with pytest.raises(BudgetExceeded, match="0 are left"):
        walk.walk(ask, take, state, 1)
    with pytest.raises(PrivacyError, match="cannot be copied or pickled"):
        pickle.dumps(walk)


def test_a_step_that_fails_is_paid_for_and_tells_nothing(lookup):
    columns = {"i": np.zeros(10, dtype=int)}
    walk = BatchWalk(columns, Rehearsal("replace"), lookup, size=D, bound=1.0, scale=1.0, rate=1.0, steps=3)
    with pytest.raises(ReleaseError) as caught:
        walk.walk(ask, take, State(np.zeros(KINDS * D), np.zeros((3, D)), True), 1)
    assert "no step" not in str(caught.value) and caught.value.__context__ is None and walk.left == 2
    walk.compile(ask, take, State(np.zeros(KINDS * D), np.zeros((0, D)), True))
    assert walk.left == 2, "nothing is walked where it is compiled"
    assert walk.guarantee == "none"


def test_a_walk_that_is_paid_for_has_noise_wherever_its_steps_are_made(lookup):
    """Its generator is made with it: a test that replaces randomness later changes nothing, and one before is told."""
    ledger, rows = Ledger(1e6, 0.5), {"i": np.zeros(10, dtype=int)}
    given = {"size": D, "bound": 1.0, "scale": 5.0, "rate": 1.0, "steps": 4}
    with without_noise(), pytest.raises(PrivacyError, match="cannot run inside"):
        BatchWalk(rows, LedgerAccount(ledger), lookup, **given)
    assert not ledger.history
    walk, state = (
        BatchWalk(rows, LedgerAccount(ledger), lookup, **given),
        State(np.zeros(1200), np.zeros((4, D)), False),
    )
    assert walk.guarantee == "exact"
    with without_noise():
        walk.walk(ask, take, state, 4)
    assert state.seen.std() > 1
    with insecure_randomness(1):
        walk = BatchWalk(rows, LedgerAccount(ledger), lookup, **given)
    assert walk.guarantee == "none"
    walk = BatchWalk(rows, Rehearsal("replace"), lookup, **given)
    with without_noise():
        walk.walk(ask, take, state, 2)
    walk.walk(ask, take, state, 2)
    assert state.seen[:2].std() > 1, "noise is back"


def test_less_noise_or_more_steps_are_not_covered_by_what_was_paid():
    def steps(scale, count):
        return repeated(batch_event("replace", scale, rate=0.1), count)

    paid = steps(2.0, 10)
    assert covers(paid, paid) and covers(paid, steps(3.0, 10)) and covers(paid, steps(2.0, 9))
    assert not covers(paid, steps(1.9, 10)) and not covers(paid, steps(2.0, 11))
    assert not covers(steps(2.0, 1), paid)


ROW = {"i": np.zeros(10, dtype=int)}
WRONG = [
    ({"rate": 0.1, "batch": 2}, "Give one of them"),
    ({}, "Give one of them"),
    ({"rate": 1.5}, r"sample_rate must lie in \(0, 1\]"),
    ({"rate": 0.1, "scale": 0.0}, "scale must be finite and > 0"),
    ({"rate": 0.1, "scale": 1e12}, "too large for whole numbers"),
    ({"rate": 0.1, "products": 1e10}, "too large for whole numbers"),
    ({"rate": 0.1, "bound": 1e200}, r"bound must lie in"),
    ({"rate": 0.1, "products": 1.0, "centred": True}, "A covariance has products"),
    ({"batch": 1, "products": 1.0, "centred": True}, "A covariance has products"),
    ({"batch": 2, "centred": True}, "A covariance has products"),
    ({"rate": 0.1, "products": 1.0, "centred": 1}, "centred must be True or False"),
    ({"batch": 11}, "batch_size"),
    ({"rate": 0.1, "size": 2**15}, "size must be a whole number from 1 to 16384"),
    ({"rate": 0.1, "steps": 0}, "steps must be a whole number"),
    ({"rate": 0.1, "columns": {}}, "all of one length"),
    ({"rate": 0.1, "columns": {"i": np.zeros(2), "j": np.zeros(3)}}, "all of one length"),
    ({"rate": 0.1, "columns": {"i": np.zeros((2, 2, 2))}}, "one or two axes"),
    ({"rate": 0.1, "columns": {"i": np.array(["a"])}}, "array of numbers"),
    ({"rate": 0.1, "columns": {"j": np.zeros(3)}}, "no column of the table"),
    ({"rate": 0.1, "columns": {"i": np.zeros(3)}}, "holds float64"),
]


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_what_is_refused_is_charged_nothing(lookup, given, words):
    account, given = Rehearsal("replace"), {"scale": 9.0, "bound": 1.0, "size": D, "steps": 1, **given}
    with pytest.raises(ArgumentError, match=words):
        BatchWalk(given.pop("columns", ROW), account, lookup, **given)
    assert account.events == []


def test_row_maps_and_followers_of_other_kinds_are_refused(lookup):
    class Own(RowMap):
        pass

    account, given = Rehearsal("replace"), {"scale": 9.0, "bound": 1.0, "size": 1, "steps": 1, "rate": 0.1}
    x, two, short = pt.scalar("x"), pt.scalar("a"), pt.vector("t")
    for rowmap in (Own({"x": x}, [pt.vector("t", shape=(1,))], pt.stack([x])), object()):
        with pytest.raises(ArgumentError, match="of no class derived from it"):
            BatchWalk({"x": np.zeros(3)}, account, rowmap, **given)
    for parameters in ([], [two], [short]):
        with pytest.raises(ArgumentError, match="one vector of parameters"):
            BatchWalk({"x": np.zeros(3)}, account, RowMap({"x": x}, parameters, pt.stack([x])), **given)
    for relation in ("person:id", "metric"):
        with pytest.raises(ArgumentError, match="neighbours must be"):
            BatchWalk(ROW, Rehearsal(relation), lookup, **{**given, "size": D})
    with pytest.raises(ArgumentError, match="neighbours='add_remove'"):
        BatchWalk(ROW, Rehearsal("add_remove"), lookup, size=D, bound=1.0, scale=1.0, steps=1, batch=3)
    assert account.events == []
    walk = BatchWalk(ROW, account, lookup, **{**given, "size": D})
    with pytest.raises(ArgumentError, match="that Numba compiles"):
        walk.walk(ask.py_func, take, None, 1)
    with pytest.raises(ArgumentError, match="must return nothing"):
        walk.walk(numba.njit(lambda state, step, parameters: 1.0), take, State(np.zeros(3), np.zeros((1, D)), False), 1)
    assert isinstance(account.events[0][1], SubsampledGaussianEvent) and walk.left == 1
