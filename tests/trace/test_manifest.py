from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from pymc_dp.trace.manifest import BY_ROW, unlisted


def add(tree: xr.DataTree, where: str, /, **variables: object) -> None:
    tree[where].dataset = tree[where].to_dataset().assign(**variables)


def set_value(tree: xr.DataTree, name: str, value: float) -> None:
    tree[name].values.flat[0] = value


ROWS = xr.Dataset({"answer": ("row", np.zeros(3))})
CHANGES = {
    f"group /posterior_predictive was added (variables answer): {BY_ROW}": lambda tree: tree.update(
        {"posterior_predictive": xr.DataTree(ROWS)}
    ),
    "variable /posterior/extra was added": lambda tree: add(tree, "posterior", extra=("row", np.zeros(3))),
    "/posterior/group was changed": lambda tree: add(tree, "posterior", group=("group", ["x", "y", "z"])),
    "attribute note of /posterior was added": lambda tree: tree["posterior"].attrs.update(note="patient 7"),
    "attribute note of the tree was added": lambda tree: tree.attrs.update(note="patient 7"),
    "variable /answer was added": lambda tree: setattr(tree, "dataset", ROWS),
    "attribute exact of /released/answer was added": lambda tree: tree["released"]["answer"].attrs.update(exact="12"),
    "/released/answer was changed": lambda tree: set_value(tree, "released/answer", 1e6),
    "/privacy/epsilon was changed": lambda tree: set_value(tree, "privacy/epsilon", 0.01),
    "/privacy@dp_record was changed": lambda tree: tree["privacy"].attrs.update(dp_record="{}"),
}


@pytest.mark.parametrize("line", CHANGES)
def test_every_addition_and_change_is_named(trace: xr.DataTree, line: str) -> None:
    CHANGES[line](trace)
    assert line in unlisted(trace).lines
