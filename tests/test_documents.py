"""Documents hold any text as it is, whatever their format takes it for, and need nothing beside them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from pymc_dp._display import Drawing, Listing, Page, Prose, Table
from pymc_dp._documents import PREAMBLE, SYMBOL_NAMES, latex, markdown, web_page

HOSTILE = [
    "a_b * c * _d_ **e**",
    "<script>alert('x')</script> &amp; <b>",
    "|p| $q$ #r %s ^t ~u {v} \\w `x` \"y\" --- ''z'' ,,",
    "[a](https://b.c) ![d](e) <https://f.g>",
    "- a list",
    "1. another",
    "# a title",
    "---",
    "ε ≤ δ² · √2, ℓ – é ß Łódź ő 中 😀",
    "[2pt] * after a row",
]


def page(text: str) -> Page:
    parts = [
        Table(title=text, rows=[(text, text)]),
        Table(title="", columns=(text, text), rows=[(text, text)]),
        Listing(title="list", lines=[text]),
        Listing(title="empty", lines=[]),
        Drawing(title="drawing", lines=["x"]),
        Prose(title="prose", lines=[text, text]),
    ]
    return Page(title=text, headline=text, good=True, parts=parts)


PLACES = 12
"""How often a text stands on the page."""


class Read(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in {"meta", "br", "hr"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_every_text_as_it_is(text):
    read = Read(MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(markdown(page(text))))
    assert not read.open and "".join(read.texts).count(text) == PLACES
    used = {"h1", "h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "pre", "code"}
    assert read.tags <= used


@pytest.mark.parametrize("text", HOSTILE)
def test_a_web_page_shows_every_text_as_it_is_and_loads_nothing(text):
    document = web_page(page(text))
    read = Read(document)
    assert not read.open and "".join(read.texts).count(text) == PLACES + 1  # the title of the window
    assert read.attributes <= {"lang", "charset", "name", "content", "style"}
    assert read.tags.isdisjoint({"script", "link", "img", "a"})
    assert "color-scheme:light dark" in document and "url(" not in document and "@import" not in document


COMMANDS = re.compile(r"\\([a-zA-Z]+)\*?|\\(.)")
NAMES = """
section subsection noindent textbf textit texttt begin end item ensuremath character allowbreak linewidth
textbackslash textasciitilde textasciicircum textless textgreater textbar textasciigrave textendash textemdash
textquoteleft textquoteright textquotedblleft textquotedblright ldots S ss o O ae AE l L oe OE i r H v d c k u
"""
KNOWN = {*NAMES.split(), *SYMBOL_NAMES.split()}


def body(document: str) -> str:
    assert document.startswith(PREAMBLE) and document.isascii()
    assert document.endswith("\\end{document}\n")
    return document.removeprefix(PREAMBLE).removesuffix("\\end{document}\n")


def problems(text: str) -> list[str]:
    """What LaTeX would stumble over in the body of an article."""
    found, depth, within = [], 0, []
    for begins, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if begins == "begin":
            within.append(name)
        elif not within or within.pop() != name:
            found.append(f"end of {name}")
    found += within
    found += [f"command {name}" for name, _ in COMMANDS.findall(text) if name and name not in KNOWN]
    plain = COMMANDS.sub("", text)
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            found.append("brace")
    found += ["brace"] * bool(depth)
    found += [f"raw {sign}" for sign in "#$%~" if sign in plain]
    found += ["raw _ or ^"] * bool(re.search(r"[_^]", plain.replace("{{}^", "")))
    for options, rows in re.findall(r"\\begin\{longtable\}\{((?:L\{[^}]*\})+)\}\n(.*?)\\end\{longtable\}", text, re.S):
        cells = [len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows.splitlines()]
        if set(cells) != {options.count("L{")} or not all(row.startswith("{}") for row in rows.splitlines()):
            found.append("table")
    outside = re.sub(r"\\begin\{longtable\}.*?\\end\{longtable\}", "", text, flags=re.S)
    found += ["raw &"] * bool(re.search(r"(?<!\\)&", outside))
    found += ["list without item"] * ("\\begin{itemize}\n\\end" in text)
    return found


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_takes_no_text_for_a_command(text):
    assert problems(body(latex(page(text)))) == []


@pytest.mark.parametrize("render", [markdown, web_page, latex])
def test_what_cannot_be_seen_is_shown_by_its_number(render):
    document = render(Page(title="a\u202eb\x07c\u200bd", headline="e\u00a0\r\nf", good=True, parts=[]))
    assert "aU+202EbU+0007cU+200Bd" in document and "\x07" not in document
    assert not any(sign in document for sign in "\u202e\u200b\x07\r")
