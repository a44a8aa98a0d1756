"""Write the page of the docs that shows the zoo: ``python -m tests.zoo.page [--table]``.

With ``--table`` every kind of model is explained anew first, which takes some minutes.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pymc_dp as dp
from tests.gallery.models import status_of
from tests.zoo.every import FILES, kinds
from tests.zoo.kind import BOUNDS, Kind
from tests.zoo.samplers import MODELS, SAMPLERS

TABLE = Path(__file__).parent / "table.json"
PAGE = TABLE.parents[2] / "docs" / "zoo.md"
MARK = "<!-- written by python -m tests.zoo.page -->\n\n"
DELTA = 1e-6
TITLES = {
    "outcomes": "Outcomes",
    "regressions": "Regressions",
    "curves": "Groups, curves, latent variables",
    "rows_elsewhere": "Rows in other places",
    "formulas": "bambi formulas",
}


def explained(kind: Kind) -> tuple[str, str]:
    """Return what ``dp.sample`` releases of a kind under replace at δ = 1e-6, and why it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = dp.explain(kind.build(kind.table()), kind.domain(kind.relations[0]), delta=DELTA)
        except (dp.errors.UnsupportedModelError, dp.errors.ArgumentError) as error:
            return "refused", reason(str(error).splitlines())
    status, lines = status_of(found)
    return status, reason(lines)


def reason(lines: list[str]) -> str:
    """Return the line that says why, or the first one."""
    found = [line.strip().removeprefix("Why: ") for line in lines if line.strip().startswith("Why: ")]
    return "".join(found[:1] or lines[:1])


def table() -> dict[str, dict[str, str]]:
    return json.loads(TABLE.read_text())


def page(known: dict[str, Any]) -> str:
    """Write the tables."""
    lines = []
    for module in FILES:
        file = module.__name__.rpartition(".")[2]
        lines += [f"## {TITLES[file]}", "", f"`tests/zoo/{file}.py`", ""]
        lines += ["| model | what it is | declared | released |", "|---|---|---|---|"]
        for kind in kinds():
            if kind.build.__module__ == module.__name__:
                lines.append(f"| {kind.name} | {kind.about} | {declared(kind)} | {known[kind.name]['released']} |")
        lines.append("")
    lines += ["## Samplers", "", "`tests/zoo/samplers.py`", "", "| sampler | what it is | model | budget | guarantee |"]
    lines += ["|---|---|---|---|---|"]
    for one in SAMPLERS.values():
        budget = f"ε = {one.epsilon:g}" + (f", δ = {one.delta:g}" if one.delta else "")
        guarantee = "refused" if one.refused else one.guarantee
        lines.append(f"| {one.name} | {one.about} | {one.kind.name} | {budget}, {one.relation} | {guarantee} |")
    lines += ["", "## Models of samplers", ""]
    lines += ["| model | what it is | declared | exact distribution |", "|---|---|---|---|"]
    for kind, law in MODELS.values():
        lines.append(f"| {kind.name} | {kind.about} | {declared(kind)} | {'' if law is None else 'known'} |")
    return "\n".join(lines) + "\n"


def declared(kind: Kind) -> str:
    """Return what a user declares of a kind, in short."""
    parts = [f"{name} in [{BOUNDS[name][0]}, {BOUNDS[name][1]}]" for name in kind.bounded]
    parts += [f"{name} public" for name in (*kind.public, *kind.arrays)]
    return "; ".join([*parts, *(f"{name}=" for name in kind.declared)])


def main(arguments: list[str]) -> None:
    if "--table" in arguments:
        found = {kind.name: dict(zip(("released", "says"), explained(kind), strict=True)) for kind in kinds()}
        TABLE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    above, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(above + MARK + page(table()))


if __name__ == "__main__":
    main(sys.argv[1:])
