"""Many parameters of which a row meets few: what is released of a curvature, and what is made of it."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.gradients.curvature import Collapsed, Levels, estimated
from pymc_dp.gradients.schedule import Units

pytestmark = pytest.mark.usefixtures("paid")

CROSSED = Levels(slots=np.array([0, 1, 1, 1, 2, 2, 2, 3, 3]), groups=np.array([-1, 0, 1, 2, 0, 1, 2, 3, 4]))
"""One parameter that all rows meet, intercepts and slopes of three groups, and another factor of two levels."""


def crossed(rng, n_rows):
    """Jacobians of rows of these parameters."""
    rows, group, other = np.zeros((n_rows, 1, 9)), rng.integers(0, 3, n_rows), rng.integers(0, 2, n_rows)
    x = rng.normal(size=(n_rows, 2)) + 0.5
    rows[:, 0, 0] = x[:, 0]
    rows[np.arange(n_rows), 0, 1 + group] = 1.0
    rows[np.arange(n_rows), 0, 4 + group] = x[:, 1]
    rows[np.arange(n_rows), 0, 7 + other] = 1.0
    return rows


def test_as_many_numbers_are_paid_for_as_are_read():
    """Each of the slots that are shared, and of no other, has a diagonal of its own."""
    kind = Units(dimension=9, neighbours="replace", levels=CROSSED).curvature(9)
    assert kind.entries == 4 * 5 // 2 - 3 + 8
    assert kind.shared == tuple(CROSSED.shared) and kind.slots == tuple(CROSSED.slots)


def test_a_curvature_in_which_arrays_meet_in_proportion_is_found_from_its_sums(rng):
    rows = crossed(rng, 200_000)[:, 0] * np.array([1, *[1] * 6, 1, 1])
    whole, slots = rows.T @ rows, np.eye(4)[CROSSED.slots]
    pairs = slots.T @ whole @ slots
    pairs[CROSSED.shared, CROSSED.shared] = 0
    found = estimated(
        Collapsed(pairs=pairs, diagonal=np.where(CROSSED.groups >= 0, np.diag(whole), 0)), 1e-3, CROSSED
    ).matrix
    root = np.sqrt(np.diag(whole))
    np.testing.assert_allclose(found / np.outer(root, root), whole / np.outer(root, root), atol=0.03)
    assert np.linalg.eigvalsh(found).min() > 0


@pytest.mark.slow
def test_more_parameters_than_were_calibrated_warn_before_anything_is_spent(rng):
    group = np.arange(300) % 250
    with pm.Model() as model:
        level = pm.Normal("level", 0, 1, shape=250)
        pm.Bernoulli("y", logit_p=level[pm.Data("g", group)], observed=group % 2)
    settings = {"epsilon": 1.0, "delta": 1e-5}
    assert "With more than 200 parameters that is not calibrated" in str(dp.explain(model, **settings).full())
    ledger = dp.Ledger(0.5, 1e-5)
    said = "250 parameters enter the likelihood.*not calibrated.*Nothing is spent yet"
    with pytest.warns(dp.errors.PosteriorWarning, match=said), pytest.raises(dp.errors.BudgetExceeded):
        dp.privatize(model, **settings, statistics=dp.Gradients(steps=10), ledger=ledger)
    after = pytest.warns(dp.errors.PosteriorWarning, match="The verdict on this release is.*250 parameters enter")
    with dp.testing.insecure_randomness(1), after, pytest.warns(dp.errors.PosteriorWarning, match=said):
        found = dp.privatize(model, **settings, statistics=dp.Gradients(steps=10), ledger=dp.Ledger(1.0, 1e-5))
    table = dp.Release.of(found).record.tables[0]
    assert any("not calibrated" in line for line in table.approximations)
    assert table.sensitivities[1].startswith("2 C_F of curvatures"), "sums over entries are charged twice the norm"
