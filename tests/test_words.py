"""The package speaks standard English and the field's terms: words of a dialect of ours stand nowhere in it.

Looked at are code, comments and docstrings of the package, the pages, the README, and the texts of the notebooks.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORDS = {
    "hang on": (r"\b(?:hangs?|hung|hanging)[ _](?:up)?on\b", "depend on"),
    "hanging": (r"(?<![a-z])hanging(?! indent)", "dependent"),
    "husk": (r"husk", "prior model"),
    "movement": (r"movement", "sensitivity"),
    "heat": (r"(?<![a-z])heats?(?![a-z])|\bhow hot\b", "temperature"),
    "imagine": (r"imagin(?!ary)", "augment"),
    "plain number": (r"plain numbers?\b", "constant"),
    "told": (r"(?<![a-z])told(?![a-z])", "released, stated, distinguished"),
    "law": (r"(?<![a-z])laws?(?![a-z])(?! of (?:large numbers|total|the iterated))", "distribution"),
}
"""By its name: a pattern, whatever the case of its letters, and what to write instead."""
EXEMPT = {("pymc_dp/release/written.py", "movement")}
"""One line of this file reads the key that releases saved before have."""


def texts() -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the lines of everything that is looked at; a cell of a notebook is a place of its own."""
    for path in sorted((*ROOT.glob("pymc_dp/**/*.py*"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in {".py", ".pyi", ".md"} and not name.startswith(("docs/notebooks/", "docs/api/generated/")):
            yield name, path.read_text(encoding="utf-8").splitlines()
    for path in sorted(ROOT.glob("notebooks/**/*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            if cell["cell_type"] == "markdown":
                yield f"{path.relative_to(ROOT).as_posix()}, cell {number}", "".join(cell["source"]).splitlines()


def found(pattern: str, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of lines with a word in them, also where it goes on in the next line."""
    for number, line in enumerate(lines, start=1):
        if re.search(pattern, line, re.IGNORECASE):
            yield number, line.strip()
        elif number < len(lines):
            head, tail = line.rstrip('" '), re.sub(r'^[\s#>f"]*', "", lines[number])
            joined = re.search(pattern, f"{head} {tail}", re.IGNORECASE)
            if joined and joined.start() < len(head) < joined.end():
                yield number, f"{head} {tail}".strip()


TEXTS = list(texts())


@pytest.mark.parametrize("word", WORDS)
def test_words_of_the_field_stand_for_ours(word):
    pattern, instead = WORDS[word]
    places = [f"{name}:{number}: {line}" for name, lines in TEXTS for number, line in found(pattern, lines)]
    exempt = [place for place in places if any(place.startswith(f"{name}:") and word == it for name, it in EXEMPT)]
    assert len(exempt) == sum(it == word for _, it in EXEMPT)
    shown = [place for place in places if place not in exempt]
    assert not shown, "\n".join([f"{len(shown)} times {word!r}; write {instead!r}:", *shown])
