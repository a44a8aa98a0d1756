"""Our methods are as good as they were: means of fresh fits against what is stored in `benchmarks/thresholds.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from _thresholds import MARGIN, SETTINGS, STORED, check, least

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_method_is_as_good_as_it_was(name):
    mean, limit = check(name)
    assert mean >= limit


def test_every_setting_has_a_stored_threshold():
    assert set(json.loads(STORED.read_text(encoding="utf-8"))) == set(SETTINGS)


def test_the_margin_is_in_standard_errors_of_the_difference():
    stored = {"mean": -1.0, "sd": 0.3, "runs": 9}
    assert least(stored, 9) == pytest.approx(-1.0 - MARGIN * 0.3 * (2 / 9) ** 0.5)
    assert least(stored, 1) < least(stored, 9)
