"""``dp.find_bounds``: what is charged before anything is read, what one row moves, and what is refused."""

import itertools
from fractions import Fraction

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.accounting import pure_epsilon
from pymc_dp.find_bounds import BoundRows, Search
from pymc_dp.inspection.inspect import inspect
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.noise import LAPLACE
from pymc_dp.kernel.walk_kinds import walk_event, walk_events
from pymc_dp.kernel.walks import Walk

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
STRANGE = [np.nan, np.inf, -np.inf, 5e-324, 1.8e308, -1.8e308, -0.0, 0.0, 1.0, 1.5, -2.0, 1e300, 2.0**-40]
CANARY = 86.75309e17


def table(income, *, wide=None, counts=None):
    """A regression without any bounds; PyMC takes NaN in its data only afterwards."""
    n = len(income)
    with pm.Model() as model:
        mean = pm.Normal("slope") * pm.Data("income", np.zeros(n))
        if wide is not None:
            mean += pm.Data("wide", np.zeros((n, 2))) @ pm.Normal("w", shape=2)
        pm.Normal("y", mean, 1, observed=np.zeros(n))
        if counts is not None:
            pm.Poisson("visits", pm.Gamma("rate", 1, 1), observed=np.asarray(counts))
    model["income"].set_value(np.asarray(income, dtype=float))
    if wide is not None:
        model["wide"].set_value(np.asarray(wide, dtype=float))
    return model


def incomes(n=10_000, seed=1):
    return np.random.default_rng(seed).lognormal(10, 0.5, n)


def searched(model, names, domain=None, epsilon=1.0):
    return Search.planned(inspect(model, domain).rows, names, dp.Budget(epsilon), 0.005)


def exact(search):
    table = BoundRows(columns=tuple(search.columns.values()), domain=dp.Domain())
    with dp.testing.without_noise():
        return search.noised(Walk(table, Rehearsal(table.relation), search.sums))


def test_bounds_are_a_domain_and_the_ledger_says_so():
    visits = np.random.default_rng(1).poisson(3, 10_000)
    ledger, model = dp.Ledger(1.0), table(incomes(), counts=visits)
    before = dp.Domain(bounds={"y": (-5, 5)})
    domain = dp.find_bounds(model, ["income", "visits"], epsilon=0.4, domain=before, ledger=ledger)
    assert domain.bounds["y"] == (-5, 5) and domain.neighbours == "replace" and before.bounds == {"y": (-5, 5)}
    for name, values in (("income", incomes()), ("visits", visits)):
        low, high = domain.bounds[name]
        assert np.mean((values < low) | (values > high)) < 0.02
    (entry,) = ledger.history
    assert ledger.spent == dp.Budget(0.4) and entry.label.startswith("bounds of income, visits (found: income in (")
    assert repr(domain.bounds["visits"]) in entry.label
    dp.privatize(model, epsilon=0.5, domain=domain, ledger=ledger)  # they are enough for a release


def test_rows_are_read_after_the_charge_and_an_error_shows_nothing(monkeypatch):
    def fail(leaf):
        raise ValueError(f"{CANARY} is no income")

    monkeypatch.setattr("pymc_dp.rows.gate._array", fail)
    short, ledger = dp.Ledger(0.1), dp.Ledger(1.0)
    with pytest.raises(dp.BudgetExceeded):
        dp.find_bounds(table([CANARY] * 5), "income", epsilon=0.2, ledger=short)
    with pytest.raises(dp.errors.ReleaseError) as caught:
        dp.find_bounds(table([CANARY] * 5), "income", epsilon=0.2, ledger=ledger)
    assert "86753" not in str(caught.value) and caught.value.__cause__ is caught.value.__context__ is None
    assert short.history == [] and ledger.spent == dp.Budget(0.2) and "found" not in ledger.history[0].label


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_no_row_moves_counts_by_more_than_is_charged(neighbours):
    domain = dp.Domain(neighbours=neighbours, n_max=None if neighbours == "replace" else 9)
    worst = {"income": 0, "wide": 0}
    names = list(worst)
    pairs = list(itertools.product(STRANGE, STRANGE[:5]))
    rows = [(value, [value, other]) for value, other in pairs[::3]]
    fixed = [(1.0, [1.0, 1.0])] * 2

    made = {n: table(np.ones(n), wide=np.ones((n, 2))) for n in (2, 3)}
    searches = {n: searched(model, names, domain) for n, model in made.items()}

    def counted(held):
        for name, column in zip(names, zip(*held, strict=True), strict=True):
            made[len(held)][name].set_value(np.array(column))
        return exact(searches[len(held)])

    counts = [counted([*fixed, row]) for row in rows]
    others = counts if neighbours == "replace" else [counted(fixed)]
    for here, there in itertools.product(counts, others):
        for name, one, two in zip(names, here, there, strict=True):
            worst[name] = max(worst[name], int(np.abs(one - two).sum()))
    charged = {
        name: event.sensitivity for name, event in zip(names, walk_events(searches[3].sums, neighbours), strict=True)
    }
    times = 2 if neighbours == "replace" else 1
    assert worst == charged == {"income": times, "wide": 2 * times}


