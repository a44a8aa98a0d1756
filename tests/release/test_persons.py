"""A person with any number of rows never moves exact sums by more than is claimed, and the worst one by no less."""

from itertools import product
from unittest.mock import patch

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.kernel import draw, persons, tallies
from pymc_dp.release.plan import plan_release
from tests.paid import draw_release

pytestmark = pytest.mark.usefixtures("paid")
MOST = 2
NAN = float("nan")


def domain(**bounds):
    unit = dp.Unit("who", max_rows=MOST)
    return dp.Domain(bounds=bounds, neighbours="add_remove", n_max=50, unit=unit)


def counts():
    with pm.Model(coords={"level": range(2)}) as model:
        group = pm.Data("group", np.array([0, 1]))
        p = pm.Beta("p", 1, 1, dims="level")
        pm.Bernoulli("y", p[group], observed=pm.Data("d", np.array([0, 1])))
    return model, domain(), ("group", "d"), ((0, 0), (0, 1), (1, 0), (-7, 2**31 - 1))


def two_tables():
    with pm.Model(coords={"level": range(2)}) as model:
        p, rate = pm.Beta("p", 1, 1), pm.Gamma("rate", 2, 1, dims="level")
        level = pm.Data("d", np.array([0, 1]))
        pm.Bernoulli("y", p, observed=level)
        pm.Poisson("visits", rate[level], observed=pm.Data("v", np.array([0, 1])))
    return model, domain(visits=(0, 9)), ("d", "v"), ((0, 0), (0, 9), (1, 9), (1, 4), (3, -5))


def moments():
    with pm.Model() as model:
        mean, sd = pm.Normal("mean"), pm.HalfNormal("sd")
        pm.Normal("y", mean, sd, observed=pm.Data("d", np.zeros(2)))
    return model, domain(y=(-1, 3)), ("d",), ((-1.0,), (3.0,), (1.0,), (NAN,), (1e300,))


def regression():
    with pm.Model() as model:
        a, b, sd = pm.Normal("a"), pm.Normal("b"), pm.HalfNormal("sd")
        pm.Normal("y", a + b * pm.Data("x", np.zeros(2)), sd, observed=pm.Data("d", np.zeros(2)))
    return model, domain(x=(-1, 1), y=(-1, 1)), ("x", "d"), (*product((-1.0, 1.0), repeat=2), (0.3, NAN), (5.0, 0.0))


BUILDS = [counts, two_tables, moments, regression]


class Released:
    """The integers of every block of a release, just before the noise."""

    def __init__(self, build, noise="laplace"):
        self.model, self.domain, self.columns, self.corners = build()
        with self.model:
            self.owner = pm.Data("who", np.arange(2))
        found = inspect(self.model, self.domain, per_person=True).sums
        self.plan = plan_release(found, dp.Statistics(noise), 1.0, 1e-6 if noise == "gaussian" else 0.0)

    def __call__(self, rows, owners, keys=None):
        """The random numbers that choose rows are those of the rows, wherever they are."""
        keys = np.arange(len(rows)) * 7919 % 10_007 if keys is None else keys
        for place, name in enumerate(self.columns):
            dtype = self.model[name].get_value().dtype
            self.model[name].set_value(np.array([row[place] for row in rows], dtype=dtype))
        self.owner.set_value(np.array(owners, dtype=self.owner.type.dtype))
        seen = []
        with (
            patch.object(draw, "noised", lambda sums, kind, scale: seen.append(sums.copy()) or sums),
            patch.object(persons, "secure_keys", lambda count: np.array(keys)),
        ):
            draw_release(self.plan, owner=self.owner)
        return seen

    def moves(self, rng):
        """How far each block moves by persons with all collections of up to three corner rows, and with a thousand."""
        rows = [self.corners[k] for k in rng.integers(0, len(self.corners), 8)]
        owners = list(rng.integers(0, 3, 8))
        keys = list(rng.permutation(2000))
        plain = self(rows, owners, keys[:8])
        worst = [(0, 0)] * len(plain)
        own = [list(one) for size in (1, 2, 3) for one in product(self.corners, repeat=size)]
        own += [[row] * 1000 for row in self.corners]
        for more in own:
            order = rng.permutation(len(rows) + len(more))
            every = [*rows, *more], [*owners, *[99] * len(more)], keys[: len(order)]
            moved = self(*([part[k] for k in order] for part in every))
            sizes = [
                (int(np.abs(one - other).sum()), int(((one - other).astype(object) ** 2).sum()))
                for one, other in zip(moved, plain, strict=True)
            ]
            worst = [(max(a, c), max(b, d)) for (a, b), (c, d) in zip(worst, sizes, strict=True)]
        return worst


@pytest.mark.parametrize("build", BUILDS)
def test_the_worst_person_moves_sums_by_what_is_claimed(build, rng):
    released = Released(build)
    claims = [block.sensitivity for block in released.plan.blocks]
    for (l1, squares), claim in zip(released.moves(rng), claims, strict=True):
        assert l1 == claim.l1, claim.reason
        assert (1 - 1e-8) * claim.l2_squared < squares <= claim.l2_squared, claim.reason


def everybody(owners, most):
    return np.ones(len(owners), dtype=bool)


def test_rows_that_are_not_cut_off_are_found_out(rng, monkeypatch):
    monkeypatch.setattr(tallies, "kept_rows", everybody)
    released = Released(moments)
    found = zip(released.moves(rng), released.plan.blocks, strict=True)
    assert any(l1 > block.sensitivity.l1 for (l1, _), block in found)


def test_one_choice_of_rows_serves_all_tables(rng):
    """A person of at most `MOST` rows in every table, and of the same rows: joint sums are those of kept rows."""
    released = Released(two_tables)
    rows = [released.corners[k] for k in rng.integers(0, 5, 30)]
    owners = list(rng.integers(0, 4, 30))
    keys = rng.permutation(30)
    found = released(rows, owners, keys)
    with patch.object(persons, "secure_keys", lambda count: keys):
        kept = persons.kept_rows(np.array(owners), MOST)
    again = released([row for row, one in zip(rows, kept, strict=True) if one], np.array(owners)[kept])
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)
