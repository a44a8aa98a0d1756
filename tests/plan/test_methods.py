"""Which methods are compared, and what they are called."""

import pytest

from pymc_dp import Statistics
from pymc_dp.errors import ArgumentError
from pymc_dp.plan.fits import named_methods


def test_gaussian_noise_is_compared_where_there_is_a_delta_for_it():
    assert list(named_methods(None, None, 0.0)) == ["laplace"]
    assert list(named_methods(None, None, 1e-6)) == ["laplace", "gaussian"]
    assert named_methods("gaussian", None, 1e-6)["gaussian"].noise == "gaussian"


def test_statistics_are_told_apart():
    given = [Statistics(), Statistics(noise_aware=False), Statistics(share={"y": 1, "z": 2}), Statistics()]
    assert list(named_methods(None, given, 0.0)) == ["laplace", "laplace, plug-in", "laplace, y 1, z 2", "laplace (4)"]
    assert named_methods(None, Statistics(), 0.0) == {"laplace": Statistics()}
    assert list(named_methods(None, {"mine": Statistics()}, 0.0)) == ["mine"]


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
