"""Draws that were paid for: the posterior of a trace, where every number of it is on its manifest."""

from __future__ import annotations

import json
from typing import Any

import xarray as xr

from pymc_dp import _validate
from pymc_dp._random import insecure
from pymc_dp.errors import ArgumentError, TraceError
from pymc_dp.trace.claim import read_claim
from pymc_dp.trace.manifest import MANIFEST, PRIVACY, RECORD, digest

SAMPLE = ("chain", "draw")


def released_draws(tree: object, name: str = "idata") -> tuple[xr.Dataset, dict[str, Any]]:
    """Return the posterior of a trace that this package annotated, and its record.

    Parameters
    ----------
    tree : xarray.DataTree
        Of ``dp.sample``, ``dp.scrub``, ``dp.sample_ais`` or ``dp.find_map``.
    name : str
        What the argument is called, for texts.

    Returns
    -------
    (xarray.Dataset, dict)
        Variables with the dims ``chain`` and ``draw`` first.

    Raises
    ------
    ArgumentError
        If it is no tree.
    TraceError
        If it has no ``/privacy`` or no ``posterior`` group, if a variable of the posterior is not on the manifest or
        was changed, if what it says about its price was, or if its noise was seeded or left out.
    """
    if not isinstance(tree, xr.DataTree):
        raise ArgumentError(f"{name} must be a trace of dp.sample or dp.scrub, got {_validate.shown(tree)}.")
    privacy = tree.children.get(PRIVACY)
    if privacy is None or not {RECORD, MANIFEST} <= set(privacy.attrs) or "posterior" not in tree.children:
        raise TraceError(
            f"{name} has no /privacy or no /posterior group: nothing says that its draws were paid for. Give a trace "
            "of dp.sample or dp.scrub."
        )
    record = read_claim(tree, name)
    if record["guarantee"] == "none" and insecure() is None:
        raise TraceError(
            f"{name} is a trace whose noise was seeded or left out by pymc_dp.testing, so that it is not private. "
            "Sample it again without."
        )
    listed: dict[str, str] = json.loads(privacy.attrs[MANIFEST])
    posterior = tree["posterior"].to_dataset()
    found = {path: digest(held) for path, held in _paths(posterior).items()}
    if strange := sorted(path for path in found if listed.get(path) != found[path]):
        raise TraceError(
            f"{name} holds draws that are not those that were paid for: {', '.join(strange)} was added or changed. "
            "Drop it; what is computed from the draws can be computed in a function."
        )
    variables = [str(key) for key, held in posterior.data_vars.items() if set(SAMPLE) <= set(held.dims)]
    return posterior[variables].transpose(*SAMPLE, ...), record


def _paths(dataset: xr.Dataset) -> dict[str, xr.Variable]:
    return {f"/posterior/{key}": held for key, held in dataset.variables.items()}


__all__ = ["SAMPLE", "released_draws"]
