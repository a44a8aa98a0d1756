"""Releases of networks: noise and cost as the papers have them, or less; proved on every pair of neighbouring rows."""

from itertools import product

import numpy as np
import pymc as pm
import pytest

from pymc_dp import Domain
from pymc_dp.accounting import total_epsilon
from pymc_dp.accounting.pure import pure_epsilon
from pymc_dp.errors import ArgumentError, UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.networks import FourierUpdates, LaplaceUpdates
from pymc_dp.release.plan import draw_release, plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.testing import without_noise
from tests.networks import BAYES, CHAIN, COLLIDER, PAIR, TRIANGLE, network_model, random_rows, set_rows
from tests.release.test_noise import CHANCE, chi_square_p

pytestmark = pytest.mark.usefixtures("paid")

ADDED = {"neighbours": "add_remove", "n_max": 50}
MECHANISMS = [LaplaceUpdates(), LaplaceUpdates(papers=True), FourierUpdates(), FourierUpdates(papers=True)]


def plan_of(graph, mechanism, epsilon=1.0, *, noise="laplace", delta=0.0, levels=None, rows=20, **domain):
    model = network_model(graph, rows, levels)
    return plan_release(inspect(model, Domain(**domain)).sums, Statistics(noise, mechanism=mechanism), epsilon, delta)


def scales_of(plan):
    return {table.name: table.scales.tolist() for table in plan.tables}


# --- noise -----------------------------------------------------------------------------------------------------------


def test_laplace_updates_of_the_paper_have_twice_the_nodes_for_noise():
    """Algorithm 1: scale 2 |I| / ε on every count, both counts of a root among them."""
    found = scales_of(plan_of(COLLIDER, LaplaceUpdates(papers=True), 0.5))
    assert found == {name: pytest.approx([2 * 4 / 0.5] * 2) for name in COLLIDER}


def test_laplace_updates_of_rows_that_come_or_go_move_one_count_of_each_node():
    found = scales_of(plan_of(COLLIDER, LaplaceUpdates(), 0.5, **ADDED))
    assert found == {name: pytest.approx([4 / 0.5] * 2) for name in COLLIDER}


@pytest.mark.parametrize(
    ("graph", "coefficients", "odd"), [(PAIR, 3, 2), (TRIANGLE, 7, 4), (COLLIDER, 9, 6), (BAYES, 7, 6), (CHAIN, 9, 7)]
)
def test_fourier_updates_have_the_noise_of_the_paper_or_of_what_can_change(graph, coefficients, odd):
    """Algorithm 2: 2 |N| / ε, in units of signs, on all coefficients, the number of rows being one. Else 2 odd / ε."""
    (paper,) = plan_of(graph, FourierUpdates(papers=True), 0.25).tables
    assert (paper.sums.count, *paper.scales) == (coefficients + 1, pytest.approx(2 * (coefficients + 1) / 0.25))
    (ours,) = plan_of(graph, FourierUpdates(), 0.25).tables
    assert (ours.sums.count, *ours.scales) == (coefficients, pytest.approx(2 * odd / 0.25))
    (hidden,) = plan_of(graph, FourierUpdates(), 0.25, **ADDED).tables
    assert (hidden.sums.count, *hidden.scales) == (coefficients + 1, pytest.approx((coefficients + 1) / 0.25))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 1.0, 2.9])
def test_the_whole_budget_is_used_and_never_more(mechanism, epsilon):
    assert epsilon * (1 - 1e-12) < pure_epsilon(plan_of(COLLIDER, mechanism, epsilon).event) <= epsilon


@pytest.mark.parametrize("mechanism", [LaplaceUpdates(), FourierUpdates()])
def test_gaussian_noise_is_of_one_scale_and_within_its_budget(mechanism):
    plan = plan_of(COLLIDER, mechanism, 0.7, noise="gaussian", delta=1e-6)
    assert total_epsilon(plan.event, 1e-6).epsilon <= 0.7
    assert [block.scale for block in plan.blocks] == pytest.approx([plan.blocks[0].scale] * len(plan.blocks))
    squares = sum(block.sensitivity.l2_squared for block in plan.blocks)
    # Roots of two levels move by 1, other nodes by (1, -1); six coefficients change their sign.
    assert squares == (1 + 1 + 2 + 2 if isinstance(mechanism, LaplaceUpdates) else 4 * 6)


def test_coefficients_have_the_noise_of_the_plan_on_whole_numbers(seed):
    model = network_model(COLLIDER, random_rows(np.random.default_rng(seed), COLLIDER, 50))
    plan = plan_release(inspect(model).sums, Statistics(mechanism=FourierUpdates()), 6.0)
    with without_noise():
        exact = draw_release(plan).values["network"]
    noise = np.array([draw_release(plan).values["network"] - exact for _ in range(300)])
    assert np.array_equal(noise, np.rint(noise)) and plan.tables[0].scales == 2.0
    assert chi_square_p(noise.ravel().astype(int), 2.0) > CHANCE
    each = np.abs(noise).mean(axis=0).ravel() / (1 / np.sinh(1 / 2.0))
    np.testing.assert_allclose(each, 1, atol=0.4)
    assert np.abs(np.corrcoef(noise[:, :, 0].T) - np.eye(9)).max() < 6 / np.sqrt(300)


# --- audit: every pair of neighbours, through the real path ----------------------------------------------------------

BEYOND = [-1, 0, 1, 7]
"""Values of a column, two of which are no level."""


