"""What the pages of ``dp.sensitivity`` say; the bounds themselves are tested with the proofs."""

from __future__ import annotations

import html

import pymc_dp as dp
from tests.advice.conftest import location, logistic


def _headline(found: object) -> str:
    return str(found).split("\n")[1].strip("│ ")


def test_a_page_without_a_range_says_what_would_do() -> None:
    found = dp.sensitivity(*logistic())
    assert _headline(found) == "No finite range is proved, which dp.OPS needs."
    text, page = str(found), html.unescape(found._repr_html_())
    for phrase in ("μ-GDP with μ = 2 / T", "G, slope of a difference", "What would make the range finite"):
        assert phrase in text and phrase in page


def test_a_page_with_a_range_shows_where_it_is_met() -> None:
    found = dp.sensitivity(*location(bounds=(-5.0, 5.0)))
    assert (
        _headline(found) == f"R = {found.range.value:.6g}, Δl = {found.log_likelihood.value:.6g} (neighbours: replace)"
    )
    assert "y (row 0) = " in str(found) and set(found.to_frame()["quantity"]) == {"range", "sensitivity"}
