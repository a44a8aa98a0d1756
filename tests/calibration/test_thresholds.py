"""Our methods are as good as they were: means of fresh fits against what is stored in `benchmarks/thresholds.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from _thresholds import SETTINGS, STORED, check

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_method_is_as_good_as_it_was(name):
    mean, limit = check(name)
    assert mean >= limit


def test_every_setting_has_a_stored_threshold():
    assert set(json.loads(STORED.read_text(encoding="utf-8"))) == set(SETTINGS)
