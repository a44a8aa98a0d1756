"""Releases of networks: noise and cost as the papers have them, or less; proved on every pair of neighbouring rows."""

from itertools import product

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.networks import FourierUpdates, LaplaceUpdates
from tests.networks import BAYES, CHAIN, COLLIDER, PAIR, TRIANGLE, network_model, set_rows

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
ADDED = {"neighbours": "add_remove", "n_max": 50}
MECHANISMS = [LaplaceUpdates(), LaplaceUpdates(papers=True), FourierUpdates(), FourierUpdates(papers=True)]


def released(model, mechanism, epsilon=1.0, *, noise="laplace", delta=0.0, domain=None):
    statistics = dp.Statistics(noise, mechanism=mechanism)
    ledger = dp.Ledger(epsilon, delta, neighbours="replace" if domain is None else domain.neighbours)
    given = {"epsilon": epsilon, "delta": delta, "statistics": statistics, "domain": domain, "ledger": ledger}
    return dp.Release.of(dp.privatize(model, **given))


def of(graph, mechanism, epsilon=1.0, *, levels=None, **domain):
    return released(network_model(graph, 20, levels), mechanism, epsilon, domain=dp.Domain(**domain)).record


def scales_of(record):
    return {table.name: list(table.scales) for table in record.tables}


# --- noise ------------------------------------------------------------------------------------------------------------


def test_laplace_updates_have_the_noise_of_the_paper_or_of_what_can_change():
    """Algorithm 1: scale 2 |I| / ε on every count, both counts of a root among them; a row that comes moves one."""
    found = scales_of(of(COLLIDER, LaplaceUpdates(papers=True), 0.5))
    assert found == {name: pytest.approx([2 * 4 / 0.5] * 2) for name in COLLIDER}
    found = scales_of(of(COLLIDER, LaplaceUpdates(), 0.5, **ADDED))
    assert found == {name: pytest.approx([4 / 0.5] * 2) for name in COLLIDER}


@pytest.mark.parametrize(
    ("graph", "coefficients", "odd"), [(PAIR, 3, 2), (TRIANGLE, 7, 4), (COLLIDER, 9, 6), (BAYES, 7, 6), (CHAIN, 9, 7)]
)
def test_fourier_updates_have_the_noise_of_the_paper_or_of_what_can_change(graph, coefficients, odd):
    """Algorithm 2: 2 |N| / ε, in units of signs, on all coefficients, the number of rows being one. Else 2 odd / ε."""
    for mechanism, given, scale in [
        (FourierUpdates(papers=True), {}, 2 * (coefficients + 1) / 0.25),
        (FourierUpdates(), {}, 2 * odd / 0.25),
        (FourierUpdates(), ADDED, (coefficients + 1) / 0.25),
    ]:
        (table,) = of(graph, mechanism, 0.25, **given).tables
        assert list(table.scales) == pytest.approx([scale])


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 2.9])
def test_the_whole_budget_is_used_and_never_more(mechanism, epsilon):
    assert epsilon * (1 - 1e-12) < of(COLLIDER, mechanism, epsilon).epsilon <= epsilon


@pytest.mark.parametrize("mechanism", [LaplaceUpdates(), FourierUpdates()])
def test_gaussian_noise_is_of_one_scale_and_within_its_budget(mechanism):
    record = released(network_model(COLLIDER, 20), mechanism, 0.7, noise="gaussian", delta=1e-6).record
    scales = {scale for table in record.tables for scale in table.scales}
    assert record.epsilon <= 0.7 and max(scales) == pytest.approx(min(scales), rel=1e-12)


# --- every pair of neighbours, through the release itself -------------------------------------------------------------

BEYOND = [-1, 0, 1, 7]
"""Values of a column, two of which are no level."""


