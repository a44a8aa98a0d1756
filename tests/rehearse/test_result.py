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
    )  # fmt: skip


def test_calibrated_intervals_are_let_through():
    assert np.mean([made(20, seed=seed).good for seed in range(100)]) > 0.95
    assert made().verdict.startswith("Nothing speaks against the released intervals: 90% intervals covered")


def test_narrow_intervals_are_named_with_the_factor():
    found = made(200, wide=1.5)
    assert not found.good and found.factor == pytest.approx(1.5, abs=0.15)
    assert found.verdict.startswith("Released intervals are too narrow") and "Make them 1." in found.verdict


def test_a_few_tables_may_not_tell():
    """Of ten intervals two fail, by chance or not: nothing is found, and nothing is called well."""
    found = made(10, 1, seed=next(seed for seed in range(100) if made(10, 1, seed=seed).coverage == 0.8))
    assert found.good and found.verdict.startswith("10 tables are too few to tell: 90% intervals covered 80%")
    assert "tables=50" in found.verdict


def test_one_parameter_of_which_the_release_is_too_sure_is_named():
    found = made(ratio=np.array([1.0, 4.0, 1.0]))
    assert not found.good and found.verdict.startswith("Released intervals of b[1] are too sure")
    assert "up to 4 times as wide" in found.verdict


def test_simulated_tables_that_say_more_are_no_proof():
    found = made(wide=0.4, ratio=0.4)
    assert not found.good and "number of rows or their columns" in found.verdict


def test_numbers_are_by_parameter_and_together():
    found = made(ratio=np.array([1.0, 1.2, 1.44]))
    frame = found.to_dataframe().set_index("parameter")
    assert frame.index.tolist() == ["b[0]", "b[1]", "b[2]", "all"]
    np.testing.assert_allclose(frame["width_ratio"], [1.0, 1.2, 1.44, 1.2], rtol=0.03)
    assert frame.loc["all", "coverage"] == found.coverage == pytest.approx(found.covered.mean())
    factor = np.quantile(np.abs(found.errors[:, 0]) / REACH, 0.9)
    assert frame.loc["b[0]", "factor"] == pytest.approx(factor)
    assert (frame.filter(like="_error") > 0).all(axis=None)


def test_standard_errors_are_those_of_repeated_rehearsals():
    many = [made(30, wide=1.2, ratio=1.1, seed=seed) for seed in range(200)]
    for name, room in (("coverage", 0.15), ("width_ratio", 0.15), ("factor", 0.35)):
        spread = np.std([getattr(one, name) for one in many])
        assert np.mean([getattr(one, f"{name}_error") for one in many]) == pytest.approx(spread, rel=room), name


def test_all_covered_still_has_an_error():
    assert made(10, 1, wide=0.01).coverage_error == pytest.approx((0.09 / 10) ** 0.5)


def test_many_parameters_are_shown_in_part_and_columns_are_named():
    text = " ".join(str(made(parameters=40, loose=("x", "z"))).replace("│", " ").split())
    assert "27 more parameters are in .to_dataframe()" in text and "all" in text and "b[39]" not in text
    assert "a model that does not fit" in text and "fill the bounds of x, z evenly" in text
    assert "<b>" in made()._repr_html_()
