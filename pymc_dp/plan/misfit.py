"""What a release comes to where rows do not fit the model: how far it is from the posterior of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Self

import numpy as np

from pymc_dp.inspection.rows import Array

FAR, FARTHEST = 1.5, 3.0
"""Root mean square of z, of which 1 is due, from which a rehearsal says so; z that counts as far off."""
LEAST_APART = 0.22
"""What private and other standard deviations differ by at least, over the private one: no z is over less."""
COLUMNS = ("rows", "method", "ε", "tables", "z (1 is due)", f"beyond {FARTHEST:g}", "over not private")


@dataclass(frozen=True, kw_only=True, eq=False)
class Misfit:
    """Releases of tables of one kind that does not fit the model, by one method at one budget.

    Attributes
    ----------
    kind, method : str
    epsilon : float
    z : (n_tables, n_parameters) array
        How far the private mean is from the mean without privacy given the same rows, in standard deviations of what
        noise adds: about normal where the private posterior is that of these rows.
    ratios : (n_tables, n_parameters) array
        Widths of intervals over those without privacy.
    """

    kind: str
    method: str
    epsilon: float
    z: Array
    ratios: Array

    @classmethod
    def of(cls, kind: str, method: str, epsilon: float, fits: Sequence[tuple[Array, Array, Array, Array]]) -> Self:
        """Compare fits of tables: means and covariances with privacy, then without."""
        means, private, others, plain = (np.array(parts) for parts in zip(*fits, strict=True))
        own, alone = (np.sqrt(np.diagonal(one, axis1=1, axis2=2)) for one in (private, plain))
        apart = np.sqrt(np.maximum(own**2 - alone**2, (LEAST_APART * own) ** 2))
        return cls(kind=kind, method=method, epsilon=epsilon, z=(means - others) / apart, ratios=own / alone)

    @property
    def rms(self) -> float:
        """Root mean square of z: 1 is due."""
        size = float(np.sqrt(np.mean(self.z**2)))
        return size if size == size else inf

    @property
    def beyond(self) -> float:
        """Share of parameters that are far off."""
        return float(np.mean(~(np.abs(self.z) <= FARTHEST)))

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of a table under `COLUMNS`."""
        widths = f"{float(np.median(self.ratios)):.2f}"
        numbers = (f"{self.epsilon:g}", f"{len(self.z)}", f"{self.rms:.2g}", f"{self.beyond:.0%}", widths)
        return self.kind, self.method, *numbers


def misfit_notes(found: Sequence[Misfit]) -> tuple[str, ...]:
    """Say at which budgets, and on which rows, intervals are not those of the rows."""
    if not found:
        return ()
    off: dict[tuple[str, float], list[str]] = {}
    for one in found:
        if one.rms > FAR:
            off.setdefault((one.method, one.epsilon), []).append(f"{one.kind} (z of {one.rms:.2g})")
    lines = [
        f"{method} at ε = {epsilon:g}: off by more than noise explains, on rows made up with {', '.join(kinds)}. If "
        "your rows are like that, intervals may be far from those without privacy: take a likelihood that expects such "
        "rows."
        for (method, epsilon), kinds in off.items()
    ]
    said = (
        "Rows that do not fit the model: z is how far private means are from those without privacy given the same "
        f"rows, in standard deviations of the noise. Its root mean square is shown, of which 1 is due; {FAR:g} is much."
    )
    return (said, *lines)


__all__ = ["COLUMNS", "FAR", "Misfit", "misfit_notes"]