def losses(graph, mechanism, columns, relation, epsilon=0.5, levels=None, **domain):
    """Largest L1 distance over scale between the exact releases of neighbours among two fixed rows."""
    names, model = list(columns), network_model(graph, 3, levels)
    given = dp.Domain(**({"neighbours": "add_remove", "n_max": 9} if relation == "add_remove" else {}), **domain)
    fixed = [[1, 0][: len(columns[name])] for name in names]
    scales = scales_of(released(model, mechanism, epsilon, domain=given).record)

    def exact(*row):
        set_rows(
            model, {name: np.array([*fixed[place], *(one[place] for one in row)]) for place, name in enumerate(names)}
        )
        with dp.testing.without_noise():
            return released(model, mechanism, epsilon, domain=given).tables

    found = {row: exact(row) for row in product(*columns.values())}
    pairs = product(found.values(), repeat=2) if relation == "replace" else [(one, exact()) for one in found.values()]
    return max(
        sum(float((np.abs(one[name] - two[name]) / scale).sum()) for name, scale in scales.items())
        for one, two in pairs
    )


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("mechanism", [LaplaceUpdates(), FourierUpdates()])
@pytest.mark.parametrize(("graph", "levels"), [(PAIR, {}), ({"a": [], "b": [], "c": ["a", "b"]}, {}), (PAIR, {"a": 3})])
def test_no_neighbours_lose_more_than_claimed_and_the_worst_lose_all_of_it(graph, levels, mechanism, relation):
    """Rows of every configuration, and of values that are no level, which every table has to take for the same one."""
    columns = {name: [-1, 0, 1, 2] if levels.get(name) == 3 else [0, 1, 7] for name in graph}
    worst = losses(graph, mechanism, columns, relation, levels=levels)
    assert worst == pytest.approx(0.5, rel=1e-6) and worst <= 0.5 * (1 + 1e-12)


def test_bounds_of_a_domain_do_not_make_two_rows_of_one():
    """By these 7 would be the nearest level, 1, among children, and level 0 in its own table: another sensitivity."""
    bounds = {"bounds": {"a": (0, 1)}}
    assert losses(PAIR, FourierUpdates(), dict.fromkeys(PAIR, BEYOND), "replace", **bounds) <= 0.5 * (1 + 1e-12)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LaplaceUpdates(papers="yes"), "True or False.*'yes'"),
        (lambda: FourierUpdates(-1), "t must be >= 0.*-1"),
        (lambda: FourierUpdates(float("nan")), "t must be finite.*nan"),
        (lambda: dp.Statistics(mechanism="fourier"), "dp.networks.FourierUpdates.*'fourier'|'fourier'.*FourierUpdates"),
        (lambda: dp.Statistics(mechanism={"a": FourierUpdates()}), "Leave it out"),
        (lambda: dp.Statistics(mechanism=LaplaceUpdates(), share={"a": 1}), "one noise for all.*Leave it out"),
        (lambda: of(PAIR, LaplaceUpdates(papers=True), **ADDED), "for replacing a row"),
        (lambda: of(PAIR, FourierUpdates(papers=True), **ADDED), "for replacing a row"),
        (lambda: of(PAIR, FourierUpdates(papers=True), levels={"a": 3}), "a node has 3 levels"),
    ],
)
def test_what_is_wrong_or_proves_nothing_is_refused(make, text):
    with pytest.raises((dp.errors.ArgumentError, dp.errors.UnsupportedModelError), match=f"(?s){text}"):
        make()


def test_models_that_are_no_networks_are_refused():
    model = network_model(PAIR)
    with model:
        pm.Normal("x", pm.Normal("m"), 1, observed=np.zeros(5))
    for mechanism in (LaplaceUpdates(), FourierUpdates()):
        with pytest.raises(dp.errors.UnsupportedModelError, match="it is Normal, and nodes are"):
            released(model, mechanism, domain=dp.Domain(bounds={"x": (0, 1)}))


def test_what_is_said_of_a_network_is_its_drawing_and_the_noise_of_each_mechanism():
    """1 + 6 + 12 counts, or 11 functions of levels that are not constant; the noise of a count is that of a release."""
    graph = {"a": [], "b": ["a"], "c": ["a", "b"]}
    text = str(dp.explain(network_model(graph, 20, {"b": 3}), epsilon=0.5).full())
    assert "│ A Bayesian network of 3 nodes and 3 edges" in text
    shown = [line[4:-1].rstrip() for line in text.splitlines()]
    assert "a\n├── b (3)\n" in "\n".join(shown) and any(line.endswith("c [also b]") for line in shown)
    assert any(line.endswith("c ↑") for line in shown)
    rows = {
        line.split()[1]: line.split()[2:-1] for line in text.splitlines() if "Updates()" in line and "±" not in line
    }
    assert rows["LaplaceUpdates()"][0] == "19" and rows["FourierUpdates()"][0] == "11"
    found = scales_of(of(graph, LaplaceUpdates(), 0.5, levels={"b": 3}))
    assert float(rows["LaplaceUpdates()"][-1]) == pytest.approx(np.sqrt(2) * found["a"][0], rel=0.01)
