"""Write the table anew: ``python -m tests.gallery.measure [--fit [--rest]] [names]``, all by default.

Explains every model as it stands, takes the CPU time of ``dp.explain``, and looks at what ``dp.sample`` would release
of it and with what the texts say applied; with ``--fit`` releases and samples those that can be, beside the posterior
that is not private, each in a process that is ended after `LIMIT` seconds; with ``--rest`` only those that were not
compared yet. The page in docs is written anew; with ``--page`` only that is done.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
import traceback
import warnings
from typing import Any

from tests.gallery.compare import compared
from tests.gallery.entry import GALLERY, Entry
from tests.gallery.models import TABLE, explained, page, released, table, usable

PAGE = TABLE.parents[2] / "docs" / "models.md"
MARK = "<!-- written by python -m tests.gallery.measure -->\n\n"
LIMIT = 300
"""Seconds that a model may take to be released and sampled, and without privacy, all that is compiled included."""
OVER = f"over {LIMIT} s"
COMPARED = ("apart", "by", "wider", "error", "seconds")


def main(arguments: list[str]) -> None:
    if "--help" in arguments:
        print(__doc__)
        return
    fit = "--fit" in arguments
    names = [name for name in arguments if not name.startswith("--")]
    warnings.simplefilter("ignore")
    for name in () if "--page" in arguments else names or GALLERY:
        known = (table() if TABLE.exists() else {}).get(name, {})
        if fit and "--rest" in arguments and "apart" in known:
            continue
        found_now = _fitted(name, known) if fit else _explained(GALLERY[name])
        found = table() if TABLE.exists() else {}
        kept = {key: value for key, value in found.get(name, {}).items() if (key in COMPARED) != fit}
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


def _fitted(name: str, known: dict[str, Any]) -> dict[str, Any]:
    """Compare a model with the posterior that is not private."""
    begun = time.monotonic()
    found = _apart(usable(name, known))
    return found if not found or found["apart"] == OVER else {**found, "seconds": round(time.monotonic() - begun)}


def _apart(released: Entry | None) -> dict[str, Any]:
    """Compare in a process of its own, which has all that is imported, and which can be ended."""
    if released is None:
        return {}
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_compare, args=(released, there))
    process.start()
    there.close()
    found: dict[str, Any] = {"apart": OVER}
    if here.poll(LIMIT):
        try:
            found = here.recv()
        except EOFError:
            found = {"apart": "ended"}
    process.kill()
    process.join()
    return found


def _compare(released: Entry, there: Any) -> None:
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", UserWarning)
            result = compared(released, seed=1)
        print(*dict.fromkeys(str(one.message)[:200] for one in warned), sep="\n", flush=True)
    except Exception as error:
        traceback.print_exc()
        there.send({"apart": " ".join(f"{type(error).__name__}: {error}".split())[:400]})
        return
    apart, wider = ({name: round(value, 2) for name, value in one.items()} for one in (result.apart, result.wider))
    there.send({"apart": apart, "by": result.by, "wider": wider, "error": round(result.error, 2)})


if __name__ == "__main__":
    main(sys.argv[1:])
