"""What is in the way of a proof is named, with bounds that would do."""

import numpy as np
import pytest

from pymc_dp.intervals.expression import Symbol
from pymc_dp.proofs.unconstrained import no_rule, unproved


def symbol(name, role, bounds=(-np.inf, np.inf), shape=()):
    return Symbol(name=name, low=np.full(shape, bounds[0]), high=np.full(shape, bounds[1]), role=role)


TOLD = {
    "a value without bounds": (
        [symbol("y", "row"), symbol("mu", "parameter")],
        ["'y' has no bounds", "Give public bounds of its values, dp.Domain(bounds={'y': (low, high)});"],
    ),
    "a vector": ([symbol("x", "row", shape=(3,))], ["dp.Domain(norms={'x': norm})"]),
    "two columns": (
        [symbol("x", "row"), symbol("y", "row")],
        ["no row is bounded: 'x', 'y' may be anything", "bounds={'x': (low, high), 'y': (low, high)}"],
    ),
    "a parameter": (
        [symbol("sd", "parameter"), symbol("y", "row", (0.0, 1.0))],
        ["Log of 'sd', 'y' has no bound near the initial point", "dp.truncate(model, {'sd': (low, high)})"],
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_the_text_names_what_is_unbounded_and_what_would_do(name):
    symbols, expected = TOLD[name]
    problem = unproved("y", "Log", symbols)
    for text in [*expected, "dp.clamp(model, low, high)", "BarkerMetropolis(clamp=...)"]:
        assert text in str(problem)


def test_an_operation_without_a_rule_is_named():
    assert "its density contains Cholesky, which no rule bounds" in str(no_rule("y", "Cholesky"))
