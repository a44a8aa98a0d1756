"""What the package did before bounds were enforced on the numbers that are summed: a fuzzer has to find it out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pymc_dp.inspection import interpreted
from pymc_dp.step_methods.row_functions import Limit, RangeBound, bounds


@dataclass(frozen=True, kw_only=True)
class Unlimited(Limit):
    """A row's numbers count as floats return them."""

    def add(self, total: Any, found: Any, weights: Any, owner: Any = None) -> None:
        owner = np.zeros(len(weights), dtype=np.int64) if owner is None else owner
        units = np.rint(np.nan_to_num(self.counted(found) / self.unit, neginf=-(2.0**50)))
        np.add.at(total.T, owner, (units.astype(np.int64) * weights).T)

    def counted(self, found: Any) -> Any:
        return found


@dataclass(frozen=True, kw_only=True)
class Dropping(Unlimited):
    """A row whose number is not finite at some point counts for nothing, which nobody pays for."""

    def counted(self, found: Any) -> Any:
        return np.where(np.isfinite(found).all(axis=0), found, 0.0)


@dataclass(frozen=True, kw_only=True)
class SummedInFloats(Limit):
    """Every row is limited, but the sum is one of floats: what it is depends on the order of the rows."""

    def add(self, total: Any, found: Any, weights: Any, owner: Any = None) -> None:
        top = found.max(axis=0)
        sums = np.maximum(found, top - self.width * self.unit) @ weights
        total[:, 0] += np.rint((sums - sums.max()) / self.unit).astype(np.int64)


@contextmanager
def summed_by(kind: type[Limit]) -> Iterator[None]:
    """Charge what is proved, of densities as they are written, and add up rows in another way."""

    def fit(
        tried: Any, candidates: Any, *, range_: float, neighbours: Any, n_rows: int, size: Any = None
    ) -> RangeBound:
        return RangeBound(limit=kind.of(range_, neighbours, n_rows, size=size))

    own = bounds.fitting_range
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreted, "stable_form", lambda node, inputs: None)
        for module in [item for key, item in sys.modules.items() if key.startswith("pymc_dp")]:
            if getattr(module, "fitting_range", None) is own:
                patch.setattr(module, "fitting_range", fit)
        yield


__all__ = ["Dropping", "SummedInFloats", "Unlimited", "summed_by"]
