"""Formulas of one row: values as PyTensor's, whatever stands beside a row; ranges that hold them; names that differ."""

import numpy as np
import pytensor
import pytensor.scalar.basic as ops
import pytensor.tensor as pt
import pytest
from pytensor.tensor.elemwise import Elemwise

from pymc_dp.inspection.computed.expressions import WRITTEN, Entry, Number, Program, applied, name_of, range_of
from pymc_dp.inspection.rows import Column

QUOTIENTS = (ops.TrueDiv, ops.IntDiv, ops.Mod)
LOGIC = (ops.AND, ops.OR, ops.XOR, ops.Invert)


def column(name, low, high, dtype="float64", width=()):
    return Column(name=name, leaf=pt.constant(np.zeros((4, *width), dtype=dtype)), bounds=(low, high))


X, Z, H = column("x", 1.0, 3.0), column("z", -2.0, 2.0), column("H", 0.0, 1.0, "int64")
x, z, h = (Entry(one, 0) for one in (X, Z, H))


def arguments(kind):
    return {ops.Switch: 3, ops.Clip: 3}.get(kind, WRITTEN[kind][0].count("{}"))


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.__name__)
def test_an_operation_is_that_of_pytensor_and_lies_in_its_range(kind, rng):
    others = {ops.Switch: [h, z, x], ops.Clip: [z, h, x], **{one: [z, x] for one in QUOTIENTS}}
    given = others.get(kind, [h, h] if kind in LOGIC else [x, z])[: arguments(kind)]
    formula = applied(kind, *given)
    rows = {X: rng.uniform(1, 3, 500), Z: rng.uniform(-2, 2, 500), H: rng.integers(0, 2, 500)}
    read = list(dict.fromkeys(entry.column for entry in given))
    found = Program.of(read, formula).values([rows[one] for one in read], 500)
    boolean = [rows[one.column].astype(bool) if kind in LOGIC else rows[one.column] for one in given]
    graph = Elemwise(instance_of(kind))(*map(pt.as_tensor, boolean))
    np.testing.assert_allclose(found, pytensor.function([], graph, mode="FAST_COMPILE")().astype(float), rtol=1e-14)
    low, high = range_of(formula)
    slack = 1e-11 * max(abs(low), abs(high))
    assert low - slack <= found.min() and found.max() <= high + slack


def instance_of(kind):
    """The operation as PyTensor makes it."""
    return next(one for module in (ops, pytensor.scalar.math) for one in vars(module).values() if type(one) is kind)


def test_a_value_does_not_depend_on_where_its_row_stands(rng):
    formula = applied(ops.Mul, applied(ops.Exp, applied(ops.Sin, z)), applied(ops.Log, x))
    program = Program.of([Z, X], formula)
    rows = [rng.uniform(-2, 2, 1000), rng.uniform(1, 3, 1000)]
    whole, order = program.values(rows, 1000), rng.permutation(1000)
    assert (program.values([one[order] for one in rows], 1000) == whole[order]).all()
    alone = [program.values([one[k : k + 1] for one in rows], 1)[0] for k in range(1000)]
    assert (whole == alone).all()


@pytest.mark.parametrize(
    "formula",
    [applied(ops.Log, z), applied(ops.TrueDiv, x, z), applied(ops.Sqrt, z), applied(ops.Log, applied(ops.Abs, z))],
)
def test_what_may_be_no_number_has_no_range(formula):
    assert range_of(formula) is None


def test_columns_called_like_formulas_make_no_two_formulas_alike():
    a, b, c, sum_of_two, quoted, three = (
        Entry(column(name, 0.0, 1.0), 0) for name in ("a", "b", "c", "a + b", "`a + b`", "3")
    )
    wide = Entry(column("a", 0.0, 1.0, width=(2,)), 0)
    entry = Entry(column("a[0]", 0.0, 1.0), 0)
    formulas = [
        applied(ops.Sub, applied(ops.Add, a, b), c),
        applied(ops.Sub, sum_of_two, c),
        applied(ops.Sub, quoted, c),
        applied(ops.Sub, three, c),
        applied(ops.Sub, Number(3.0), c),
        applied(ops.Sub, wide, c),
        applied(ops.Sub, entry, c),
    ]
    assert len({name_of(one) for one in formulas}) == len(formulas)
