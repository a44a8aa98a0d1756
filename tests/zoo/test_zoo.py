"""The zoo itself: each kind is a sentence, and a model that PyMC builds of its own table."""

from __future__ import annotations

import pytest

from tests.zoo.every import kinds
from tests.zoo.kind import Kind


def test_the_zoo_is_large() -> None:
    assert len(kinds()) >= 120


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in kinds()])
def test_a_kind_is_one_sentence_and_a_model(kind: Kind) -> None:
    if kind.name.startswith("formula"):
        pytest.importorskip("bambi")
    assert kind.about.endswith(".")
    assert "\n" not in kind.about
    assert len(kind.about.split()) <= 25
    assert kind.build(kind.table()) is not None
