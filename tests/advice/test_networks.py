"""What `dp.explain` says of a network: a drawing, and what each mechanism would cost."""

import html

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.advice.releases import release_advice
from pymc_dp.advice.samplers import network_parts
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import lay_out, plan_release
from pymc_dp.release.statistics import Statistics
from tests.networks import COLLIDER, network_model
from tests.trace.conftest import CANARY


@pytest.fixture(scope="module")
def explained():
    return dp.explain(network_model(COLLIDER, 500, {"b": 3}), epsilon=0.5)


@pytest.mark.slow
def test_the_network_is_drawn_in_a_terminal_and_in_a_notebook(explained):
    lines = ["a", "└── c [also b]", "    └── d", "b (3)", "└── c ↑"]
    text, page = str(explained.full()), html.unescape(explained.full()._repr_html_())
    for line in lines:
        assert f"│   {line} " in text
    assert "\n".join(lines) in page and "<pre" in page
    assert "A Bayesian network of 4 nodes and 3 edges" in text


@pytest.mark.slow
def test_every_mechanism_is_priced_at_the_budget_asked_for(explained):
    _, table = explained.network
    assert [row[0] for row in table.rows] == ["no mechanism", "LaplaceUpdates()", "FourierUpdates()"]
    assert "at ε = 0.5" in table.title
    numbers = {row[0]: row[1] for row in table.rows}
    assert numbers == {"no mechanism": "20", "LaplaceUpdates()": "20", "FourierUpdates()": "13"}


@pytest.mark.parametrize(
    ("call", "mechanism"),
    [
        ("no mechanism", None),
        ("LaplaceUpdates()", dp.networks.LaplaceUpdates()),
        ("FourierUpdates()", dp.networks.FourierUpdates()),
    ],
)
def test_the_noise_of_a_count_is_what_is_told(call, mechanism):
    """Cells of tables that are made of coefficients have noise from all of them, by the weights that make them."""
    inspection = inspect(network_model(COLLIDER, 100, {"b": 3})).sums
    _, table = network_parts(inspection, 0.5)
    (told,) = [row[3] for row in table.rows if row[0] == call]
    plan = plan_release(inspection, Statistics(mechanism=mechanism), 0.5)
    if call != "FourierUpdates()":
        found = [np.sqrt(2) * scale for table in plan.tables for scale in table.scales]
    else:
        weights = np.concatenate([plan.tables[0].sums.table_weights(place)[0] for place in range(4)])
        found = np.sqrt(2) * plan.tables[0].scales * np.sqrt((weights**2).sum(axis=1))
    ends = [float(item) for item in told.split(" to ")]
    assert [min(found), max(found)] == pytest.approx([ends[0], ends[-1]], rel=0.01)


@pytest.mark.slow
def test_nothing_is_told_of_public_groups_where_these_are_nodes(explained):
    """What a likelihood observes cannot be declared public."""
    assert "may be known to anyone" not in str(explained.full())
    with network_model(COLLIDER, 500) as model:
        group = pm.Data("group", np.zeros(500, dtype=int))
        pm.Bernoulli("y", pm.Beta("p_y", 1, 1, shape=2)[group], observed=np.zeros(500, dtype=int))
    lines = [
        line for line in release_advice(lay_out(inspect(model).sums, Statistics()), "replace") if "may be known" in line
    ]
    assert len(lines) == 1 and lines[0].startswith("y: where group may")


def test_models_without_an_edge_are_no_networks():
    assert not network_parts(inspect(network_model({"a": [], "b": []}, 20)).sums, 1.0)


def test_neither_values_nor_a_private_number_of_rows_show():
    pages = set()
    for fill, count in ((0, 1237), (1, 1237), (CANARY, 1241)):
        rows = {name: np.full(count, fill) for name in COLLIDER}
        domain = dp.Domain(neighbours="add_remove", n_max=5000)
        pages.add(str(network_parts(inspect(network_model(COLLIDER, rows), domain).sums, 1.0)))
    assert len(pages) == 1 and not any(text in next(iter(pages)) for text in ("1237", str(CANARY)))


def test_long_drawings_are_cut():
    star = {"y": [], **{f"x{i}": ["y"] for i in range(80)}}
    drawing, _ = network_parts(inspect(network_model(star, 20)).sums, 1.0)
    assert len(drawing.lines) == 51 and drawing.lines[-1] == "... and 31 more lines"


def test_under_a_metric_the_network_is_drawn_and_its_mechanisms_are_refused():
    metric = dp.metrics.Hamming([f"{name}_rows" for name in COLLIDER])
    inspection = inspect(network_model(COLLIDER, 50), dp.Domain(metric=metric), per_unit=True).sums
    drawing, table = network_parts(inspection, 1.0)
    assert drawing.lines[0] == "a"
    assert [row[1] for row in table.rows][1:] == ["none", "none"]
    assert "not accounted per unit of a metric" in table.rows[2][3]
