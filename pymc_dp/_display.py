"""Pages of findings that read the same in a terminal and in a notebook."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from shutil import get_terminal_size
from typing import Any, Protocol, override

WIDTH, NARROWEST = 100, 40
"""Columns of a page: at most, where the terminal has them, and at least."""
GOOD, BAD = "#1a7f37", "#b3261e"
CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"


def width() -> int:
    """Return the columns that a page takes: those of the terminal, within limits; `WIDTH` where there is none."""
    return max(NARROWEST, min(WIDTH, get_terminal_size((WIDTH, 24)).columns))


@dataclass(frozen=True, kw_only=True)
class Table:
    """A titled table of texts; without column names, the first column names the rows."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A titled list of lines."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A titled picture of characters, shown as it is."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Prose:
    """Titled paragraphs."""

    title: str
    lines: Sequence[str]


Part = Table | Listing | Drawing | Prose


@dataclass(frozen=True, kw_only=True)
class Page:
    """A headline, and tables, lists and drawings under it; `good` sets the colour in notebooks."""

    title: str
    headline: str
    good: bool
    parts: Sequence[Part]

    def text(self) -> str:
        """Return the page as plain text, as wide as `width` says."""
        from rich.console import Console

        console = Console(
            width=width(), force_terminal=False, force_jupyter=False, color_system=None, legacy_windows=False
        )
        with console.capture() as capture:
            console.print(self.rich())
        return capture.get().rstrip()

    def rich(self) -> Any:
        """Return the page as a rich renderable."""
        from rich import box
        from rich.console import Group
        from rich.padding import Padding
        from rich.panel import Panel
        from rich.table import Column
        from rich.table import Table as RichTable
        from rich.text import Text

        body: list[Any] = [Text(self.headline, style="bold")]
        for part in self.parts:
            body.append(Text(f"\n{part.title}" if part.title else "", style="bold"))
            if isinstance(part, Listing):
                body += [Padding(_indented(line), (0, 0, 0, 2)) for line in part.lines]
                continue
            if isinstance(part, Drawing | Prose):
                apart = "\n" if isinstance(part, Drawing) else "\n\n"
                body.append(Padding(Text(apart.join(part.lines)), (0, 0, 0, 2)))
                continue
            table = RichTable(
                *(Column(name, overflow="fold", no_wrap=place == 0) for place, name in enumerate(part.columns)),
                box=None,
                show_header=bool(part.columns),
                header_style="italic",
                padding=(0, 2, 0, 0),
            )
            if not part.columns:
                table.add_column(style="bold", no_wrap=True)
            for row in part.rows:
                table.add_row(*map(Text, row))
            body.append(Padding(table, (0, 0, 0, 2)))
        return Panel(Group(*body), title=self.title, width=width(), box=box.ROUNDED)

    def html(self) -> str:
        """Return the page as HTML with inline styles only."""
        parts = [f"<p style='font-size:115%;margin:2px 0'><b>{html.escape(self.headline)}</b></p>"]
        for part in self.parts:
            if part.title:
                parts.append(f"<p style='margin:10px 0 2px'><b>{html.escape(part.title)}</b></p>")
            parts.append(_html_part(part))
        border = f"border-left:4px solid {GOOD if self.good else BAD}"
        return f"<div style='{border};padding:4px 12px;max-width:900px;line-height:1.4'>{''.join(parts)}</div>"


def shorten(items: Sequence[str], most: int = 4) -> list[str]:
    """Return the first and last items of a long sequence."""
    return list(items) if len(items) <= most else [*items[: most - 2], "...", items[-1]]


class Named(Protocol):
    """An array that has a name."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""


def scalar_names(arrays: Iterable[Named]) -> tuple[str, ...]:
    """Name every scalar of some arrays, in the order of their flattening."""
    return tuple(scalar_name(array.name, index) for array in arrays for index in product(*map(range, array.shape)))


def scalar_name(array: str, index: Sequence[int]) -> str:
    """Return the name of one scalar of an array, by the array's name.

    Examples
    --------
    >>> scalar_name("w", (0, 2)), scalar_name("sigma", ())
    ('w[0, 2]', 'sigma')
    """
    return f"{array}[{', '.join(map(str, index))}]" if index else array


def _indented(line: str) -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    row = RichTable.grid(padding=(0, 1, 0, 0))
    row.add_row(Text("·"), Text(line))
    return row


def _html_part(part: Part) -> str:
    if isinstance(part, Drawing):
        return f"<pre style='margin:0;line-height:1.2'>{html.escape(chr(10).join(part.lines))}</pre>"
    if isinstance(part, Prose):
        return "".join(f"<p style='margin:0 0 8px'>{html.escape(line)}</p>" for line in part.lines)
    return _html_list(part.lines) if isinstance(part, Listing) else _html_table(part)


def _html_list(lines: Sequence[str]) -> str:
    return "<ul style='margin:0'>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def _html_table(table: Table) -> str:
    def cell(text: str, tag: str) -> str:
        return f"<{tag} style='{CELL}'>{html.escape(text)}</{tag}>"

    head = "".join(cell(name, "th") for name in table.columns)
    first = "td" if table.columns else "th"
    rows = "".join(
        "<tr>" + "".join(cell(text, first if place == 0 else "td") for place, text in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    titles = f"<tr>{head}</tr>" if head else ""
    held = f"<table style='border-collapse:collapse'>{titles}{rows}</table>"
    return f"<div style='overflow-x:auto'>{held}</div>"


class Shown(ABC):
    """Base of findings that are shown as a page: as text, in a terminal by rich, and in a notebook."""

    @property
    @abstractmethod
    def _page(self) -> Page:
        """Return what is shown."""

    def __str__(self) -> str:
        return self._page.text()

    __repr__ = __str__

    def __rich__(self) -> Any:
        return self._page.rich()

    def _repr_html_(self) -> str:
        return self._page.html()


@dataclass(frozen=True, repr=False)
class Whole(Shown):
    """A page to be shown."""

    page: Page

    @property
    @override
    def _page(self) -> Page:
        return self.page
