import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_dp.inspection.rows import array_leaves, plain_numbers, public_values, shape_of, unwrap

SHARED = pytensor.shared(np.arange(4.0), name="shared")
CONSTANT = pt.constant(np.arange(3))


def test_arrays_are_found_behind_operations_and_stopped_at_variables():
    stop = pt.exp(SHARED)
    graph = (stop.sum() + CONSTANT[:2]) * pt.scalar("s") + 3.0
    assert set(array_leaves([graph])) == {SHARED, CONSTANT}
    assert set(array_leaves([graph], [stop])) == {CONSTANT}


def test_an_array_of_one_element_may_be_a_table_of_one_row():
    one = pt.constant(np.array([7.0]))
    assert list(array_leaves([one * 2])) == []
    assert list(array_leaves([one * 2], single=True)) == [one]


def test_the_target_of_a_reshape_is_schema():
    assert list(array_leaves([pt.reshape(pt.vector("v"), np.array([2, 3]))])) == []


def test_plain_numbers_are_those_before_the_stop():
    v = pt.vector("v")
    numbers = [float(n) for n in plain_numbers([pt.exp(v * 3.5) + 2.5], []) if n.ndim == 0]
    assert sorted(n for n in numbers if n in (2.5, 3.5)) == [2.5, 3.5]


def test_unwrapping_finds_the_array_under_casts_and_views():
    codes = pytensor.shared(np.arange(3, dtype=np.int32))
    assert unwrap(pt.cast(codes, "int64")[:, None]) is codes
    assert unwrap(pt.specify_shape(SHARED, (4,))) is SHARED
    assert unwrap(SHARED + 1) is not SHARED


def test_a_cast_that_may_change_values_is_no_view():
    assert unwrap(pt.cast(SHARED, "int64")) is not SHARED


def test_rows_are_not_copied():
    assert np.shares_memory(public_values(SHARED, ()), SHARED.get_value(borrow=True))
    assert np.shares_memory(public_values(CONSTANT, ()), CONSTANT.data)
    assert (shape_of(SHARED), shape_of(CONSTANT)) == ((4,), (3,))
