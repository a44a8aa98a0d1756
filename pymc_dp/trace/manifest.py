"""What may leave: a list of every variable, coordinate and attribute of a trace, with a digest of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

PRIVACY = "privacy"
RELEASED = "released"
MANIFEST = "dp_manifest"
RECORD = "dp_record"


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


def unlisted(tree: xr.DataTree) -> list[str]:
    """Return what is in a tree and not on its manifest, or differs from it; one line each, naming no value."""
    listed: dict[str, str] = json.loads(tree[PRIVACY].attrs[MANIFEST])
    found: list[str] = []
    new_groups: list[str] = []
    for path, content in entries(tree):
        if any(path.startswith((group, f"{group[:-1]}@")) for group in new_groups):
            continue
        if path in listed:
            if listed[path] != content:
                found.append(f"{path} was changed")
        elif path.endswith("/"):
            new_groups.append(path)
            names = ", ".join(str(name) for name in tree[path].data_vars)
            found.append(f"group {path.rstrip('/')} was added" + (f" (variables {names})" if names else ""))
        else:
            kind, _, attribute = path.partition("@")
            found.append(
                f"attribute {attribute} of {kind or 'the tree'} was added"
                if attribute
                else f"variable {path} was added"
            )
    return found


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
