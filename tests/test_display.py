import pytest

from pymc_dp._display import NARROWEST, WIDTH, Listing, Page, Table, Whole, width

PAGE = Page(
    title="Title",
    headline="A sentence that is longer than what a narrow terminal has room for, by far.",
    good=True,
    parts=[
        Table(title="Table", columns=("one", "other"), rows=[("a name", "a text of many words, " * 5)]),
        Listing(title="List", lines=["a line of many words, " * 5]),
    ],
)


@pytest.mark.parametrize(("columns", "taken"), [(64, 64), (100, WIDTH), (250, WIDTH), (5, NARROWEST)])
def test_a_page_is_as_wide_as_the_terminal_within_limits(columns, taken, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert width() == taken
    assert {len(line) for line in str(Whole(PAGE)).splitlines()} == {taken}


def test_a_page_is_shown_the_same_everywhere():
    whole = Whole(PAGE)
    assert str(whole) == repr(whole) == PAGE.text() and whole._repr_html_() == PAGE.html()
    assert "<tr></tr>" not in Page(title="", headline="", good=True, parts=[Table(title="", rows=[("a", "b")])]).html()
