"""A pair of bounds per column of a design matrix: what is released is that of the same columns one by one."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
EACH = [(1, 1), (0, 1), (-4, 4)]
WIDE = dp.Domain(bounds={"X": EACH, "y": (0, 200)})
APART = dp.Domain(bounds={"flag": (0, 1), "score": (-4, 4), "y": (0, 200)})
FLAG = np.tile([0.0, 1.0, 1.0, 0.0, 1.0], 20)
SCORE = np.linspace(-3, 3.5, 100)
Y = 80 + 5 * FLAG + 9 * SCORE
X = np.column_stack([np.ones(100), FLAG, SCORE])


def of_a_matrix(rows=X, mean=lambda X, b: X @ b):
    with pm.Model() as model:
        b, sd = pm.Normal("b", 0, 50, shape=3), pm.HalfNormal("sd", 30)
        pm.Normal("y", mean(pm.Data("X", rows), b), sd, observed=Y)
    return model


def of_columns():
    with pm.Model() as model:
        b, sd = pm.Normal("b", 0, 50, shape=3), pm.HalfNormal("sd", 30)
        flag, score = pm.Data("flag", FLAG), pm.Data("score", SCORE)
        pm.Normal("y", b[0] + b[2] * score + b[1] * flag, sd, observed=Y)
    return model


def release(model, domain, noise="laplace", exact=False):
    budget = {"epsilon": 1.0, "delta": 1e-5 if noise == "gaussian" else 0.0, "statistics": dp.Statistics(noise=noise)}
    with dp.testing.without_noise() if exact else dp.testing.insecure_randomness(1):
        return dp.Release.of(dp.privatize(model, domain=domain, **budget))


def exact(model, domain):
    return release(model, domain, exact=True).tables["y"]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbours", [{}, {"neighbours": "add_remove", "n_max": 200}])
def test_sums_and_their_noise_are_those_of_columns_one_by_one(noise, neighbours):
    def of(model, bounds):
        (table,) = release(model, dp.Domain(bounds=bounds, **neighbours), noise).record.tables
        return table

    one, other = of(of_a_matrix(), WIDE.bounds), of(of_columns(), APART.bounds)
    assert one.scales == other.scales and one.sensitivities == other.sensitivities
    assert len(of(of_a_matrix(), {"X": (-4, 4), "y": (0, 200)}).columns) > len(one.columns)
    assert exact(of_a_matrix(), WIDE).tolist() == exact(of_columns(), APART).tolist()


def test_rows_outside_count_as_rows_clamped_column_by_column():
    """Rows beyond the bounds of their own columns, within those of others, and what they are clamped to."""
    wild, inside = X.copy(), X.copy()
    wild[:6], inside[:6] = (
        [[0, 3, 9], [-2, -2, -9], [np.nan, np.nan, np.nan], [np.inf, -np.inf, np.inf], [3, 0.25, 4], [1, 4, -4]],
        [[1, 1, 4], [1, 0, -4], [1, 0.5, 0], [1, 0, 4], [1, 0.25, 4], [1, 1, -4]],
    )
    model, tables = of_a_matrix(), []
    for rows in (wild, inside):
        model["X"].set_value(rows)
        tables.append(exact(model, WIDE))
    np.testing.assert_array_equal(*tables)


def test_a_range_is_found_with_the_bounds_of_each_column():
    """The range of a row is that of columns one by one, and less than that of the widest pair for all."""
    with pm.Model() as apart:
        b = pm.TruncatedNormal("b", 0, 1, lower=-1, upper=1, shape=3)
        mean = b[0] + b[1] * pm.Data("flag", FLAG) + b[2] * pm.Data("score", SCORE)
        pm.Bernoulli("y", logit_p=mean, observed=FLAG.astype(int))
    with pm.Model() as matrix:
        b = pm.TruncatedNormal("b", 0, 1, lower=-1, upper=1, shape=3)
        pm.Bernoulli("y", logit_p=pm.Data("X", X) @ b, observed=FLAG.astype(int))
    ranges = [
        dp.sensitivity(model, dp.Domain(bounds=bounds)).range.value
        for model, bounds in (
            (apart, {"flag": (0, 1), "score": (-4, 4)}),
            (matrix, {"X": EACH}),
            (matrix, {"X": (-4, 4)}),
        )
    ]
    assert ranges[0] == pytest.approx(ranges[1], rel=1e-6) and ranges[1] < 0.75 * ranges[2]


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"bounds": {"X": [(1, 1), (4, -4)]}}, ["bounds['X'][1]", "low <= high", "(4.0, -4.0)"]),
        ({"bounds": {"X": [(1, 1), (2, 2)]}}, ["bounds['X']", "[(1, 1), (2, 2)]", "leave an array of constants out"]),
        ({"bounds": {"X": [(1, 1), 3]}}, ["bounds['X'][1]", "pair (low, high)", "3"]),
        ({"bounds": {"X": [(0, 1), (0, np.inf)]}}, ["bounds['X'][1] high", "finite", "inf"]),
        ({"bounds": {"X": np.zeros((2, 3))}}, ["bounds['X'][0]", "pair (low, high)"]),
        ({"bounds": {"X": EACH}, "norms": {"X": 3}}, ["'X'", "only one of them"]),
        ({"bounds": {"w": [(0, 1), (0, 2)]}, "weights": {"y": "w"}}, ["weights names 'w'", "bounds={'w': (0, high)}"]),
    ],
)
def test_pairs_that_say_nothing_are_refused(arguments, texts):
    with pytest.raises((dp.errors.DomainError, dp.errors.ArgumentError)) as caught:
        dp.Domain(**arguments)
    assert all(text in str(caught.value) for text in texts)
