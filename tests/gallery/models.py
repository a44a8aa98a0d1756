"""All models of the gallery, what the package makes of one, and how far its private posterior is from the other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.advice.gradients import default_release
from pymc_dp.errors import first_of
from pymc_dp.inspection.given import given_model
from tests.gallery.entry import DELTA, EPSILON, GALLERY, Entry

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
CLOSE = 0.5
"""Posterior standard deviations that a median may be off."""


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
    """Return what ``dp.sample`` releases of a model at a budget with a δ, or the lines of the error that it raises.

    Unlike `explained` it looks at no sampler: to prove what one row can move takes minutes for some models.
    """
    model = entry.model()
    try:
        source, domain = given_model(model, entry.domain(model))
        default = default_release(source, domain, Budget(1.0, DELTA))
    except dp.errors.UnsupportedModelError as error:
        return "refused", str(error).splitlines()
    return "gradients" if default.by_gradients else "statistics", []


def status_of(found: dp.Explanation) -> tuple[str, list[str]]:
    """Return the kind of release, or a refusal and its lines."""
    by_gradients = found.gradients is not None and found.gradients.fits
    if by_gradients and (found.default.by_gradients or not found.ok):
        return "gradients", []
    if found.ok:
        return "statistics", []
    ways = [found.problems, *([] if found.gradients is None else [found.gradients.problems])]
    return "refused", str(dp.errors.UnsupportedModelError(first_of(*ways))).splitlines()


def distances(entry: Entry, seed: int) -> dict[str, float]:
    """Distances of medians of the private posterior from those of the one that is not, in sds of the latter.

    Medians are those of locations, and of logarithms of scales; of several elements the furthest counts.
    """
    source = entry.model()
    model, domain = (source, entry.domain(source))
    if not isinstance(source, pm.Model):
        model, domain = dp.models.from_bambi(source, domain)
    options = {"chains": 2, "cores": 1, "random_seed": seed, "progressbar": False}
    private = dp.sample(model=model, domain=domain, epsilon=EPSILON, delta=DELTA, **options)
    with model:
        plain = pm.sample(compute_convergence_checks=False, **options)
    return dict(_apart(entry, plain["posterior"], private["posterior"]))


def _apart(entry: Entry, plain: Any, private: Any) -> Iterator[tuple[str, float]]:
    for names, scale in ((entry.locations, np.asarray), (entry.scales, np.log)):
        for name in names:
            ours, theirs = (scale(one[name].to_numpy().reshape(-1, one[name][0, 0].size)) for one in (private, plain))
            off = np.abs(np.median(ours, axis=0) - np.median(theirs, axis=0)) / theirs.std(axis=0)
            yield name, float(off.max())


def usable(name: str, found: dict[str, Any]) -> Entry | None:
    """Return a model as it can be released: as it stands, or as a text tells to write it; None where it is refused."""
    entry = GALLERY[name]
    if found["status"] in USABLE:
        return entry
    return entry.remedied if found.get("remedied") in USABLE else None


def page(known: dict[str, Any]) -> str:
    """Write the tables of the page in docs."""
    released = {name: usable(name, found) for name, found in known.items()}
    kinds = Counter(found["status"] for found in known.values())
    mended = sum(entry is not None for entry in released.values()) - kinds["statistics"] - kinds["gradients"]
    lines = [
        f"Of {len(known)} models, {kinds['statistics']} are released as exact sums and {kinds['gradients']} as noised "
        f"gradients as they stand, {mended} once what the refusal tells to write is written, and "
        f"{kinds['refused'] - mended} are refused."
    ]
    for kind, title in KINDS.items():
        lines += ["", f"## {title}", "", "| model | from | released | furthest median, in sds |", "|---|---|---|---|"]
        for name, found in known.items():
            entry = GALLERY[name]
            if entry.build.__module__ == f"tests.gallery.{kind}":
                after = f", then {found['remedied']}" if "remedied" in found else ""
                apart = max(found["apart"].values(), default=None) if isinstance(found.get("apart"), dict) else None
                shown = "" if apart is None else f"{apart:.2f}"
                lines.append(f"| {name} | {entry.source} | {found['status']}{after} | {shown} |")
    return "\n".join(lines) + "\n"
