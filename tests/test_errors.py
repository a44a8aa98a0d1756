"""A refusal says first what to do, each cause once, in five lines."""

import textwrap

from pymc_dp.errors import COLUMNS, MOST_LINES, Problem, UnsupportedModelError, first_of


def problem(where, kind="structure", remedy="Write it otherwise."):
    return Problem(where=where, what=f"{where} is in the way", remedy=remedy, kind=kind)


def test_what_follows_from_a_cause_is_not_said():
    cause, name, after = problem("cause", "cause"), problem("name", "declaration"), problem("after")
    assert first_of([after, name], [cause, after]) == [cause, name]


def test_the_way_that_asks_for_fewer_changes_counts():
    name, bounds = problem("name", "declaration"), problem("bounds", "declaration")
    hard, harder, other = problem("hard"), problem("harder"), problem("other")
    assert first_of([hard, harder, name], [bounds]) == [bounds]
    assert first_of([name], [name, bounds]) == [name, bounds], "else the second were asked for after the first"
    assert first_of([hard, harder, name], [other]) == [other, name]
    assert first_of([hard], [hard, other]) == [hard]


def test_the_remedy_is_first_and_said_once():
    text = str(UnsupportedModelError([problem("a"), problem("b")]))
    assert text == "Write it otherwise.\nWhy: a: a is in the way; b: b is in the way."
    many = UnsupportedModelError([problem(name) for name in "abcd"])
    assert str(many).endswith("b is in the way; and 2 more, in error.problems.")


def test_a_text_has_five_lines_at_most():
    long = [problem(f"y{place}", remedy=f"{place} " + "long " * 25) for place in range(6)]
    error = UnsupportedModelError(long)
    assert sum(len(textwrap.wrap(line, COLUMNS)) for line in str(error).splitlines()) <= MOST_LINES
    assert str(error).splitlines()[-1] == "5 more, in error.problems." and error.problems == tuple(long)
