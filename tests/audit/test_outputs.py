from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr

from pymc_dp.audit.outputs import ABSENT, NUMBER, Raised, tabulate
from pymc_dp.errors import ArgumentError


@dataclass
class Answer:
    count: int
    name: str


def test_numbers_and_arrays_become_columns():
    assert tabulate([1, 2.5, np.float32(3)]).numbers["output"].tolist() == [1, 2.5, 3]
    columns = tabulate(np.arange(12).reshape(3, 2, 2))
    assert columns.runs == 3
    assert columns.numbers["output[1, 0]"].tolist() == [2, 6, 10]


def test_arrays_of_changing_shape_are_told_apart():
    columns = tabulate([np.zeros(1), np.zeros(2)])
    assert columns.label("shape of output").tolist() == ["(1,)", "(2,)"]
    assert np.isnan(columns.number("output[1]")[0])


def test_nested_outputs_are_flattened():
    columns = tabulate([{"a": [1, "x"], "b": Answer(3, "y")}, {"a": [None, 2j]}])
    assert columns.number("output['a'][0]")[0] == 1
    assert columns.label("output['a'][0]").tolist() == [NUMBER, "None"]
    assert columns.label("output['b'].name").tolist() == ["y", ABSENT]
    assert columns.number("output['a'][1].imag").tolist()[1] == 2
    assert columns.number("length of output").tolist() == [2, 1]


def test_exceptions_text_and_huge_numbers_are_outputs():
    columns = tabulate([Raised("ValueError", "no"), "text", 10**400, frozenset({2, 1}), b"b"])
    assert columns.label("exception of output")[0] == "ValueError"
    assert columns.label("output").tolist()[1:] == ["text", str(10**400), "1, 2", "b'b'"]


def test_a_path_that_was_never_seen_reads_as_absent():
    columns = tabulate([1.0, float("nan")])
    assert np.isnan(columns.number("elsewhere")).all()
    assert columns.label("elsewhere").tolist() == [ABSENT, ABSENT]


def test_datasets_are_read_through_to_dict():
    columns = tabulate([xr.Dataset({"p": ("x", [1.0, 2.0])})])
    assert any(column.tolist() == [2.0] for column in columns.numbers.values())


def test_objects_whose_text_may_hold_an_address_are_refused():
    with pytest.raises(ArgumentError, match="type object"):
        tabulate([object()])
