"""Whatever anyone sees of two neighbours is the same, but for the released numbers: of every kind of model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.promises.neighbours import QUICK, neighbours
from tests.promises.observed import Plain, canaries, differences, shown_by_all, shown_by_gradients, shown_by_sums
from tests.zoo.every import kinds
from tests.zoo.kind import Kind, Relation, Table

CASES = [pytest.param(kind, relation, id=f"{kind.name}-{relation}") for kind in kinds() for relation in kind.relations]
CAREFUL = [case for case in CASES if not case.values[0].careless]
"""Without kinds whose users compute numbers from rows: how well a prior or a range fits depends on these."""
MOST_SKIPPED = 0.6
"""Share of the tables of one kind that PyMC itself may refuse: ``pm.Data`` refuses missing and infinite values."""
MOST_SKIPPED_OF_ALL = 0.15


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


def built(kind: Kind, table: Table) -> Any:
    """Return the model of a table; None where PyMC, or code of the user, refuses the table."""
    try:
        return kind.build(table)
    except Exception:
        return None


def look_alike(
    kind: Kind, relation: Relation, look: Callable[..., Plain], chosen: tuple[str, ...] | None
) -> dict[str, list[str]]:
    """Return how neighbours differ from the table of a kind, by what is special in each.

    Of a careless kind only whether it is accepted is compared.
    """
    if kind.name.startswith("formula"):
        pytest.importorskip("bambi")
    table, domain = kind.table(), lambda: kind.domain(relation)
    secret = canaries(table, kind.public if relation == "replace" else ())
    own = look(kind.build(table), domain, kind.delta, secret)
    found: dict[str, list[str]] = {}
    skipped = count = 0
    if not kind.careless and (values := values_of_rows(own)):
        found["the table itself"] = [f"{values} values of rows are in the private model"]
    for name, other in neighbours(kind, relation, table).items():
        if chosen is not None and name not in chosen:
            continue
        count += 1
        if (model := built(kind, other)) is None:
            skipped += 1
            continue
        seen = look(model, domain, kind.delta, secret)
        if texts := differences(accepted(own), accepted(seen)) if kind.careless else differences(own, seen):
            found[name] = texts
    assert skipped <= MOST_SKIPPED * count + 2, f"{skipped} of {count} tables were refused by PyMC"
    return found


def values_of_rows(seen: Plain) -> int:
    """Return how many values of rows the private models hold."""
    returned = [shown.get("returned") for shown in seen.values()]
    return sum(one["held"]["canaries"] for one in returned if isinstance(one, dict) and "held" in one)


def accepted(seen: Plain) -> Plain:
    """Return of all that is shown whether each way accepts the model, or what it raises."""
    return {way: shown.get("raised", "accepted") for way, shown in seen.items()}


@pytest.mark.parametrize(("kind", "relation"), CASES)
def test_sums_of_neighbours_look_alike(kind: Kind, relation: Relation) -> None:
    assert look_alike(kind, relation, shown_by_sums, QUICK[relation][:2]) == {}


@pytest.mark.few(20)
@pytest.mark.parametrize(("kind", "relation"), CAREFUL)
def test_gradients_of_neighbours_look_alike(kind: Kind, relation: Relation) -> None:
    assert look_alike(kind, relation, shown_by_gradients, QUICK[relation][:2]) == {}


@pytest.mark.few(4)
@pytest.mark.parametrize(("kind", "relation"), CAREFUL)
def test_all_that_is_shown_of_neighbours_looks_alike(kind: Kind, relation: Relation) -> None:
    assert look_alike(kind, relation, shown_by_all, QUICK[relation]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("look", [shown_by_sums, shown_by_gradients])
@pytest.mark.parametrize(("kind", "relation"), CASES)
def test_all_neighbours_look_alike(kind: Kind, relation: Relation, look: Callable[..., Plain]) -> None:
    assert look_alike(kind, relation, look, None) == {}


def test_pymc_refuses_few_of_the_tables() -> None:
    """Else the tests above would compare little."""
    refused = total = 0
    for kind in kinds():
        if kind.name.startswith("formula"):
            continue
        for relation in kind.relations:
            table = kind.table()
            for name, other in neighbours(kind, relation, table).items():
                if name in QUICK[relation]:
                    total += 1
                    refused += built(kind, other) is None
    assert refused <= MOST_SKIPPED_OF_ALL * total


def test_a_difference_is_found() -> None:
    """The comparison itself: in texts, numbers, lists and where one side has nothing."""
    one = {"a": "x is 3\ny", "b": [1, 2], "c": {"d": float("nan")}}
    assert differences(one, one) == []
    assert differences(one, {**one, "a": "x is 4\ny"}) == ["/a: x is 3 | x is 4"]
    assert differences(one, {**one, "b": [1, 3]}) == ["/b/1: 2 | 3"]
    assert differences(one, {"a": one["a"], "b": [1, 2]}) == ["/c: {'d': nan} | None"]
