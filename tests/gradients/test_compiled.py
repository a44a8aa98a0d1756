"""Functions that threads call side by side, whatever compiled them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dp.gradients.function import Function


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_threads_do_not_disturb_each_other(mode, rng):
    x, y, unused = pt.dmatrix("x"), pt.dvector("y"), pt.dvector("unused")
    function = Function([x, y, unused], [pt.tanh(x * y).cumsum(0), x.sum(1)], mode)
    assert function.places == {0, 1} and function.nodes
    arrays = [(rng.normal(size=(3000, 4)), rng.normal(size=4), None) for _ in range(40)]
    alone = [function(*one) for one in arrays]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda one: function(*one), arrays))
    for one, other in zip(alone, together, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


def test_inputs_become_what_was_compiled_for():
    x = pt.lvector("x")
    (found,) = Function([x], [x * 2], "NUMBA")(np.arange(6, dtype=np.int8)[::2])
    assert found.dtype == np.int64 and found.tolist() == [0, 4, 8]
