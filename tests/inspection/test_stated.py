"""What a density may state of its statistics, and what is refused."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import ArgumentError


def density(**options):
    return pm.CustomDist(
        "y", pm.Normal("a", shape=2), logp=lambda value, a: -((value - a) ** 2).sum(axis=-1), signature="(k)->(k)",
        observed=np.zeros((5, 2)), **options,
    )  # fmt: skip


def state(statistics=lambda row: [row[0]], **changed):
    given = {"bounds": (0, 1), "moments": lambda a: ([a[0]], [[a[1]]])} | changed
    with pm.Model() as model:
        dp.models.with_statistics(density(), statistics, **given)
    return model


@pytest.mark.parametrize("build", [
    lambda: pm.Normal("y", observed=np.zeros(3)),
    lambda: pm.CustomDist("y", logp=lambda value: value, observed=np.zeros(3)),
    lambda: pm.CustomDist("y", dist=lambda size: pm.Normal.dist(size=size), observed=np.zeros(3)),
    lambda: pt.vector("y"),
    lambda: "y",
])  # fmt: skip
def test_only_densities_of_vectors_state_statistics(build):
    with pm.Model(), pytest.raises(ArgumentError, match="what pm.CustomDist returned for rows that are vectors"):
        dp.models.with_statistics(build(), lambda row: [row[0]], bounds=(0, 1), moments=lambda: ([0.0], [[1.0]]))


SHARED = pytensor.shared(np.ones(2), name="held")


@pytest.mark.parametrize(
    ("statistics", "text"),
    [
        (lambda row: row[0], "got 0 axes"),
        (lambda row: [], "must return numbers or tensors"),
        (lambda row: [row[0] * SHARED[0]], "depend on 'held'"),
        (lambda row: [pt.scalar("other")], "depend on 'other'"),
        (lambda row: [pt.constant(1.0)], "none at all"),
        (lambda row: [pt.arange(5.0)[row[0].astype("int64")]], "is indexed by a row-level column"),
        (lambda row: [pt.linalg.cholesky(pt.outer(row, row))[0, 0]], "not known to be defined for every row by itself"),
        (lambda row: "text", "must return numbers or tensors"),
        (3, "statistics must be"),
    ],
)
def test_statistics_are_functions_of_one_row(statistics, text):
    with pytest.raises(ArgumentError, match=text):
        state(statistics)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"bounds": (1, 0)}, "low < high"),
        ({"bounds": (0, np.inf)}, "finite"),
        ({"bounds": [(0, 1), (0, 1)]}, "1 such pairs"),
        ({"bounds": "wide"}, "1 such pairs"),
        ({"moments": lambda a: a}, "moments"),
        ({"moments": lambda a: ([a[0]], [a[0]])}, "a mean and a covariance of shapes"),
        ({"moments": lambda a: ([a[0], a[1]], [[a[0]]])}, "a mean and a covariance of shapes"),
        ({"moments": lambda a: ([a[0] * SHARED[0]], [[a[0]]])}, "moments depend on 'held'"),
        ({"moments": None}, "moments must be"),
        ({"log_likelihood": lambda sums, size, a: sums}, "one number, got 1 axes"),
        ({"log_likelihood": lambda sums, size, a: SHARED[0]}, "log_likelihood depend on 'held'"),
        ({"values": (1, 1)}, r"values\[1\]"),
        ({"values": (0.5, 2)}, r"values\[0\]"),
        ({"values": 3}, "values"),
        ({"names": ["one", "two"]}, "1 different texts"),
    ],
)
def test_every_argument_is_checked(changed, text):
    with pytest.raises(ArgumentError, match=text):
        state(**changed)
