"""What a rehearsal says of errors and widths that are known."""

import numpy as np
import pytest

from pymc_dp.rehearse import Rehearsed

REACH = 1.6448536269514722
"""Half the width of a 90% interval, in standard deviations."""


def made(tables=40, parameters=3, *, wide=1.0, ratio=1.0, seed=0, **given):
    """Errors with `wide` times the released standard deviation, in intervals `ratio` times as wide as released."""
    rng = np.random.default_rng(seed)
    errors = wide * rng.normal(size=(tables, parameters))
    widths = 2 * REACH * np.broadcast_to(ratio, (parameters,)) * np.exp(0.03 * rng.normal(size=(tables, parameters)))
    return Rehearsed(
        parameters=tuple(f"b[{place}]" for place in range(parameters)),
        errors=errors,
        covered=(2 * np.abs(errors) <= widths).astype(float),
        widths=widths,
        released=np.full(parameters, 2 * REACH),
        interval=0.9,
        rows="100 rows",
        how="by hand",
        **given,
    )


NEAR = next(seed for seed in range(100) if made(10, 1, seed=seed).coverage == 0.8)
CASES = [
    ({}, True, ("Nothing speaks against the released intervals: 90% intervals covered",)),
    ({"tables": 200, "wide": 1.5}, False, ("Released intervals are too narrow", "Make them 1.")),
    ({"tables": 10, "parameters": 1, "seed": NEAR}, True, ("10 tables are too few to tell", "80%", "tables=50")),
    ({"ratio": [1.0, 4.0, 1.0]}, False, ("Released intervals of b[1] are too sure", "up to 4 times as wide")),
    ({"wide": 0.4, "ratio": 0.4}, False, ("", "number of rows or their columns")),
]


@pytest.mark.parametrize(("given", "good", "says"), CASES)
def test_the_verdict_is_that_of_the_numbers(given, good, says):
    found = made(**given)
    assert found.good == good and found.verdict.startswith(says[0]) and all(one in found.verdict for one in says)


def test_numbers_are_by_parameter_and_together_and_chance_is_allowed_for():
    found = made(ratio=np.array([1.0, 1.2, 1.44]))
    frame = found.to_dataframe().set_index("parameter")
    assert frame.index.tolist() == ["b[0]", "b[1]", "b[2]", "all"]
    np.testing.assert_allclose(frame["width_ratio"], [1.0, 1.2, 1.44, 1.2], rtol=0.03)
    assert frame.loc["all", "coverage"] == found.coverage == pytest.approx(found.covered.mean())
    assert np.mean([made(20, seed=seed).good for seed in range(100)]) > 0.95
    assert made(200, wide=1.5).factor == pytest.approx(1.5, abs=0.15)


def test_many_parameters_are_shown_in_part_and_columns_are_named():
    text = " ".join(str(made(parameters=40, loose=("x", "z"))).replace("│", " ").split())
    assert "27 more parameters are in .to_dataframe()" in text and "all" in text and "b[39]" not in text
    assert "a model that does not fit" in text and "fill the bounds of x, z evenly" in text
    assert made(10, 1, wide=0.01).coverage_error == pytest.approx((0.09 / 10) ** 0.5), "where all are covered"
