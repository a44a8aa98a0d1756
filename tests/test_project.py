"""What strangers read beside the code agrees with it."""

import re

import pytest

import pymc_dp
from tests.pages import targets
from tests.project import PROJECT, ROOT

VERSION = pymc_dp.__version__
NOTES = ["CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))


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


def test_the_workflow_calls_targets_that_exist():
    called = set(re.findall(r"make ([a-z-]+)", text(".github/workflows/ci.yml")))
    assert called and called <= set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))


@pytest.mark.parametrize("name", ["pyproject.toml", "CITATION.cff", "docs/conf.py", "README.md", *NOTES])
def test_no_address_holds_a_word_in_place_of_a_name(name):
    assert re.findall(r"https?://\S*/(?:OWNER|USER|ORG|TODO|<[^>]*>)\b\S*", text(name)) == []


def test_every_extra_is_on_the_page():
    assert set(re.findall(r"^\| `(\w+)` \|", text("docs/start.md"), re.M)) == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("name", NOTES)
def test_links_lead_somewhere(name):
    assert [target for target in targets(text(name)) if not (ROOT / target).exists()] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_issue_forms_are_read_and_ask_for_no_real_rows(form):
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(form.read_text(encoding="utf-8"))
    fields = [part["id"] for part in found["body"] if part["type"] != "markdown"]
    assert len(set(fields)) == len(fields) >= 4 and "versions" in fields
    assert "ever paste rows of real people" in str(found) or "Never rows of real people" in str(found)
