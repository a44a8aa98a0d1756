"""What strangers read beside the code agrees with it."""

import re

import pytest

import pymc_dp
from tests.pages import targets
from tests.project import PROJECT, ROOT

VERSION = pymc_dp.__version__
NOTES = ["CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "docs/start.md"])
def test_the_wheel_that_is_named_is_that_of_this_version(name):
    assert set(re.findall(r"pymc_dp-(.*?)-py3", text(name))) == {VERSION}


def test_the_version_is_the_same_everywhere():
    assert f"version: {VERSION}\n" in text("CITATION.cff")
    assert f"## {VERSION}\n" in text("CHANGELOG.md")
    assert f"| {VERSION.rpartition('.')[0]} | yes |" in text("SECURITY.md")
    assert f"three numbers: {VERSION}." in text("docs/versions.md")


def test_pythons_are_the_same_everywhere():
    stated = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.", one)]
    workflow = text(".github/workflows/ci.yml")
    assert set(re.findall(r"python: \[(.*)\]", workflow)) == {", ".join(f'"{one}"' for one in stated)}
    assert f"Python {stated[0]} to {stated[-1]};" in text("docs/versions.md")


def test_every_extra_is_on_the_page():
    assert set(re.findall(r"^\| `(\w+)` \|", text("docs/start.md"), re.M)) == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("name", NOTES)
def test_links_lead_somewhere(name):
    assert [target for target in targets(text(name)) if not (ROOT / target).exists()] == []
