"""What `dp.explain` says of a network: a drawing, and what each mechanism would cost."""

import html

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.advice.networks import network_parts
from pymc_dp.inspection.inspect import inspect
from pymc_dp.mechanisms.statistics import Statistics, draw_release, plan_release
from tests.networks import COLLIDER, network_model, random_rows
from tests.trace.conftest import CANARY


@pytest.fixture(scope="module")
def explained():
    return dp.explain(network_model(COLLIDER, 500, {"b": 3}), epsilon=0.5)


def test_the_network_is_drawn_in_a_terminal_and_in_a_notebook(explained):
    lines = ["a", "└── c [also b]", "    └── d", "b (3)", "└── c ↑"]
    text, page = str(explained), html.unescape(explained._repr_html_())
    for line in lines:
        assert f"│   {line} " in text
    assert "\n".join(lines) in page and "<pre" in page
    assert "A Bayesian network of 4 nodes and 3 edges" in text


def test_every_mechanism_is_priced_at_the_budget_asked_for(explained):
    _, table = explained.network
    assert [row[0] for row in table.rows] == ["no mechanism", "LaplaceUpdates()", "FourierUpdates()"]
    assert "at ε = 0.5" in table.title
    numbers = {row[0]: row[1] for row in table.rows}
    assert numbers == {"no mechanism": "20", "LaplaceUpdates()": "20", "FourierUpdates()": "14"}


@pytest.mark.parametrize("mechanism", [None, dp.LaplaceUpdates(), dp.FourierUpdates()])
def test_the_noise_of_a_count_is_what_is_told(mechanism, rng):
    """Of simulated releases: the tables of coefficients have noise from all of them."""
    model = network_model(COLLIDER, random_rows(rng, COLLIDER, 100))
    inspection = inspect(model)
    _, table = network_parts(inspection, 0.5)
    (told,) = [
        row[3]
        for row in table.rows
        if (mechanism is None) == (row[0] == "no mechanism")
        and repr(mechanism).split("(")[0] in (row[0].split("(")[0], "None")
    ]
    plan = plan_release(inspection, Statistics(mechanism=mechanism), 0.5)
    with dp.testing.without_noise():
        exact = draw_release(plan).values
    errors = {}
    with dp.testing.insecure_randomness(1):
        for _ in range(400):
            values = draw_release(plan).values
            found = plan.network.tables(values["network"]) if plan.network else [values[name] for name in COLLIDER]
            bare = plan.network.tables(exact["network"]) if plan.network else [exact[name] for name in COLLIDER]
            for place, (one, other) in enumerate(zip(found, bare, strict=True)):
                errors.setdefault(place, []).append(np.ravel(one - other))
    deviations = [np.sqrt(np.mean(np.square(held))) for held in errors.values()]
    ends = [float(item) for item in told.split(" to ")]
    assert min(deviations) == pytest.approx(ends[0], rel=0.1) and max(deviations) == pytest.approx(ends[-1], rel=0.1)


def test_models_without_an_edge_are_no_networks():
    assert not dp.explain(network_model({"a": [], "b": []}, 20)).network


def test_the_number_of_rows_does_not_show_under_add_remove():
    explained = dp.explain(network_model(COLLIDER, 1237), dp.Domain(neighbours="add_remove", n_max=5000))
    assert explained.network and "1237" not in str(explained)


def test_texts_do_not_depend_on_values():
    pages = set()
    for fill in (0, 1, CANARY):
        rows = {name: np.full(50, fill) for name in COLLIDER}
        pages.add(str(dp.explain(network_model(COLLIDER, rows))))
    assert len(pages) == 1 and str(CANARY) not in pages.pop()
