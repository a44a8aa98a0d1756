"""Write the table anew: ``python -m tests.gallery.measure [--fit] [names]``, all by default.

Explains every model as it stands, takes the CPU time of ``dp.explain``, and looks at what ``dp.sample`` would release
of it and with what the texts say applied; with
``--fit`` releases and samples those that can be, beside the posterior that is not private. The page in docs is written
anew; with ``--page`` only that is done.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from typing import Any

from tests.gallery.entry import GALLERY, Entry
from tests.gallery.models import TABLE, distances, explained, page, released, table, usable

PAGE = TABLE.parents[2] / "docs" / "models.md"
MARK = "<!-- written by python -m tests.gallery.measure -->\n\n"


def main(arguments: list[str]) -> None:
    fit, names = "--fit" in arguments, [name for name in arguments if not name.startswith("--")]
    warnings.simplefilter("ignore")
    for name in () if "--page" in arguments else names or GALLERY:
        found = table() if TABLE.exists() else {}
        known = found.get(name, {})
        entry = GALLERY[name]
        found_now = _fitted(entry, known) if fit else _explained(entry)
        found = table() if TABLE.exists() else {}
        kept = {key: value for key, value in found.get(name, {}).items() if fit or key == "apart"}
        found[name] = {**kept, **found_now}
        ordered = {name: found[name] for name in GALLERY if name in found}
        TABLE.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
        print(name, {key: value for key, value in found[name].items() if key != "problems"}, flush=True)
    above, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(above + MARK + page(table()))


def _explained(entry: Entry) -> dict[str, Any]:
    begun = time.process_time()
    status, problems = explained(entry)
    spent = round(time.process_time() - begun, 1)
    found: dict[str, Any] = {"status": status, "explain": spent, "problems": problems}
    if entry.remedied is not None:
        found["remedied"], problems = released(entry.remedied)
        if problems:
            print(entry.name, "REMEDY REFUSED", problems, flush=True)
    return found


def _fitted(entry: Entry, known: dict[str, Any]) -> dict[str, Any]:
    released = usable(entry.name, known)
    if released is None:
        return {}
    try:
        apart = distances(released, seed=1)
    except Exception as error:
        traceback.print_exc()
        return {"apart": f"{type(error).__name__}: {error}"[:400]}
    return {"apart": {name: round(value, 2) for name, value in apart.items()}}


if __name__ == "__main__":
    main(sys.argv[1:])