def test_the_noise_is_what_the_budget_pays_for(monkeypatch):
    scales = []
    add = type(LAPLACE).add
    monkeypatch.setattr(type(LAPLACE), "add", lambda self, sums, scale: scales.append(scale) or add(self, sums, scale))
    for domain, sensitivity in ((None, 2), (dp.Domain(neighbours="add_remove", n_max=99), 1)):
        ledger = dp.Ledger(1.0, neighbours="replace" if domain is None else "add_remove")
        dp.find_bounds(table(incomes(5000)), "income", epsilon=0.5, domain=domain, ledger=ledger)
        assert Fraction(sensitivity) / Fraction(scales[-1]) <= Fraction(0.5) and scales[-1] <= sensitivity / 0.4999
    search = searched(table(incomes(50), wide=np.ones((50, 2))), ["income", "wide"], epsilon=0.3)
    assert (
        search.scales == pytest.approx((2 / 0.15, 4 / 0.15)) and pure_epsilon(walk_event(search.sums, "replace")) <= 0.3
    )


def test_where_nothing_is_found_it_says_so_and_there_are_no_bounds():
    ledger = dp.Ledger(1.0)
    with pytest.warns(
        dp.errors.DomainWarning, match=r"No bounds of 'income' were found.*than the \d+ that noise alone"
    ) as caught:
        domain = dp.find_bounds(table([CANARY] * 5), "income", epsilon=0.01, ledger=ledger)
    assert domain == dp.Domain() and ledger.spent == dp.Budget(0.01)
    assert ledger.history[0].label == "bounds of income (found: none of income)"
    assert "8675" not in str(caught[0].message) and caught[0].filename == __file__


LIKELIHOODS = {
    "Poisson": ({"mu": 3.0}, lambda rng: rng.poisson(0.05, 4000)),
    "Geometric": ({"p": 0.3}, lambda rng: rng.geometric(0.2, 4000)),
    "Beta": ({"alpha": 2.0, "beta": 2.0}, lambda rng: rng.beta(5, 2, 4000)),
    "LogNormal": ({"mu": 0.5, "sigma": 1.0}, lambda rng: np.where(np.arange(4000) < 900, 0, rng.lognormal(size=4000))),
    "HalfNormal": ({"sigma": 2.0}, lambda rng: np.abs(rng.normal(size=4000))),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("below", [pytest.param(0, marks=pytest.mark.slow), 300])
def test_bounds_that_were_paid_for_are_ones_that_the_likelihood_takes(name, below, monkeypatch):
    """Although noise shows numbers below what the likelihood can be."""
    constants, draw = LIKELIHOODS[name]
    first, value = next(iter(constants.items()))
    values = draw(np.random.default_rng(1))
    with pm.Model() as model:
        unknown = pm.Beta("unknown", 1, 1) if first == "p" else pm.Gamma("unknown", value, 1)
        getattr(pm, name)("y", **{**constants, first: unknown}, observed=values)

    def add(self, sums, scale):
        middle = len(sums) // 2
        return sums + below * (np.abs(np.arange(len(sums)) - middle + 1) == 0)  # in the bin just below 0

    monkeypatch.setattr(type(LAPLACE), "add", add)
    domain = dp.find_bounds(model, "y", epsilon=1.0, ledger=dp.Ledger(1.0))
    inspect(model, domain).sums.require()
    monkeypatch.undo()
    dp.privatize(model, epsilon=1.0, domain=domain, ledger=dp.Ledger(1.0))


@pytest.mark.parametrize(
    ("names", "domain", "says"),
    [
        ("incomes", None, r"no row-level column of the model.*Did you mean 'income'"),
        ("slope", None, "no row-level column"),
        (["income", "income"], None, "each once"),
        ([], None, "at least one column"),
        ("income", {"bounds": {"income": (0, 1)}}, r"has bounds already, \(0, 1\)"),
        ("income", {"public": ["income"]}, "is public"),
        ("wide", {"norms": {"wide": 3.0}}, "has a norm"),
        ("group", None, r"has bounds already, \(0, 2\)"),
    ],
)
def test_what_needs_no_search_is_refused(names, domain, says):
    with pm.Model() as model:
        group = pm.Data("group", np.array([0, 2, 1]))
        mean = pm.Normal("level", shape=3)[group] + pm.Normal("slope") * pm.Data("income", np.ones(3))
        mean += pm.Data("wide", np.ones((3, 2))) @ pm.Normal("w", shape=2)
        pm.Normal("y", mean, 1, observed=np.zeros(3))
    ledger = dp.Ledger(1.0)
    with pytest.raises(dp.errors.ArgumentError, match=says):
        dp.find_bounds(model, names, epsilon=0.5, domain=dp.Domain(**domain or {}), ledger=ledger)
    assert ledger.history == []
