from __future__ import annotations

import pytest

import pymc_dp as dp
from tests.advice.conftest import location


@pytest.mark.slow
def test_rows_held_one_by_one_show_what_sensitivity_proves(explained):
    model, domain = location(bounds=(-5.0, 5.0))
    proved = dp.sensitivity(model, domain)
    shown = {quantity: (float(bound), worst) for _, quantity, bound, worst in explained("location").proved}
    assert shown["range R"][0] == pytest.approx(proved.range.value, rel=1e-5)
    assert shown["sensitivity Δl"][0] == pytest.approx(proved.log_likelihood.value, rel=1e-5)
    assert shown["range R"][1].startswith("y (row 0) = ")


@pytest.mark.slow
def test_log_concavity_is_shown_where_no_range_is_proved(explained):
    lines = {quantity: (bound, worst) for _, quantity, bound, worst in explained("logistic").proved}
    assert lines["range R"] == ("not proved", "'X·b' has no bounds")
    assert lines["G / √m"] == ("2", "likelihood concave in θ, prior m-strongly log-concave: G = 2, m = 1")


def test_statistics_are_shown_by_their_own_tables(explained):
    assert explained("counts").proved == ()
