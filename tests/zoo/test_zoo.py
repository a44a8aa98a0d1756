"""The zoo itself: each kind is a sentence, and a model that PyMC builds of its own table."""

from __future__ import annotations

import pytest

from tests.zoo.every import kinds
from tests.zoo.kind import Kind
from tests.zoo.page import MARK, PAGE, explained, page, table


def test_the_zoo_is_large() -> None:
    assert len(kinds()) >= 120


def test_the_page_shows_the_zoo() -> None:
    assert list(table()) == [kind.name for kind in kinds()]
    assert PAGE.read_text().partition(MARK)[2] == page(table()), "python -m tests.zoo.page"


@pytest.mark.few(40)
@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in kinds()])
def test_a_kind_is_released_or_refused_as_recorded(kind: Kind) -> None:
    if kind.name.startswith("formula"):
        pytest.importorskip("bambi")
    assert explained(kind) == tuple(table()[kind.name].values())


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in kinds()])
def test_a_kind_is_one_sentence_and_a_model(kind: Kind) -> None:
    if kind.name.startswith("formula"):
        pytest.importorskip("bambi")
    assert kind.about.endswith(".")
    assert "\n" not in kind.about
    assert len(kind.about.split()) <= 25
    assert kind.build(kind.table()) is not None
