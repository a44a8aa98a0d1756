"""All models of the gallery, what the package makes of one, and how far its private posterior is from the other."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import pymc_dp as dp
from pymc_dp.inspection.given import given_model
from tests.gallery.compare import CLOSE, release_of
from tests.gallery.entry import DELTA, GALLERY, Entry
from tests.gallery.reasons import REASONS

KINDS = {
    "linear": "Lines",
    "nonlinear": "Curves, spreads, positive values",
    "binary": "Yes or no",
    "counts": "Counts",
    "choices": "Choices",
    "multilevel": "Groups",
    "ordinal_survival": "Ordered answers, durations",
    "curves": "Splines, processes, time",
    "latent": "Items, mixtures, measurement",
    "formulas": "bambi",
}
"""Files of models, and what the page calls them."""
MODULES = {name: import_module(f"tests.gallery.{name}") for name in (*KINDS, "remedies")}
TABLE = Path(__file__).parent / "table.json"
USABLE = ("statistics", "gradients")
UNKNOWN = "why is not known"


def table() -> dict[str, Any]:
    """What was found of every model when the table was written."""
    return json.loads(TABLE.read_text())


def explained(entry: Entry) -> tuple[str, list[str]]:
    """Return what ``dp.sample`` would release of a model at a budget with a δ, and the lines of a refusal."""
    model = entry.model()
    try:
        found = dp.explain(model, entry.domain(model), delta=DELTA)
    except dp.errors.UnsupportedModelError as error:  # of formulas, which cannot be written for PyMC
        return "refused", str(error).splitlines()
    return status_of(found)


def released(entry: Entry) -> tuple[str, list[str]]:
    """Return what ``dp.sample`` releases of a model at ε = 1 and a δ, or the lines of the error that it raises."""
    model = entry.model()
    try:
        source, domain = given_model(model, entry.domain(model))
        return release_of(source, domain, dp.Budget(1.0, DELTA)), []
    except dp.errors.UnsupportedModelError as error:
        return "refused", str(error).splitlines()


def status_of(found: dp.Explanation) -> tuple[str, list[str]]:
    """Return the kind of release, or a refusal and its lines."""
    by_gradients = found.gradients is not None and found.gradients.fits
    if by_gradients and (found.default.by_gradients or not found.ok):
        return "gradients", []
    if found.ok:
        return "statistics", []
    ways = [found.problems, *([] if found.gradients is None else [found.gradients.problems])]
    return "refused", str(dp.errors.UnsupportedModelError(dp.errors.first_of(*ways))).splitlines()


def usable(name: str, found: dict[str, Any]) -> Entry | None:
    """Return a model as it can be released: as it stands, or as a text tells to write it; None where it is refused."""
    entry = GALLERY[name]
    if found["status"] in USABLE:
        return entry
    return entry.remedied if found.get("remedied") in USABLE else None


def off(found: dict[str, Any]) -> float | None:
    """Return how far the furthest median of a model was off; None where it was not compared."""
    return max(found["apart"].values(), default=None) if isinstance(found.get("apart"), dict) else None


def page(known: dict[str, Any]) -> str:
    """Write the tables of the page in docs."""
    released = {name: usable(name, found) for name, found in known.items()}
    kinds = Counter(found["status"] for found in known.values())
    usable_ones = sum(entry is not None for entry in released.values())
    mended = usable_ones - kinds["statistics"] - kinds["gradients"]
    distances = [distance for found in known.values() if (distance := off(found)) is not None]
    failed = sum(isinstance(found.get("apart"), str) for found in known.values())
    near = sum(distance <= CLOSE for distance in distances)
    error = max(found.get("error", 0.0) for found in known.values())
    lines = [
        f"Of {len(known)} models, {kinds['statistics']} are released as exact sums and {kinds['gradients']} as noised "
        f"gradients as they stand, {mended} once what the refusal tells to write is written, and "
        f"{kinds['refused'] - mended} are refused.",
        "",
        f"Of the {usable_ones} that are released, {len(distances)} were compared with the posterior that is not "
        f"private; {failed} more took over five minutes, failed, or have no medians to compare. All medians of "
        f"{near} of them ({near / max(len(distances), 1):.0%}) are within {CLOSE:g} standard deviations. The Monte "
        f"Carlo error of a distance is {error:g} at most. The others:",
    ]
    lines += [*_reasons(known), *_seconds(known)]
    for kind, title in KINDS.items():
        lines += ["", f"## {title}", "", "| model | from | released | furthest median, in sds | widths |"]
        lines += ["|---|---|---|---|---|"]
        for name, found in known.items():
            entry = GALLERY[name]
            if entry.build.__module__ == f"tests.gallery.{kind}":
                after = f", then {found['remedied']}" if "remedied" in found else ""
                shown = " | ".join(_compared(found))
                lines.append(f"| {name} | {entry.source} | {found['status']}{after} | {shown} |")
    return "\n".join(lines) + "\n"


def _reasons(known: dict[str, Any]) -> list[str]:
    """Say of models with a median that is not near why that is so."""
    far = {name: distance for name, found in known.items() if (distance := off(found) or 0.0) > CLOSE}
    return ["", *(f"- {name}, {distance:.2f}: {REASONS.get(name, UNKNOWN)}." for name, distance in far.items())]


def _seconds(known: dict[str, Any]) -> list[str]:
    """Say how long models take to be explained."""
    taken = [found["explain"] for found in known.values() if isinstance(found.get("explain"), float)]
    middle, most = median(taken), max(taken)
    return [
        "",
        f"`dp.explain` takes {middle:.1f} s of CPU in the median of {len(taken)} models, and {most:.1f} s at most.",
    ]


def _compared(found: dict[str, Any]) -> tuple[str, str]:
    """Return what the page shows of a comparison: the furthest median, and the range of widths."""
    distance = off(found)
    if distance is None:
        said, _, why = found.get("apart", "").partition(" Why: ")
        return f"failed: {why}" if why else said, ""
    widths = found["wider"].values()
    kind = "" if found["by"] == found.get("remedied", found["status"]) else f" ({found['by']})"
    return f"{distance:.2f}{kind}", f"{min(widths):.2f}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{max(widths):.2f}"
