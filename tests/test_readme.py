"""The README is short, runs as it stands, and has no number that stands nowhere else."""

import re
from pathlib import Path

import numpy as np
import pytest

from pymc_dp.families import names
from tests.pages import ROOT, blocks, running, targets

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
MOST_WORDS = 900
"""Of everything: words of code and of tables count as well."""


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_it_is_short():
    assert len(TEXT.split()) <= MOST_WORDS


def test_its_first_block_runs_and_publishes(tmp_path):
    assert len(blocks(TEXT)) == 1
    with running(README, tmp_path) as namespace:
        assert namespace["idata"].dp.epsilon == 1.0
        assert Path("public.nc").is_file()


@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 52.5), (1, 73), (5, 99.3)])
@pytest.mark.parametrize("text", [TEXT, page("guarantees.md")], ids=["README", "guarantees"])
def test_shares_of_right_guesses_are_those_of_the_text(epsilon, share, text):
    assert round(100 / (1 + np.exp(-epsilon)), 1 if share % 1 else 0) == share
    assert f"{share:g}% at ε = {epsilon:g}" in text


def test_its_counts_of_models_are_those_of_the_page():
    found = re.search(r"Of (\d+) models, .* and (\d+) are refused\.", page("models.md"))
    assert found and f"Of [{found[1]} models of textbooks](docs/models.md) {found[2]} are refused." in TEXT


def test_every_likelihood_is_named_on_its_page():
    likelihoods = page("likelihoods.md")
    assert [name for name in names().split(", ") if f"pm.{name}" not in likelihoods] == []


def test_every_linked_file_exists():
    assert [target for target in targets(TEXT) if not (ROOT / target).exists()] == []
