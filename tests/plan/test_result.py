"""What a plan says: a table, a frame, and the ε of a width."""

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.plan.result import Outcome, Plan


def made(widths, *, delta=0.0, names=("a",)):
    """A plan of known mean widths: {(method, epsilon): width}."""

    def outcome(method, epsilon, width):
        rows = {name: np.full((2, 1), width) for name in names}
        ones = {name: np.ones((2, 1)) for name in names}
        return Outcome(
            method=method, epsilon=epsilon, delta=0.0 if method == "laplace" else delta, widths=rows, covered=ones,
            errors=rows,
        )  # fmt: skip

    outcomes = [outcome("not private", np.inf, 0.1), *(outcome(*key, width) for key, width in widths.items())]
    return Plan(outcomes=tuple(outcomes), repeats=2, interval=0.9, rows="5 rows", how="on a grid", wanted={})


def test_the_method_of_least_epsilon_is_suggested():
    plan = made(
        {("laplace", 0.1): 1.0, ("laplace", 1.0): 0.1, ("gaussian", 0.1): 2.0, ("gaussian", 1.0): 0.2}, delta=1e-6
    )
    found = plan.suggest(0.5)
    assert (found.method, found.delta) == ("laplace", 0.0)
    assert found.epsilon == pytest.approx(10**-0.699, rel=1e-3)
    assert repr(found) == "a: ε = 0.2 by laplace for a mean 90% interval of width 0.5 (ε = 0.4 by gaussian)."
    assert plan.suggest(1.5).text.startswith("a: ε = 0.1 by laplace (the least that was simulated) or less for")


def test_arguments_of_suggest():
    plan = made({("laplace", 0.1): 1.0}, names=("a", "b"))
    with pytest.raises(ArgumentError, match=r"give var_name=, one of 'a', 'b'"):
        plan.suggest(0.5)
    assert plan.suggest(2.0, var_name="b").var_name == "b"
    with pytest.raises(ArgumentError, match="var_name must be one of"):
        plan.suggest(0.5, var_name="c")
    with pytest.raises(ArgumentError, match="width must be > 0"):
        plan.suggest(0.0, var_name="a")


@pytest.mark.slow
def test_methods_that_cover_less_than_they_claim_are_not_suggested(planned):
    found = planned.suggest(0.25)
    assert found.method == "aware"
    assert found.text.endswith("Left out, because intervals cover less than they claim: plug-in.")
