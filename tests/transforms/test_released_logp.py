"""The operation around a kernel: values, gradients, second derivatives, and what compiled models are kept by."""

import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Variable

from pymc_dp.transforms import density, regression  # noqa: F401  (they bring in all operations)
from pymc_dp.transforms.released_logp import ReleasedLogp, held
from tests.transforms import quadratic_kernel


class Quadratic(ReleasedLogp):
    kernel = f"{quadratic_kernel.__name__}:quadratic"
    slopes = (1, 2)

    def graph(self, value, rate, mean):
        return -rate * ((value - mean) ** 2).sum()


class ByCells(ReleasedLogp):
    kernel = f"{quadratic_kernel.__name__}:by_cells"
    slopes = (1,)
    by_cells = True

    def graph(self, value, mean):
        return -((value[:, None] - mean) ** 2).sum(axis=1)


VALUE = np.array([1.0, -2.0, 0.5])


@pytest.fixture(params=["numba", "py"])
def evaluated(request):
    def evaluate(inputs: Sequence[Variable], outputs: Sequence[Variable], *values):
        mode = pytensor.compile.mode.Mode(linker=request.param, optimizer="fast_run")
        return pytensor.function(inputs, outputs, mode=mode)(*values)

    return evaluate


@pytest.mark.few(1)
def test_value_gradient_and_second_derivatives_are_those_of_the_graph(evaluated):
    rate, mean = pt.scalar("rate"), pt.vector("mean", shape=(3,))
    found, expected = [], []
    # One input depends on the other.
    for how, into in ((Quadratic().log_density, found), (Quadratic().graph, expected)):
        logp = how(held(VALUE), rate**2 + mean[0], 2 * mean)
        gradient = pt.concatenate([item.ravel() for item in pt.grad(logp, [rate, mean])])
        into += [logp, gradient, *pt.grad((gradient * np.array([1.0, 3.0, -1.0, 0.5])).sum(), [rate, mean])]
    results = evaluated([rate, mean], [*found, *expected], 1.3, np.array([0.2, 0.1, -0.7]))
    for one, two in zip(results[:4], results[4:], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.few(1)
def test_a_log_density_per_cell_weighs_the_gradient_of_its_cell(evaluated):
    mean, weights = pt.matrix("mean"), np.array([1.0, 0.0, -2.0])
    found, expected = (
        pt.grad((how(held(VALUE), mean) * weights).sum(), mean) for how in (ByCells().log_density, ByCells().graph)
    )
    results = evaluated([mean], [found, expected], np.arange(6.0).reshape(3, 2))
    np.testing.assert_allclose(*results)


EVALUATED = """
import numpy as np, pytensor, pytensor.tensor as pt
from numba.core import event
from pymc_dp.transforms.released_logp import held
from tests.transforms.test_released_logp import Quadratic, VALUE
mean = pt.vector("mean")
logp = Quadratic().log_density(held(VALUE), 1.0, mean)
with event.install_recorder("numba:compile") as compiled:
    print(pytensor.function([mean], pt.grad(logp, mean), mode="NUMBA")(np.ones(3)), len(compiled.buffer))
"""


@pytest.mark.slow
def test_another_process_finds_the_kernel_of_a_kept_function(tmp_path):
    env = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={tmp_path}", "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", EVALUATED], env=env, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    )
    assert first.split("]")[0] == second.split("]")[0] == "[ 0. -6. -1."
    assert int(first.split("]")[1]) > int(second.split("]")[1]) == 0
