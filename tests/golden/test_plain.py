"""What counts as a difference, and that each is named with both values."""

import pytest

from tests.golden.plain import SAME, differences

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