def losses(model, plan, columns, relation):
    """L1 distance over scale between the exact releases of all neighbours among two fixed rows."""
    names = list(columns)
    pairs = [(one, other) for one, other in product(product(*columns.values()), repeat=2) if one < other]
    fixed = [[1, 0][: len(columns[name])] for name in names]
    releases = {}
    with without_noise():
        for row in {row for pair in pairs for row in pair}:
            set_rows(model, {name: np.array([*fixed[place], row[place]]) for place, name in enumerate(names)})
            releases[row] = draw_release(plan).values
        if relation == "add_remove":
            set_rows(model, {name: np.array(fixed[place]) for place, name in enumerate(names)})
            bare = draw_release(plan).values
            pairs, releases = [(row, None) for row in releases], {**releases, None: bare}
    return max(
        sum(
            float(np.abs(releases[one][name] - releases[other][name]).sum()) / scale
            for name, scale in plan_scales(plan).items()
        )
        for one, other in pairs
    )


def plan_scales(plan):
    return {table.name: table.blocks[0].scale * table.blocks[0].steps[0] for table in plan.tables}


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("mechanism", [LaplaceUpdates(), FourierUpdates()])
@pytest.mark.parametrize(
    ("graph", "levels"), [(PAIR, {}), (TRIANGLE, {}), ({"a": [], "b": [], "c": ["a", "b"]}, {}), (PAIR, {"a": 3})]
)
def test_no_neighbours_lose_more_than_claimed_and_the_worst_lose_all_of_it(graph, levels, mechanism, relation):
    """Rows of every configuration, and of values that are no level, which every table has to take for the same one."""
    domain = {"neighbours": "add_remove", "n_max": 9} if relation == "add_remove" else {}
    model = network_model(graph, 3, levels)
    plan = plan_release(inspect(model, Domain(**domain)).sums, Statistics(mechanism=mechanism), 0.5)
    columns = {name: [-1, 0, 1, 2, 9] if levels.get(name) == 3 else BEYOND for name in graph}
    worst = losses(model, plan, columns, relation)
    assert worst <= 0.5 * (1 + 1e-12)
    assert worst == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("mechanism", [LaplaceUpdates(papers=True), FourierUpdates(papers=True)])
def test_the_noise_of_the_papers_covers_all_neighbours(mechanism):
    model = network_model(TRIANGLE, 3)
    plan = plan_release(inspect(model).sums, Statistics(mechanism=mechanism), 0.5)
    worst = losses(model, plan, dict.fromkeys(TRIANGLE, BEYOND), "replace")
    # Of 8 coefficients 4 change at most: half of what is paid is lost.
    assert worst == pytest.approx(0.5 if isinstance(mechanism, LaplaceUpdates) else 0.25)


def test_bounds_of_a_domain_do_not_make_two_rows_of_one():
    """By these 7 would be the nearest level, 1, among children, and level 0 in its own table: another sensitivity."""
    model = network_model(PAIR, 3)
    inspection = inspect(model, Domain(bounds={"a": (0, 1)})).sums
    plan = plan_release(inspection, Statistics(mechanism=FourierUpdates()), 0.5)
    assert losses(model, plan, dict.fromkeys(PAIR, BEYOND), "replace") <= 0.5 * (1 + 1e-12)
    set_rows(model, {"a": np.array([7, -3, 9]), "b": np.array([1, 1, 0])})
    with without_noise():
        tables = plan.tables[0].sums.tables(draw_release(plan).values["network"][:, 0], 3)
    np.testing.assert_allclose(tables[0], [[3, 0]], atol=1e-9)
    np.testing.assert_allclose(tables[1], [[1, 2], [0, 0]], atol=1e-9)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (lambda: LaplaceUpdates(papers="yes"), ["papers", "True or False", "'yes'"]),
        (lambda: FourierUpdates(-1), ["t must be >= 0", "-1"]),
        (lambda: FourierUpdates(float("nan")), ["t must be finite", "nan"]),
        (lambda: Statistics(mechanism="fourier"), ["dp.networks.FourierUpdates()", "'fourier'"]),
        (lambda: Statistics(mechanism={"a": FourierUpdates()}), ["dp.networks.FourierUpdates()", "Leave it out"]),
        (
            lambda: Statistics(mechanism=LaplaceUpdates(), share={"a": 1}),
            ["share", "one noise for all", "Leave it out"],
        ),
    ],
)
def test_wrong_arguments_are_refused_with_value_range_and_way_out(make, texts):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert all(text in str(caught.value) for text in texts), str(caught.value)


@pytest.mark.parametrize("mechanism", [LaplaceUpdates(papers=True), FourierUpdates(papers=True)])
def test_the_noise_of_the_papers_is_refused_where_it_proves_nothing(mechanism):
    with pytest.raises(UnsupportedModelError, match="for replacing a row"):
        plan_of(PAIR, mechanism, **ADDED)


def test_algorithm_two_is_for_two_levels():
    with pytest.raises(UnsupportedModelError, match="a node has 3 levels"):
        plan_of(PAIR, FourierUpdates(papers=True), levels={"a": 3})


def test_models_that_are_no_networks_are_refused():
    model = network_model(PAIR)
    with model:
        pm.Normal("x", pm.Normal("m"), 1, observed=np.zeros(5))
    for mechanism in (LaplaceUpdates(), FourierUpdates()):
        with pytest.raises(UnsupportedModelError, match="it is Normal, and nodes are"):
            plan_release(inspect(model, Domain(bounds={"x": (0, 1)})).sums, Statistics(mechanism=mechanism), 1.0)
