"""What may leave: a list of every variable, coordinate and attribute of a trace, with a digest of its content.

What a trace says that it cost, held against its own manifest and against the events that it records.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pymc_dp.accounting import event_from_dict, loss_at, proved_within
from pymc_dp.errors import ArgumentError, TraceError
from pymc_dp.release.several import data_sets

PRIVACY = "privacy"
RELEASED = "released"
MANIFEST = "dp_manifest"
RECORD = "dp_record"
MADE_WITH = "made_with"
"""Attribute with the versions of the packages that made a trace."""
ROWS = {
    "observed_data": "these are the private rows themselves",
    "constant_data": "these are columns of the private rows, which the model holds as pm.Data",
    "log_likelihood": "these are numbers computed from each private row",
}
"""Groups that PyMC fills with rows, and what they hold."""
PREDICTIVE = ("posterior_predictive", "prior_predictive", "predictions")
BY_ROW = "these are draws made row by row, from a model with rows and not from the release"
OF_CHAINS = ("chain", "draw", "sample")


def entries(tree: xr.DataTree) -> Iterator[tuple[str, str]]:
    """Yield (path, digest) for every variable, coordinate, attribute and group of a tree, but the manifest itself."""
    for node in tree.subtree:
        path = node.path.rstrip("/")
        if path:
            yield f"{path}/", ""
        dataset = node.to_dataset(inherit=False)
        for name, variable in dataset.variables.items():
            yield f"{path}/{name}", digest(variable)
            for key, value in variable.attrs.items():
                yield f"{path}/{name}@{key}", text_digest(value)
        for key, value in dataset.attrs.items():
            if not (path == f"/{PRIVACY}" and key == MANIFEST):
                yield f"{path}@{key}", text_digest(value)


def make_manifest(tree: xr.DataTree) -> str:
    """Return the manifest of a tree as JSON text."""
    return json.dumps(dict(entries(tree)))


class Unlisted(NamedTuple):
    """What is in a tree and not on its manifest, and what differs from it, in lines that name no value.

    Attributes
    ----------
    added : tuple of str
        One line each.
    changed : tuple of str
        One line for all: a selection changes every variable.
    rows : tuple of str
        Names of groups that were added and hold private rows, or numbers computed from each.
    by_row : tuple of str
        Names of groups that were added and hold predictive draws for rows.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    rows: tuple[str, ...] = ()
    by_row: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it."""
        return (*self.added, *self.changed)


def unlisted(tree: xr.DataTree) -> Unlisted:
    """Hold a tree against its manifest."""
    listed: dict[str, str] = json.loads(tree[PRIVACY].attrs[MANIFEST])
    found: list[str] = []
    changed: list[str] = []
    new_groups: list[str] = []
    rows: list[str] = []
    by_row: list[str] = []
    for path, content in entries(tree):
        if any(path.startswith((group, f"{group[:-1]}@")) for group in new_groups):
            continue
        if path in listed:
            if listed[path] != content:
                changed.append(path)
        elif path.endswith("/"):
            new_groups.append(path)
            names = ", ".join(str(name) for name in tree[path].data_vars)
            what = _holds(tree, path, listed)
            if what:
                (by_row if what == BY_ROW else rows).append(path.strip("/"))
            said = (f" (variables {names})" if names else "") + (f": {what}" if what else "")
            first = len(rows) - 1 if what and what != BY_ROW else len(found)  # those with rows before all others
            found.insert(first, f"group {path.rstrip('/')} was added{said}")
        else:
            kind, _, attribute = path.partition("@")
            found.append(
                f"attribute {attribute} of {kind or 'the tree'} was added"
                if attribute
                else f"variable {path} was added"
            )
    return Unlisted(added=tuple(found), changed=_changed(changed), rows=tuple(rows), by_row=tuple(by_row))


def _holds(tree: xr.DataTree, path: str, listed: Mapping[str, str]) -> str:
    """Say what of the rows a new group holds, by its name and by names and dims of variables, never by values.

    A model of a release has groups of the same names, which are about released tables and have dims of these.
    """
    record = json.loads(tree[PRIVACY].attrs[RECORD])
    group = path.rstrip("/").rpartition("/")[2]
    what = BY_ROW if group in PREDICTIVE else ROWS.get(group, "")
    held = dict(tree[path].data_vars)
    if not what or not held or record.get("maker"):
        return ""
    if group == "constant_data":
        public = set((record.get("domain") or {}).get("public", ()))
        return "" if set(map(str, held)) <= public else what
    released = tree.children[RELEASED].variables if RELEASED in tree.children else {}
    known = {dim for name, var in released.items() if f"/{RELEASED}/{name}" in listed for dim in var.dims}
    dims = [set(var.dims) - set(OF_CHAINS) for var in held.values()]
    of_release = bool(known) and all(one <= known for one in dims)
    return "" if of_release and (group != "observed_data" or all(dims)) else what


def _changed(paths: Sequence[str]) -> tuple[str, ...]:
    if not paths:
        return ()
    named = paths if len(paths) <= 3 else [*paths[:2], f"{len(paths) - 2} more"]
    both = " and ".join([", ".join(named[:-1]), named[-1]]) if len(named) > 1 else named[0]
    return (f"{both} {'was' if len(paths) == 1 else 'were'} changed",)


def digest(variable: xr.Variable) -> str:
    """Return a digest of dims, shape and values that survives netCDF and zarr."""
    values = np.asarray(variable.values)
    if values.dtype.kind == "f":
        content = np.ascontiguousarray(values, dtype="<f8").tobytes()
    elif values.dtype.kind in "iub":
        content = np.ascontiguousarray(values, dtype="<i8").tobytes()
    else:
        content = json.dumps([str(item) for item in values.ravel()]).encode()
    head = json.dumps([list(map(str, variable.dims)), list(values.shape)]).encode()
    return hashlib.sha256(head + content).hexdigest()


def text_digest(value: Any) -> str:
    """Return a digest of an attribute that survives netCDF and zarr."""
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(plain, list | tuple):
        plain = plain[0] if len(plain) == 1 else list(plain)
    return hashlib.sha256(json.dumps(plain, default=str, sort_keys=True).encode()).hexdigest()


ROOM = 1e-6
"""Of ε: accountants of another version may round otherwise; no edit worth noticing is smaller."""


def read_claim(tree: xr.DataTree, name: str = "This DataTree") -> dict[str, Any]:
    """Return the record of an annotated trace, if nothing contradicts it.

    Parameters
    ----------
    tree : xarray.DataTree
    name : str
        What the tree is called, for texts.

    Returns
    -------
    dict
        The record of the release, in JSON types.

    Raises
    ------
    TraceError
        If the tree has no ``/privacy`` group, if what is in it differs from what the manifest says about it, or if the
        events recorded cost more than the ε and δ beside them.

    Notes
    -----
    This finds records that were changed by hand or by mistake. It is no signature: whoever can write the file can write
    a record, events and a manifest that agree. Take a trace from somebody you trust, over a channel that you trust.
    """
    record = read_record(tree, name)
    check_cost(record, name)
    return record


def read_record(tree: xr.DataTree, name: str = "This DataTree") -> dict[str, Any]:
    """Return the record of a trace, if it is the one that its manifest lists; what it costs is not looked at."""
    group = tree.children.get(PRIVACY)
    if group is None or not {RECORD, MANIFEST} <= set(group.attrs):
        raise TraceError(
            f"{name} has no /privacy group: it was not made by dp.sample or dp.scrub, or the group was dropped. "
            "Nothing is known about its privacy."
        )
    try:
        record, listed = json.loads(group.attrs[RECORD]), json.loads(group.attrs[MANIFEST])
        found = dict(entries(group))
        changed = sorted(path for path, content in found.items() if path in listed and listed[path] != content)
        if f"/{PRIVACY}@{RECORD}" not in listed:
            changed.insert(0, f"/{PRIVACY}@{RECORD}")
    except (TypeError, ValueError):
        raise TraceError(f"{name} has a /privacy group that cannot be read: it was changed. {_WAY_OUT}") from None
    if changed:
        raise TraceError(
            f"{name} no longer states what it was paid for as it did when it was made: {', '.join(changed)} was "
            f"changed. {_WAY_OUT}"
        )
    return dict(record)


def check_cost(record: Mapping[str, Any], name: str) -> None:
    """Raise where the events of a record cost more than it says, or where it cannot be read."""
    try:
        problem = _contradiction(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TraceError(
            f"{name} has a record that this version of pymc_dp cannot read ({type(error).__name__}). Read it with the "
            "version that wrote it, or a later one."
        ) from error
    if problem:
        raise TraceError(f"{name} contradicts itself: {problem}. {_WAY_OUT}")


def _contradiction(record: Mapping[str, Any]) -> str:
    epsilon, delta = float(record["epsilon"]), float(record["delta"])
    if not (epsilon >= 0 and 0 <= delta < 1):
        return f"ε = {epsilon:g} and δ = {delta:g} are no privacy loss"
    limit, unit = epsilon, ""
    if metric := record.get("metric"):
        limit, unit = float(metric["epsilon_per_unit"]), " per unit of ρ"
        diameter = math.inf if metric["diameter"] is None else float(metric["diameter"])
        if epsilon < loss_at(limit, diameter) * (1 - ROOM):
            return f"ε = {limit:g} per unit of ρ is more than ε = {epsilon:g} for rows up to {diameter:g} apart"
    for source in record.get("sources", ()):
        if problem := _contradiction(source["record"]):
            return f"of release {source['label']}, {problem}"
    if sources := record.get("sources"):
        losses = [(loss, chance) for _, _, loss, chance in data_sets(sources)]
        if any(epsilon < loss * (1 - ROOM) or delta < chance * (1 - ROOM) for loss, chance in losses):
            return f"the releases of a data set cost more than the ε = {epsilon:g}, δ = {delta:g} that it says"
    event = record.get("event")
    if event and not _proved(json.dumps(event), limit * (1 + ROOM), delta):
        return f"its events cost more than the ε = {limit:g}{unit}, δ = {delta:g} that it says"
    return ""


@lru_cache(maxsize=256)
def _proved(event: str, epsilon: float, delta: float) -> bool:
    try:
        return proved_within(event_from_dict(json.loads(event)), epsilon, delta)
    except ArgumentError as error:
        raise ValueError(str(error)) from error


_WAY_OUT = (
    "Nothing that it says about its privacy can be relied on: use the trace as dp.sample returned or published it."
)


__all__ = ["check_cost", "read_claim", "read_record"]
