"""All kinds of models: importing this module enters them."""

from tests.zoo import curves, formulas, outcomes, regressions, rows_elsewhere
from tests.zoo.kind import ZOO, Kind

FILES = (outcomes, regressions, curves, rows_elsewhere, formulas)


def kinds() -> tuple[Kind, ...]:
    """Return every kind of model."""
    return tuple(ZOO.values())
