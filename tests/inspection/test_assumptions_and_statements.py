"""What is assumed public is listed, and what a density may state of its statistics."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dp as dp

ROWS = np.arange(7.0)
SHIFT = 0.123


def custom(mu, **kwargs):
    shifted = {
        "logcdf": lambda x, mu: pm.logcdf(pm.Normal.dist(mu + SHIFT, 1), x),
        "logp": lambda x, mu: -((x - mu) ** 2),
    }
    return pm.CustomDist("y", mu, **shifted, **kwargs)


WRITTEN = {
    "density": custom,
    "draws": lambda mu, **kwargs: pm.CustomDist(
        "y", mu, dist=lambda mu, size: pm.Normal.dist(mu + SHIFT, 1, size=size), **kwargs
    ),
    "a part": lambda mu, **kwargs: pm.Censored(
        "y", pm.CustomDist.dist(mu, dist=lambda mu, size: pm.Normal.dist(mu + SHIFT, 1, size=size)), -5, 5, **kwargs
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_functions_written_by_hand_are_listed_since_numbers_may_hide_in_them(name):
    with pm.Model() as model:
        WRITTEN[name](pm.Normal("mu", 0, 1), observed=ROWS)
    found = dp.explain(model, dp.Domain(bounds={"y": (-9, 9)}))
    assert found.ok
    assert [line for line in found.assumptions if "functions" in line] == [
        "the functions that y is written with, and numbers in them"
    ]


TAIL = " (looks computed: was it computed from the rows?)"


def test_numbers_that_nobody_would_choose_are_asked_about():
    with pm.Model() as model:
        mu = pm.Normal("mu", -0.0736625, 1)
        tau = pm.Gamma("tau", 2, 173.2841)
        shifts = pm.Normal("shifts", np.array([0.0, 0.1234567]), 1)
        pm.Deterministic("shown", mu * 7.654321)
        pm.Normal("y", mu + shifts[0], tau, observed=ROWS)
    domain = dp.Domain(bounds={"y": (-9, 12.34567)})
    found = dp.explain(model, domain).assumptions
    for line in (
        f"numbers in the prior of mu: -0.0736625{TAIL}, 1",
        f"numbers in the prior of tau: 173.284{TAIL}, 2",
        "numbers in the prior of shifts: an array of 2 numbers without a name, 1",
        f"numbers in shown: 7.65432{TAIL}",
        f"bounds of y: (-9, 12.3457){TAIL}",
    ):
        assert line in found
    assert f"-0.0736625{TAIL}" in str(dp.explain(model, domain).full())


def test_no_text_shows_by_a_length_how_many_rows_there_are():
    """Under add_remove: an array of 5 numbers that look computed was asked about for 4 and for 6 rows, not for 5."""

    def lines(n_rows):
        means = np.array([0.1234567, 0.2345678, 0.3456789, 0.4567891, 0.5678912])
        with pm.Model(coords={"group": list("abcde")}) as model:
            b = pm.Normal("b", means, 1.0, dims="group")
            pm.Bernoulli("y", logit_p=b[pm.Data("g", np.arange(n_rows) % 5)], observed=np.arange(n_rows) % 2)
        return dp.explain(model, dp.Domain(neighbours="add_remove", n_max=1000)).assumptions

    assert lines(4) == lines(5) == lines(6)


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
    with (
        pm.Model(),
        pytest.raises(dp.errors.ArgumentError, match="what pm.CustomDist returned for rows that are vectors"),
    ):
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
    with pytest.raises(dp.errors.ArgumentError, match=text):
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
    with pytest.raises(dp.errors.ArgumentError, match=text):
        state(**changed)
