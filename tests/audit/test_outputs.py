"""What `dp.audit` looks at of an output, whatever its shape, and the calls and sensitivities that it refuses."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.audit import fuzz_sensitivity


@dataclass
class Answer:
    count: int
    name: str


def audited(mechanism, **given):
    settings = {"epsilon": 1.0, "runs": 200, "progressbar": False, "data": False, "neighbour": True}
    return dp.audit(mechanism, **settings | given)


LEAKS = {
    "a text": (lambda bit: "yes" if bit else "no", "output is 'no'|output is 'yes'|output"),
    "bytes": (lambda bit: b"yes" if bit else b"no", "output"),
    "an array of another length": (lambda bit: np.zeros(1 + bit), "shape of output|output"),
    "a list in a mapping": (lambda bit: {"a": [1, "x"] if bit else [1, "x", 2]}, r"output\['a'\]"),
    "a part of a record": (lambda bit: Answer(3, "y" if bit else "z"), "output.name"),
    "nothing": (lambda bit: [None if bit else 1.0], r"output\[0\]"),
    "an imaginary part": (lambda bit: [2j if bit else 3j], r"output\[0\].imag"),
    "a set": (lambda bit: {1, 2} if bit else {1}, "output"),
    "a huge number": (lambda bit: [10**400 if bit else 10**401], r"output\[0\]"),
    "a date": (lambda bit: [np.datetime64("2020-01-01" if bit else "2020-01-02")], r"output\[0\]"),
    "a data set": (lambda bit: xr.Dataset({"p": ("x", [1.0, float(bit)])}), "p"),
    "a number among texts": (lambda bit: ["x", 1.0] if bit else ["x", "y"], r"output\[1\]"),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_a_bit_that_leaves_is_found_wherever_it_is(kind):
    mechanism, event = LEAKS[kind]
    found = audited(mechanism)
    assert not found.passed and found.epsilon_lower > 2
    assert re.search(event, found.event), found.event


def test_events_of_the_user_are_looked_at_alone(rng):
    def noisy(bit):
        return float(bit) + rng.laplace(scale=0.2)

    found = audited(noisy, runs=2000, events={"more than a half": lambda output: output > 0.5})
    assert not found.passed and "more than a half" in found.event
    found = audited(noisy, runs=400, events=[lambda output: output > 100])
    assert found.passed


CALLS = [
    ({"confidence": 1.0}, r"confidence must lie in \(0, 1\), got 1.0. Use 0.999"),
    ({"events": []}, "events is empty. Leave it out"),
    ({"events": [3]}, r"events\[0\]"),
    ({"vectorised": True, "mechanism": lambda bit, runs: 3}, r"must return 50 outputs, got int"),
    ({"vectorised": True, "mechanism": lambda bit, runs: [1, 2]}, "returned 2 outputs. Return one per run"),
    ({"data": None}, "Give two neighbouring data sets"),
    ({"pairs": [(0, 1)]}, "Give data and neighbour, or pairs, not both"),
    ({"data": None, "neighbour": None, "pairs": [1]}, r"Each of pairs must be \(data, neighbour\)"),
    ({"data": None, "neighbour": None, "pairs": []}, "pairs is empty"),
    ({"mechanism": lambda bit: object()}, "of type object, which cannot be compared between runs"),
]


@pytest.mark.parametrize(("given", "text"), CALLS, ids=[text[:30] for _, text in CALLS])
def test_calls_that_say_nothing_are_refused(given, text):
    with pytest.raises(dp.errors.ArgumentError, match=text):
        audited(given.pop("mechanism", lambda bit: 0.0) if "mechanism" in given else lambda bit: 0.0, **given)


def test_several_pairs_are_audited_and_the_worst_is_told():
    found = audited(lambda row: float(row == 2), data=None, neighbour=None, pairs=[(0, 1), (1, 2)])
    assert not found.passed


def test_random_rows_find_a_sensitivity_that_no_corner_has():
    """Between corners: the sum of x (1 - x) moves by 1/4, and by nothing at 0 and 1."""

    def between(rows):
        return sum(x * (1 - x) for (x,) in rows)

    given = {"random_rows": lambda rng, count: rng.uniform(size=(count, 1)), "claimed": 0.1}
    worst = fuzz_sensitivity(between, [(0,), (1,)], **given)
    assert not worst.passed and 0.2 < worst.sensitivity <= 0.25
    for corners in ([], [(0,), (0, 1)]):
        with pytest.raises(dp.errors.ArgumentError, match="corner_rows must be one row or more, all of one length"):
            fuzz_sensitivity(between, corners, claimed=1.0)
