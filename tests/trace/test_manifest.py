from __future__ import annotations

import arviz as az
import numpy as np
import pytest
import xarray as xr

from pymc_dp.trace.manifest import BY_ROW, unlisted


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_manifest_survives_files(trace: xr.DataTree, tmp_path, suffix: str) -> None:
    path = tmp_path / f"trace.{suffix}"
    if suffix == "nc":
        trace.to_netcdf(path)
        back = az.from_netcdf(path)
    else:
        trace.to_zarr(path)
        back = az.from_zarr(path)
    back.load()
    assert unlisted(back).lines == ()
    back["posterior"]["p"].values[0, 0, 0] += 1e-9
    assert unlisted(back).changed == ("/posterior/p was changed",)


def _group(tree: xr.DataTree) -> str:
    tree["posterior_predictive"] = xr.DataTree(xr.Dataset({"answer": ("row", np.zeros(3))}))
    return f"group /posterior_predictive was added (variables answer): {BY_ROW}"


def _variable(tree: xr.DataTree) -> str:
    tree["posterior"].dataset = tree["posterior"].to_dataset().assign(extra=("row", np.zeros(3)))
    return "variable /posterior/extra was added"


def _coordinate(tree: xr.DataTree) -> str:
    tree["posterior"].dataset = tree["posterior"].to_dataset().assign_coords(group=["x", "y", "z"])
    return "/posterior/group was changed"


def _attribute(tree: xr.DataTree) -> str:
    tree["posterior"].attrs["note"] = "patient 7"
    return "attribute note of /posterior was added"


def _root_attribute(tree: xr.DataTree) -> str:
    tree.attrs["note"] = "patient 7"
    return "attribute note of the tree was added"


def _root_variable(tree: xr.DataTree) -> str:
    tree.dataset = xr.Dataset({"rows": ("row", np.zeros(3))})
    return "variable /rows was added"


def _variable_attribute(tree: xr.DataTree) -> str:
    tree["released"]["answer"].attrs["exact"] = "12"
    return "attribute exact of /released/answer was added"


def _release(tree: xr.DataTree) -> str:
    tree["released"]["answer"].values[0, 0] += 1
    return "/released/answer was changed"


def _cost(tree: xr.DataTree) -> str:
    tree["privacy"]["epsilon"].values[0] = 0.01
    return "/privacy/epsilon was changed"


def _record(tree: xr.DataTree) -> str:
    tree["privacy"].attrs["dp_record"] = tree["privacy"].attrs["dp_record"].replace("1.0", "0.1")
    return "/privacy@dp_record was changed"


CHANGES = [
    _group,
    _variable,
    _coordinate,
    _attribute,
    _root_attribute,
    _root_variable,
    _variable_attribute,
    _release,
    _cost,
    _record,
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_addition_and_change_is_named(trace: xr.DataTree, change) -> None:
    assert change(trace) in unlisted(trace).lines
