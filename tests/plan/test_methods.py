"""Which methods are compared, and what they are called."""

import pytest

from pymc_dp import Statistics
from pymc_dp.errors import ArgumentError
from pymc_dp.plan.fits import named_methods


@pytest.mark.parametrize(
    ("noise", "statistics", "match"),
    [
        ("laplace", Statistics(), "both say what to compare"),
        ("lapalce", None, "Did you mean 'laplace'"),
        ([], None, "noise must name"),
        (None, [], "at least one"),
        (None, ["laplace"], r"must be dp\.Statistics"),
        (None, {"a": "laplace"}, r"must be dp\.Statistics"),
    ],
)
def test_others_are_refused(noise, statistics, match):
    with pytest.raises(ArgumentError, match=match):
        named_methods(noise, statistics, 1e-6)
