"""Pages show what the library says now, and links lead to headings that exist."""

import importlib
import json
import re

import pytest

from tests.pages import ROOT, blocks
from tests.test_docs import PAGES, named


def anchors(text):
    """Return what MyST makes of the headings of a page, down to the third level."""
    plain = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    titles = re.findall(r"^#{1,3} (.*)$", plain, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def text_of(path):
    """Return a page; of a notebook, its text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def broken(path):
    """Return links of a page or notebook, within it and to others, that lead nowhere."""
    found = []
    for target, _, place in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(#([^)\s]+))?\)", text_of(path)):
        page = path if not target else (path.parent / target.replace("docs/notebooks", "notebooks")).resolve()
        page = ROOT / page.relative_to(ROOT).as_posix().replace("docs/notebooks/", "notebooks/")
        thumbnail = page.suffix == ".png" and page.with_suffix(".ipynb").exists()  # made of it by `make docs`
        if not (page.exists() or thumbnail) or (place and place not in anchors(text_of(page))):
            found.append(f"{target}#{place}")
    return found


NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS, ROOT / "README.md"], ids=lambda page: page.stem)
def test_links_lead_to_pages_and_headings(page):
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_code_of_pages_is_not_cut_off(page):
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^(`{3,})(.*?)\n(.*?)^\1$", text, flags=re.M | re.S)
    shown = [block for _, kind, block in found if not kind.startswith("{")]
    assert [line for block in shown for line in block.splitlines() if len(line) > 88] == []


def test_five_minutes_show_what_explain_prints(monkeypatch):
    monkeypatch.setenv("COLUMNS", "88")
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    shown = next(block for block in re.findall(r"^```text\n(.*?)^```", page, flags=re.M | re.S))
    names = {}
    for block in blocks(page)[:1]:
        exec(block, names)
    said = str(names["dp"].explain(names["model"])).replace("│", " ").split()
    assert [word for word in shown.split() if word not in said] == []


def test_the_comparison_is_the_one_that_was_measured(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    stored, shown = importlib.import_module("_compare_stored"), importlib.import_module("_compare_page")
    page = (ROOT / "docs" / "compared.md").read_text(encoding="utf-8")
    assert shown.replaced(page, shown.page(stored.load(), [], epsilon=1.0)) == page


def test_the_gallery_has_every_notebook_once():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(notebooks/\S+)$", page, flags=re.M)
    assert sorted(listed) == [path.relative_to(ROOT).with_suffix("").as_posix() for path in NOTEBOOKS]
    assert [name for name in listed if f"]({name}.ipynb).**" not in page] == []
