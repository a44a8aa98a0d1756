"""What is said of responses whose values cannot be enumerated."""

import numpy as np
import pytensor
import pytest

from pymc_dp.gradients.whole_values import MOST_SPREAD, too_many
from pymc_dp.inspection.rows import Column


def column(bounds: tuple[float, float] | None) -> Column:
    return Column(name="los", leaf=pytensor.shared(np.zeros(3, dtype="int32"), name="los"), bounds=bounds)


@pytest.mark.parametrize(
    ("bounds", "remedy", "what"),
    [
        (None, "los needs bounds: dp.Domain(bounds={'los': (0, high)}).", "it needs bounds that hold at most 16384"),
        ((0, 10**6), "Give bounds of los that hold fewer values", "its bounds (0, 1000000) hold more than the 16384"),
        ((5, 60), "Give bounds of los", "its bounds (5, 60) do not begin at 0"),
    ],
)
def test_bounds_that_are_given_are_not_asked_for(bounds, remedy, what):
    problem = too_many("los", column(bounds), MOST_SPREAD)
    assert problem.remedy.startswith(remedy) and what in problem.what and problem.kind == "declaration"
