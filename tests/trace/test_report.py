from __future__ import annotations

import html

import xarray as xr

from pymc_dp.trace.report import LIMITS


def test_text_and_html_say_the_same(trace: xr.DataTree) -> None:
    report = trace.dp.report()
    text, page = " ".join(str(report).replace("│", " ").split()), html.unescape(report._repr_html_())
    for phrase in (
        "ε = 1 for one row",
        "exact",
        "hardened",
        "replace",
        "discrete Laplace",
        "answer",
        "bernoulli",
        "row_probability",
        "number of rows: 60",
    ):
        assert phrase in text, phrase
        assert phrase in page, phrase
    assert all(" ".join(limit.split()) in text and limit in page for limit in LIMITS)


def test_lists_everything_assumed_public(trace: xr.DataTree) -> None:
    assumptions = trace.dp.report().record["assumptions"]
    assert any("prior of p" in line for line in assumptions)
    assert "dimension group: length 3 and its labels" in assumptions
    assert any(line.startswith("dimension patient: the rows") for line in assumptions)


def test_publishable_follows_additions(trace: xr.DataTree) -> None:
    assert trace.dp.report().publishable
    trace.attrs["note"] = "x"
    assert not trace.dp.report().publishable
