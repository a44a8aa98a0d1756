"""What counts as a difference, and that each is named with both values."""

import json
import math

import numpy as np
import pytest

from tests.golden.plain import SAME, differences, plain, written

KEPT = {"a": {"texts": ["one", "two"], "number": 0.1 + 0.2, "count": 3, "flag": True, "none": None}}


def changed(**new):
    return list(differences(KEPT, {"a": {**KEPT["a"], **new}}))


def test_the_same_is_the_same_but_for_the_last_bits():
    assert changed() == [] and changed(number=0.3) == [] and changed(number=0.3 * (1 + SAME / 2)) == []


@pytest.mark.parametrize(
    ("new", "line"),
    [
        ({"number": 0.3 * (1 + 3 * SAME)}, "a.number: 0.30000000000000004, now 0.3000000009"),
        ({"count": 4}, "a.count: 3, now 4"),
        ({"flag": 1}, "a.flag: true, now 1"),
        ({"none": 0.0}, "a.none: null, now 0.0"),
        ({"number": "inf"}, 'a.number: 0.30000000000000004, now "inf"'),
        ({"texts": ["one", "other"]}, 'a.texts[1]: "two", now "other"'),
        ({"texts": ["one"]}, "a.texts: 2 items, now 1"),
        ({"more": 1}, "a.more: new, 1"),
    ],
)
def test_a_difference_is_named_with_both_values(new, line):
    assert changed(**new) == [line]


def test_what_is_gone_is_a_difference():
    assert list(differences({"a": 1, "b": [2]}, {"a": 1})) == ["b: gone, was [2]"]


def test_whole_numbers_are_compared_exactly():
    assert list(differences(10**15, 10**15 + 1)) == ["(whole): 1000000000000000, now 1000000000000001"]


def test_all_digits_are_written_and_arrays_are_lists():
    found = plain({"x": np.array([[0.1, math.inf]]), 2: (np.int64(3), np.True_)})
    assert found == {"x": [[0.1, "inf"]], "2": [3, True]}
    assert json.loads(written(KEPT)) == KEPT
    assert (
        written({"b": [[1 / 3], []], "a": ["ε", {}]})
        == '{\n "a": [\n  "ε",\n  {}\n ],\n "b": [[0.3333333333333333], []]\n}\n'
    )
    assert written({"b": 1 / 3, "a": "ε"}) == '{\n "a": "ε",\n "b": 0.3333333333333333\n}\n'


def test_what_has_no_plain_form_is_refused():
    with pytest.raises(TypeError, match="object has no plain form"):
        plain({"a": object()})
