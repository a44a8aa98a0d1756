"""At most `max_rows` rows of a person count in noised gradients, and what is left out is released, bounded and said."""

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients.left_out import MANY, RowCounts
from pymc_dp.rows.persons import Grouped, kept_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning"),
]
RNG = np.random.default_rng(8)
OWNERS = np.repeat(np.arange(400) * 3, RNG.integers(1, 8, 400))
FEW = slice(100)
X = RNG.uniform(-1, 1, len(OWNERS))
Y = RNG.binomial(1, 0.5 + 0.3 * X)


class Released(NamedTuple):
    table: Any
    numbers: np.ndarray
    event: dict


def released(owners, x, y, most, *, noise=dp.testing.without_noise, epsilon=9.0):
    """A release of a logistic regression by noised gradients of persons: record, and released numbers."""
    with pm.Model() as model:
        pm.Data("who", owners)
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("x", x), observed=y)
    unit = dp.Unit("who", max_rows=most)
    domain = dp.Domain(bounds={"x": (-1, 1)}, neighbours="add_remove", n_max=900, unit=unit)
    with noise():
        private = dp.privatize(
            model, epsilon=epsilon, delta=1e-6, statistics=dp.Gradients(steps=10), domain=domain, progressbar=False
        )
    release = dp.Release.of(private)
    return Released(release.record.tables[0], release.tables["gradients"], release.record.event)


@pytest.mark.parametrize("most", [1, 2])
def test_a_release_is_that_of_the_rows_that_are_kept(most):
    """All passes see the same rows, and each of them counts in full; none is left out of a table that has no others."""
    with dp.testing.without_noise():
        kept = kept_rows(OWNERS, most)
    assert kept.sum() < 0.7 * len(OWNERS)
    table, numbers, _ = released(OWNERS, X, Y, most)
    alone, same, _ = released(OWNERS[kept], X[kept], Y[kept], most)
    np.testing.assert_array_equal(numbers, same)
    assert table.plan["left_out"]["rows"] > 0.3 and alone.plan["left_out"]["rows"] == 0


def test_the_stated_noise_of_shares_is_what_it_is(rng):
    counts, left = RowCounts(most=2), np.repeat([0, 0, 0, 1, 5], 400)
    total = counts.rows(Grouped([], np.arange(2001) * 2, left)).sum(axis=0)
    found = [counts.read(total + rng.normal(0, 20, 4), 20.0) for _ in range(4000)]
    for name, share in (("persons", 0.4), ("rows", 2000 / 6000)):
        values = np.array([getattr(one, name).value for one in found])
        assert abs(values.mean() - share) < 0.005
        assert values.std() == pytest.approx(np.mean([getattr(one, name).deviation for one in found]), rel=0.06)
    few = counts.read(np.zeros(4), 20.0)
    assert np.isnan(few.rows.value) and few.to_dict()["rows"] is None and not few.many


def test_what_is_left_out_stands_in_the_record_and_in_the_verdict():
    held, beyond = np.unique(OWNERS, return_counts=True)[1], {}
    for most in (1, 2, 8):
        with pytest.warns(dp.errors.PosteriorWarning) if most < 8 else dp.testing.without_noise():
            table, *_ = released(OWNERS, X, Y, most)
        left = np.minimum(np.maximum(held - most, 0), 2 * most).sum()
        share = left / (np.minimum(held, most).sum() + left)
        assert table.plan["left_out"]["rows"] == pytest.approx(share, abs=1e-5)
        assert table.plan["left_out"]["persons"] == pytest.approx((held > most).mean(), abs=1e-5)
        said = table.approximations[0]
        assert f"at most {most} row" in said and f"{share:.1%} (± " in said and "every row that is kept counts" in said
        reasons = [one for one in table.plan["verdict"] if "left out" in one["what"]]
        beyond[most] = share > MANY, [one["word"] for one in reasons]
        assert all(one["remedy"] == "Use a larger max_rows." for one in reasons)
    assert beyond == {1: (True, ["doubtful"]), 2: (True, ["doubtful"]), 8: (False, [])}


def test_nothing_is_said_of_what_noise_hides():
    table, *_ = released(OWNERS[FEW], X[FEW], Y[FEW], 1, noise=lambda: dp.testing.insecure_randomness(2), epsilon=0.3)
    assert table.plan["left_out"]["rows"] is None
    assert "an unknown share (noise hides it)" in table.approximations[0]
    assert not [one for one in table.plan["verdict"] if "left out" in one["what"]]
