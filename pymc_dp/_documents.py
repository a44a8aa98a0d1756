"""Pages of findings as documents that stand alone: Markdown, HTML, LaTeX.

Texts hold names that users gave to models, columns and data sets: each format escapes all that it gives a meaning to.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from pymc_dp._display import Drawing, Listing, Page, Part, Table

STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.4 system-ui,sans-serif;max-width:924px;margin:0 auto;padding:16px;overflow-wrap:break-word}"
    "h1{font-size:150%;margin:8px 0 16px}th+td{overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){body{background:#16181c;color:#e3e5e8}}"
    "@media print{body{max-width:none;font-size:11pt}}"
)


def markdown(page: Page) -> str:
    r"""Return a page in Markdown, as GitHub reads it.

    Examples
    --------
    >>> print(markdown(Page(title="a_b", headline="*", good=True, parts=[Listing(title="", lines=["<c>"])])))
    # a\_b
    <BLANKLINE>
    **\***
    <BLANKLINE>
    - \<c\>
    <BLANKLINE>
    """
    found = [f"# {_marked(page.title)}", f"**{_marked(page.headline)}**"]
    for part in page.parts:
        found += [f"## {_marked(part.title)}"] if part.title else []
        found.append(_markdown_part(part))
    return "\n\n".join(found) + "\n"


def web_page(page: Page) -> str:
    """Return a page as an HTML document, with nothing to load; light or dark, as its reader has it."""
    title = html.escape(_printable(page.title))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n{_printable(page.html())}\n</body></html>\n"
    )


def latex(page: Page) -> str:
    """Return a page as an article in LaTeX: plain ASCII, for any of its engines."""
    body = [f"\\section*{{{_typeset(page.title)}}}", f"\\noindent\\textbf{{{_typeset(page.headline)}}}"]
    for part in page.parts:
        body += [f"\\subsection*{{{_typeset(part.title)}}}"] if part.title else []
        body.append(_latex_part(part))
    return PREAMBLE + "\n\n".join(body) + "\n\n\\end{document}\n"


FORMATS: Mapping[str, Callable[[Page], str]] = {".md": markdown, ".html": web_page, ".tex": latex}
"""By the ending of a file."""


def _printable(text: str) -> str:
    """Return a text without what no page shows: control characters, and those that turn the direction of writing."""
    shown = {c: c if c.isprintable() or c == "\n" else " " if c.isspace() else f"U+{ord(c):04X}" for c in set(text)}
    return "".join(map(shown.__getitem__, text))


def _on_a_line(text: str) -> str:
    return " ".join(_printable(text).split())


def _marked(text: str) -> str:
    """Escape a text for Markdown: what is marked anywhere, and what is at the beginning of a line."""
    found = re.sub(r"([\\`*_{}\[\]<>#|~&!$])", r"\\\1", _on_a_line(text)).replace("://", "\\://")
    return re.sub(r"^(\d*)([-+=.)])(?=[\s=-]|$)", r"\1\\\2", found)


def _markdown_part(part: Part) -> str:
    if isinstance(part, Table):
        rows = [tuple(map(_marked, row)) for row in part.rows]
        names = tuple(map(_marked, part.columns)) or ("",) * len(part.rows[0])
        if not part.columns:
            rows = [(f"**{first}**", *others) for first, *others in rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in (names, ("---",) * len(names), *rows))
    if isinstance(part, Drawing):
        return "\n".join(f"    {_printable(line)}" for line in part.lines)
    if isinstance(part, Listing):
        return "\n".join(f"- {_marked(line)}" for line in part.lines)
    return "\n\n".join(map(_marked, part.lines))


PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper,margin=2.5cm]{geometry}
\usepackage{iftex,array,longtable}
\ifPDFTeX
  \usepackage[T1]{fontenc}
  \usepackage{lmodern,textcomp}
  \newcommand{\character}[1]{[U+#1]}
\else
  \usepackage{fontspec}
  \newcommand{\character}[1]{\symbol{"#1}}
\fi
\newcolumntype{L}[1]{>{\raggedright\arraybackslash}p{#1}}
\setlength{\parindent}{0pt}
\setlength{\parskip}{0.5em}
\emergencystretch=3em
\begin{document}

"""
SYMBOLS = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ·×≤≥≠±∞√≈ℓ∂∇→‖∝"
SYMBOL_NAMES = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon varphi chi "
    "psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega cdot times le ge ne pm infty surd approx "
    "ell partial nabla to Vert propto"
)
SIGNS = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "_": r"\_\allowbreak{}"},
    **{sign: f"\\{sign}" for sign in "{}$&#%"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textasciigrave{}"},
    **{"ß": r"\ss{}", "ø": r"\o{}", "Ø": r"\O{}", "æ": r"\ae{}", "Æ": r"\AE{}"},
    **{"ł": r"\l{}", "Ł": r"\L{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ı": r"\i{}", "…": r"\ldots{}", "§": r"\S{}"},
    **{sign: f"\\ensuremath{{\\{name}}}" for sign, name in zip(SYMBOLS, SYMBOL_NAMES.split(), strict=True)},
    **{"²": r"\ensuremath{{}^2}", "³": r"\ensuremath{{}^3}", "−": r"\ensuremath{-}"},
    **{"–": r"\textendash{}", "—": r"\textemdash{}", "‘": r"\textquoteleft{}", "’": r"\textquoteright{}"},
    **{"“": r"\textquotedblleft{}", "”": r"\textquotedblright{}"},
}
ACCENTS = {
    **{"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": "."},
    **{"\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d", "\u0327": "c", "\u0328": "k"},
}
"""Combining marks, and the commands that put them on a letter."""


