"""The code of the README runs from top to bottom, as one reader would run it."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.pages import ROOT, running, targets

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("statsmodels")
    with running(README, tmp_path_factory.mktemp("readme")) as namespace:
        yield {**namespace, "published": Path("public.nc").is_file()}


def test_page_runs_and_publishes(page):
    assert page["published"]
    assert "affair" in page["raw"].posterior_predictive


def test_numbers_in_comments_are_right(page):
    assert page["codes"].tolist() == [1, 2, 3, 1]
    assert "# 5.1 of 6 are spent" in TEXT
    assert (round(page["ledger"].spent.epsilon, 1), page["ledger"].budget.epsilon) == (5.1, 6.0)
    assert page["idata"].dp.epsilon == 0.5
    assert "# 5.28, so one draw" in TEXT and round(page["proof"].range.value, 2) == 5.28
    assert "# 1.88, without bounds" in TEXT and round(page["dp"].sensitivity(page["clamped"]).range.value, 2) == 1.88
    temperature = float(re.search(r"T = ([\d.]+)", str(page["fit"].dp.report())).group(1))
    assert f"# OPS: T = {temperature:.1f}, as wide as with {int(6366 / temperature)} of 6366 rows" in TEXT


@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 52.5), (1, 73), (5, 99.3)])
def test_shares_of_right_guesses_are_those_of_the_text(epsilon, share):
    assert round(100 / (1 + np.exp(-epsilon)), 1 if share % 1 else 0) == share
    assert f"{share:g}%" in TEXT


def test_every_likelihood_is_named():
    from pymc_dp.families import names

    assert [name for name in names().split(", ") if f"pm.{name}" not in TEXT] == []


def test_every_linked_file_exists():
    assert [target for target in targets(TEXT) if not (ROOT / target).exists()] == []
