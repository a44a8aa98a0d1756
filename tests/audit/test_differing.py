import numpy as np
import pytest
import xarray as xr

from pymc_dp.audit import differing


def tree():
    dataset = xr.Dataset(
        {"p": ("row", [0.1, np.nan])}, coords={"row": ["a", "b"]}, attrs={"list": [1, {"x": np.ones(2)}]}
    )
    dataset["p"].encoding["fill"] = 1.0
    dataset["p"].attrs["unit"] = "m"
    return xr.DataTree.from_dict({"/a": dataset, "/a/b": xr.Dataset()})


CHANGES = {
    "/a/p": lambda held: held["a/p"].values.__setitem__(0, np.nextafter(0.1, 1)),
    "/a@list": lambda held: held["a"].attrs["list"][1]["x"].__setitem__(0, 2),
    "/a/p@unit": lambda held: held["a/p"].attrs.update(unit="km"),
    "/a/p#fill": lambda held: held["a/p"].encoding.update(fill=2.0),
    "/c/": lambda held: held.update({"c": xr.DataTree()}),
}


@pytest.mark.parametrize("path", CHANGES)
def test_every_change_is_named_and_nothing_else(path):
    other = tree()
    assert differing(tree(), other) == []
    CHANGES[path](other)
    assert path in differing(tree(), other) and path in differing(other, tree())


def test_another_dtype_is_a_change():
    other = tree()
    other["a"] = xr.DataTree(other["a"].to_dataset().assign(p=other["a/p"].astype("float32")))
    assert "/a/p" in differing(tree(), other)
