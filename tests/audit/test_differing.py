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


def with_dataset(**change):
    def apply(result):
        result["/a"] = xr.DataTree(result["a"].to_dataset().assign(**change))
        return result

    return apply


def change_value(result):
    result["a/p"].values[0] = np.nextafter(0.1, 1)


def change_attribute(result):
    result["a"].attrs["list"][1]["x"][0] = 2


def change_variable_attribute(result):
    result["a/p"].attrs["unit"] = "km"


def change_encoding(result):
    result["a/p"].encoding["fill"] = 2.0


def add_group(result):
    result["/c"] = xr.DataTree()


def change_type(result):
    result["a"] = xr.DataTree(result["a"].to_dataset().assign(p=result["a/p"].astype("float32")))


def test_equal_trees_do_not_differ():
    assert differing(tree(), tree()) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (change_value, "/a/p"),
        (change_attribute, "/a@list"),
        (change_variable_attribute, "/a/p@unit"),
        (change_encoding, "/a/p#fill"),
        (add_group, "/c/"),
        (change_type, "/a/p"),
    ],
)
def test_every_change_is_named(change, path):
    other = tree()
    change(other)
    assert path in differing(tree(), other)
    assert path in differing(other, tree())
