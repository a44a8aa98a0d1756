"""ε per unit of a distance: neighbours at any distance use no more than ε times it, exactly."""

from fractions import Fraction

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError, PrivacyError
from pymc_dp.kernel import Column, Kernel, Table, choose_per_unit, holder, rounding, steepest_per_unit
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.metrics import L1, L2, Hamming
from tests.kernel.pairs import PAIRS, Lookup, exp_down, kernel, spread_of_ratios, table

WEIGHTS = {"x": 2.0, "z": 0.5}
METRIC = L1(WEIGHTS)


class Steep(Lookup):
    """Numbers of two columns: a jump, a pole, and products."""

    def __init__(self):
        self._types, self._wanted = (("x", "float64", ()), ("z", "int64", ())), ()

    def __call__(self, rows, parameters, out, *, by_blocks):
        x, z = rows
        with np.errstate(all="ignore"):
            out[:] = np.where(x > 0.3, 5.0, np.log(x))[:, None] * np.linspace(-1, 1, 5) * (z[:, None] + 1.0) ** 2


holder.ROW_MAPS.add(Steep)


def per_unit(x, z):
    made = Table({"x": Column(x, 0.0, 1.0), "z": Column(z, 0, 3)})
    return Kernel(made, Rehearsal(METRIC.relation)).by_kind(17)


def test_rows_at_a_distance_use_no_more_than_epsilon_times_it(weights):
    rng, worst, k = np.random.default_rng(0), Fraction(0), 16 * 64
    for trial in range(PAIRS):
        x, z = rng.uniform(0, 1, 20), rng.integers(0, 4, 20)
        place = int(rng.integers(0, k))
        other_x, other_z = x.copy(), z.copy()
        x[3] = place / k
        other_x[3] = min(max(place + int(rng.choice([1, -1, 3, 200, -700])), 0), k) / k
        if trial % 3 == 0:
            other_z[3] = rng.integers(0, 4)
        for held in ((x, z), (other_x, other_z)):
            made = per_unit(*held)
            choose_per_unit(made, Steep(), [], 5, weights=WEIGHTS, beta=1e9, most=0.7)
        distance = 2 * abs(Fraction(x[3]) - Fraction(other_x[3])) + Fraction(abs(int(z[3]) - int(other_z[3])), 2)
        charged = Fraction(repr(made.made[-1][1].epsilon))
        (one,), (two,) = weights[-2:]
        used = spread_of_ratios(one, two)
        assert used <= exp_down(charged * distance) if distance else used == 1
        if distance:
            worst = max(worst, (used - 1) / (exp_down(charged * distance) - 1))
    assert worst > 0.5 and 0.7 < float(charged) < 0.701


def test_the_temperature_is_what_is_asked_for_where_it_costs_less(weights):
    made = per_unit(np.array([0.25]), np.array([1]))
    _, beta = choose_per_unit(made, Steep(), [], 5, weights=WEIGHTS, beta=1e-3, most=50.0)
    assert beta == pytest.approx(1e-3, rel=1e-6)
    assert rounding(made) == {"x": 1 / 16 / 64, "z": 0.0}
    # one row at a node, scores 4 log(1/4) linspace(-1, 1): the weights are those of its exponents
    logs = np.log(weights[-1][0].astype(float))
    assert np.allclose(np.diff(logs), 1e-3 * 4 * np.log(0.25) / 2, rtol=1e-4)


def test_what_a_choice_per_unit_costs_is_known_without_the_rows():
    made_up, rows = per_unit(np.zeros(1), np.zeros(1, dtype=int)), per_unit(np.array([0.31, 0.9]), np.array([3, 2]))
    steepest, added = steepest_per_unit(made_up, Steep(), [], 5, weights=WEIGHTS)
    assert not made_up.made and not made_up.account.events
    assert steepest_per_unit(rows, Steep(), [], 5, weights=WEIGHTS) == (steepest, added)
    choose_per_unit(rows, Steep(), [], 5, weights=WEIGHTS, beta=1.0, most=1e9)
    assert rows.made[-1][1].epsilon == pytest.approx(steepest + added, rel=1e-12) and 0 < added < 1e-3
    with pytest.raises(PrivacyError, match="counts under"):
        steepest_per_unit(made_up, Steep(), [], 5, weights={"x": 2.0, "z": 5.0})