def _typeset(text: str) -> str:
    found = "".join(map(_glyph, unicodedata.normalize("NFC", _on_a_line(text))))
    return re.sub("([-',])(?=\\1)", r"\1{}", found)  # two of them would be another sign


def _glyph(character: str) -> str:
    """Return one character as LaTeX writes it; one that is unknown by its number."""
    if character in SIGNS:
        return SIGNS[character]
    if character.isascii():
        return character
    letter, *marks = list(unicodedata.normalize("NFD", character))
    if len(marks) == 1 and marks[0] in ACCENTS and letter.isascii() and letter.isalpha():
        return f"\\{ACCENTS[marks[0]]}{{{letter}}}"
    return f"\\character{{{ord(character):04X}}}"


def _latex_part(part: Part) -> str:
    if isinstance(part, Table):
        shares = _widths([part.columns, *part.rows]) if part.columns else [0.24, 0.7]
        rows = [list(map(_typeset, row)) for row in part.rows]
        head = [[f"\\textit{{{_typeset(name)}}}" for name in part.columns]] if part.columns else []
        if not part.columns:
            rows = [[f"\\textbf{{{first}}}", *others] for first, *others in rows]
        columns = "".join(f"L{{{share:.3f}\\linewidth}}" for share in shares)
        return _environment("longtable", [f"{{}}{' & '.join(row)} \\\\" for row in (*head, *rows)], f"{{{columns}}}")
    if isinstance(part, Drawing):
        return "\n\n".join(f"\\texttt{{{_typeset(line)}}}" for line in part.lines)
    if isinstance(part, Listing) and part.lines:
        return _environment("itemize", [f"\\item {{}}{_typeset(line)}" for line in part.lines])
    return "\n\n".join(map(_typeset, part.lines))


def _widths(rows: Sequence[Sequence[str]]) -> list[float]:
    """Return shares of the width of a line: more for columns with longer texts, which break."""
    weights = [math.sqrt(max(len(cell) for cell in column)) for column in zip(*rows, strict=True)]
    room = 0.98 - 0.03 * len(weights)
    return [room * weight / sum(weights) for weight in weights]


def _environment(name: str, lines: Sequence[str], options: str = "") -> str:
    return "\n".join([f"\\begin{{{name}}}{options}", *lines, f"\\end{{{name}}}"])


__all__ = ["FORMATS", "latex", "markdown", "web_page"]
