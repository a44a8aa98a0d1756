import functools
import logging
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.audit import contains_canary, plant
from tests.audit import pipeline

FLOAT, INTEGER, LABEL = 0.418792434, 618033988, "canary-618033988"


class Holder:
    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value


class Unwilling(Holder):
    """An object that answers for attributes it does not have with another error, as Numba's IR does."""

    def __getattr__(self, name):
        raise KeyError(name)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def raised(text):
    try:
        raise ValueError("outer") from KeyError(text)
    except ValueError as error:
        return error


def warned(text):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(text, stacklevel=1)
    return caught


def tree(change=lambda dataset: dataset):
    dataset = xr.Dataset({"p": ("row", [0.1, 0.2])}, coords={"row": ["a", "b"]})
    return xr.DataTree.from_dict({"/a/b": change(dataset) or dataset})


HOLDING = [
    *(FLOAT, np.float32(FLOAT), np.array([[1.0, FLOAT]]), np.array([FLOAT], dtype=complex), float(INTEGER)),
    np.array([{"x": (FLOAT,)}], dtype=object),
    np.array([(1, FLOAT)], dtype=[("a", int), ("b", float)]),
    *(f"mean is {FLOAT:.5f}", f"mean is {FLOAT:.7e}, and more", "cut: 0.41879", f"row {INTEGER}"),
    *(np.array(FLOAT).tobytes(), np.array(FLOAT, dtype=">f4").tobytes(), pickle.dumps({"x": FLOAT})),
    *({"a": [{"b": FLOAT}]}, {FLOAT: 1}, {INTEGER}, {LABEL: 0}),
    *(np.array([INTEGER], dtype=np.int32), np.array(["a", LABEL])),
    tree(lambda one: one["p"].values.__setitem__(0, FLOAT)),
    tree(lambda one: one.assign_coords(row=["a", LABEL])),
    tree(lambda one: one["p"].attrs.update(note={"nested": [FLOAT]})),
    tree(lambda one: one["p"].encoding.update(fill=FLOAT)),
    tree(lambda one: one.rename(p=LABEL)),
    tree(lambda one: one.rename_dims(row=LABEL)),
    tree(lambda one: one["p"].values.__setitem__(0, FLOAT))["a/b/p"],
    *(pd.DataFrame({"x": [FLOAT]}), pd.Series([1], index=[LABEL])),
    logging.LogRecord("name", 10, "path", 1, "value %s", (FLOAT,), None),
    *(warned(f"row {LABEL}"), raised(LABEL), Holder(FLOAT), Slotted(LABEL), Holder(FLOAT).get, Unwilling(FLOAT)),
    (lambda held: lambda: held)(np.array([FLOAT])),
    functools.partial(print, sep=LABEL),
]
CLEAN = [None, True, 0, 1.0, "0.4188 and 12345", 0.41880, np.linspace(0, 1, 101), tree(), {"a": ["b"]}]
CLEAN += [Holder(0.5), b"\0" * 64]


@pytest.mark.parametrize("obj", HOLDING, ids=lambda obj: type(obj).__name__)
def test_canaries_are_found_wherever_they_sit(obj):
    found = contains_canary(obj, [FLOAT, INTEGER, LABEL])
    assert found
    assert not any(secret in path for path in found for secret in (str(FLOAT), str(INTEGER), LABEL))


@pytest.mark.parametrize("obj", CLEAN)
def test_nothing_is_found_where_nothing_is(obj):
    assert contains_canary(obj, [FLOAT, INTEGER, LABEL]) == []


def test_planted_canaries_fit_the_column():
    floats = plant(np.zeros(5, dtype=np.float32), rows=[1, 3], low=0, high=100)
    assert len(set(floats.canaries)) == 2 and all(0 < canary < 100 for canary in floats.canaries)
    assert floats.values[[0, 2, 4]].tolist() == [0, 0, 0]
    assert contains_canary(floats.values, floats.canaries)
    integers = plant(np.zeros(3, dtype=np.int64), rows=[2])
    assert integers.values[2] == integers.canaries[0] > 10**8
    labels = plant(["a", "b"], rows=[1])
    assert labels.values.tolist() == ["a", labels.canaries[0]]


@pytest.mark.parametrize("kind", [pipeline.poisson, pipeline.normal], ids=lambda kind: kind.__name__)
def test_private_models_hold_no_canary(kind, caplog, recwarn):
    line = kind("replace")
    column = plant(line.model["d"].get_value(), low=5, high=100)
    line.model["d"].set_value(column.values)
    assert contains_canary(line.model, column.canaries), "the search does not see the rows of the raw model"
    # Numba's own log of a compilation, some 100,000 records of bytecode, comes before any row is read.
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.WARNING, logger="numba"):
        private = dp.privatize(line.model, epsilon=1.0, domain=line.domain)
    assert contains_canary([private, caplog.records, list(recwarn)], column.canaries) == []


def test_refusals_name_no_canary():
    line = pipeline.normal("replace")
    column = plant(line.model["d"].get_value(), low=5, high=100)
    line.model["d"].set_value(column.values)
    with pytest.raises(Exception, match="bounds") as refused:
        dp.privatize(line.model, epsilon=1.0)
    assert contains_canary([str(refused.value), repr(refused.value), refused.value.args], column.canaries) == []