def test_an_excluded_candidate_may_lie_far_above_the_others(weights):
    """Where whole exponents did not fit, an error would tell that a sum is large."""
    units = {"i": 1.0}
    for rows in (np.zeros(1000, dtype=int), np.ones(1000, dtype=int)):
        made = Table({"i": Column(rows, 0, 1)})
        k = Kernel(made, Rehearsal(L1(units).relation)).by_kind()
        numbers = Lookup([[0.0, 0.0], [0.0, -1.0]])
        choose_per_unit(k, numbers, [], 2, weights=units, beta=1e9, most=2.0**12, public=[-np.inf, 0.0])
        assert weights[-1][0][0] == 0 < weights[-1][0][1]


def test_an_account_per_unit_pays_for_nothing_else_and_others_not_for_it():
    made = per_unit(np.array([0.25]), np.array([1]))
    with pytest.raises(PrivacyError, match="counts under"):
        made.choose(Steep(), [], 5, width=1.0, eta=1.0)
    with pytest.raises(PrivacyError, match="counts under"):
        made.pool(epsilon=1.0)
    plain = Kernel(Table({"x": Column([0.5], 0.0, 1.0), "z": Column([1], 0, 3)}), Rehearsal("replace")).by_kind(17)
    with pytest.raises(PrivacyError, match="counts under"):
        choose_per_unit(plain, Steep(), [], 5, weights=WEIGHTS, beta=1.0, most=1.0)
    with pytest.raises(ArgumentError, match="by kind"):
        choose_per_unit(kernel(table([0], "replace")), Steep(), [], 5, weights=WEIGHTS, beta=1.0, most=1.0)
    with pytest.raises(ArgumentError, match="by kind"):
        rounding(kernel(table([0], "replace")))


def test_a_choice_per_unit_counts_by_the_metric_of_its_account():
    """At 1,000 times the weights, the same charge would buy 1,000 times the inverse temperature."""

    made = per_unit(np.array([0.25]), np.array([1]))
    for other in ({"x": 2000.0, "z": 500.0}, {"x": 2.0}, {"x": 2.0, "z": 0.5, "i": 1.0}, {"x": 2.0, "z": 1.0}, {}):
        with pytest.raises(PrivacyError, match="counts under"):
            choose_per_unit(made, Steep(), [], 5, weights=other, beta=1.0, most=1.0)

    class Steeper(dict):
        def items(self):
            return iter(WEIGHTS.items())

    class Name(str):
        pass

    for other in (METRIC, Steeper({"x": 2000.0, "z": 500.0}), {Name("x"): 2.0, "z": 0.5}, [("x", 2.0), ("z", 0.5)]):
        with pytest.raises(ArgumentError, match="must be a dict"):
            choose_per_unit(made, Steep(), [], 5, weights=other, beta=1.0, most=1.0)
    assert not made.made
    rows = Table({"x": Column([0.5], 0.0, 1.0), "z": Column([1], 0, 3)})
    for metric in (L2(WEIGHTS), L1({"x": 2.0}) + Hamming({"z": 0.5})):
        with pytest.raises(PrivacyError, match="counts under"):
            choose_per_unit(
                Kernel(rows, Rehearsal(metric.relation)).by_kind(17),
                Steep(),
                [],
                5,
                weights=WEIGHTS,
                beta=1.0,
                most=1.0,
            )
    less = Kernel(rows, Rehearsal(L1("x").relation)).by_kind(17)
    with pytest.raises(ArgumentError, match="all columns"):
        choose_per_unit(less, Steep(), [], 5, weights={"x": 1.0}, beta=1.0, most=1.0)
