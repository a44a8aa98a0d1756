"""No value of a row makes a compiled function over rows raise, or end its process."""

import itertools
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.tensor.elemwise import Elemwise

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.step_methods.numpy_functions import compiled
from pymc_dp.step_methods.row_functions.builder import compiled_rows

LEAST = np.iinfo(np.int64).min
WHOLE = [0, 1, -1, 2, 5, -3, 63, -64, 2**62, LEAST, 2**63 - 1]
FLOATS = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, -3.5, 0.5, 1.0]


def hostile(*kinds):
    """Return columns with every combination of these values."""
    return [np.array(column) for column in zip(*itertools.product(*kinds), strict=True)]


def by_numba(inputs, outputs):
    return compiled_rows(inputs, outputs, "NUMBA")


def by_numpy(inputs, outputs):
    return compiled(inputs, outputs)


def evaluated(build, *kinds, dtypes, by=by_numba):
    inputs = [pt.vector(f"column_{i}", dtype=dtype) for i, dtype in enumerate(dtypes)]
    with np.errstate(all="ignore"):
        columns = [column.astype(dtype) for column, dtype in zip(hostile(*kinds), dtypes, strict=True)]
        (result,) = by(inputs, [build(*inputs)])(*columns)
    return columns, result


@pytest.mark.few(3)
@pytest.mark.parametrize("by", [by_numba, by_numpy])
@pytest.mark.parametrize("base", ["float64", "float32", "int64", "int8", "uint8", "bool"])
def test_powers_of_whole_numbers_have_a_result(base, by):
    values = FLOATS if base.startswith("float") else WHOLE
    (bases, exponents), found = evaluated(lambda x, k: x**k, values, WHOLE, dtypes=[base, "int64"], by=by)
    assert len(found) == len(bases)
    small = (np.abs(exponents) < 6) & (exponents >= 0) & (np.abs(bases.astype(float)) <= 5)
    expected = bases[small].astype(float) ** exponents[small]
    np.testing.assert_allclose(found[small].astype(float), expected, rtol=1e-6)


REMAINDERS = """
import numpy as np, pytensor.tensor as pt
from pymc_dp.step_methods.numpy_functions import compiled
from pymc_dp.step_methods.row_functions.builder import compiled_rows
inputs, outputs, values = [], [], []
for dtype in ("int8", "int32", "int64"):
    least = np.iinfo(dtype).min
    x, k = pt.vector("x", dtype=dtype), pt.vector("k", dtype=dtype)
    inputs += [x, k]
    outputs += [x % k, x % pt.constant(-1, dtype=dtype)]
    rows = zip((least, -1), (5, -1), (5, 0), (-7, 3), (7, -3))
    values += [np.array(list(column), dtype=dtype) for column in rows]
found = compiled_rows(inputs, outputs, "NUMBA")(*values)
for by_column, by_constant in zip(found[::2], found[1::2]):
    print(*by_column, *by_constant)
"""


def test_remainders_have_a_result_and_end_no_process():
    done = subprocess.run([sys.executable, "-c", REMAINDERS], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["0 0 0 2 -2 0 0 0 0 0"] * 3


CASES = {
    "whole quotient": (lambda x, k: x // k, ["int64", "int64"]),
    "quotient": (lambda x, k: x / k, ["int64", "int64"]),
    "reciprocal": (lambda x, k: 1 / x + 1 / k, ["int64", "float64"]),
    "remainder of floats": (lambda x, k: x % k, ["float64", "float64"]),
    "whole quotient of floats": (lambda x, k: x // k, ["float64", "float64"]),
    "power of floats": (lambda x, k: x**k, ["float64", "float64"]),
    "logarithms": (lambda x, k: pt.log(x) + pt.log1p(k) + pt.sqrt(x), ["int64", "float64"]),
    "gamma functions": (lambda x, k: pt.gammaln(x) + pt.psi(k) + pt.gammainc(x, k), ["float64", "float64"]),
    "casts": (lambda x, k: pt.cast(x, "int64") + pt.cast(k, "uint8"), ["float64", "float64"]),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES)
def test_other_arithmetic_has_a_result(case):
    build, dtypes = CASES[case]
    kinds = [FLOATS if dtype == "float64" else WHOLE for dtype in dtypes]
    columns, found = evaluated(build, *kinds, dtypes=dtypes)
    assert len(found) == len(columns[0])


class Failing(ps.UnaryScalarOp):
    """An operation of a user's own, which fails for negative numbers."""

    def impl(self, x):
        if x < 0:
            raise ValueError("negative")
        return x


def test_scalar_operations_that_are_not_of_pytensor_are_refused():
    operation = Elemwise(Failing(ps.upgrade_to_float, name="failing"))
    with pm.Model() as model:
        b = pm.Normal("b")
        pm.Normal("y", b * operation(pm.Data("x", np.ones(5))), 1.0, observed=np.zeros(5))
    inspection = inspect(model, Domain(bounds={"x": (-1, 1), "y": (-1, 1)})).rows
    assert any("is not one of PyTensor's or PyMC's own" in problem.what for problem in inspection.problems)
