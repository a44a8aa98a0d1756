"""Parts of a vector hold its numbers in order, in shapes and types of their own."""

import numpy as np
import pytensor.tensor as pt

from pymc_dp.inspection.one_row import parts_of


def test_every_number_is_in_one_part():
    variables = [pt.scalar("a"), pt.tensor("b", shape=(2, 3)), pt.vector("c", dtype="float32"), pt.vector("d")]
    shapes = [(), (2, 3), (1,), (0,)]
    parts = parts_of(pt.arange(8.0), variables, shapes)
    found = [parts[var].eval(mode="FAST_COMPILE") for var in variables]
    assert [one.shape for one in found] == shapes and found[2].dtype == np.float32
    assert np.concatenate([one.ravel() for one in found]).tolist() == list(range(8))
