"""How far one row can move a log-likelihood, for records and temperatures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RowRange:
    """What a row can move.

    Attributes
    ----------
    value : float
        sup over neighbours of (sup over θ of d - inf over θ of d), d by how much they differ.
    sensitivity : float
        Δl = sup |d| [Foulds et al. 2016, equation 9]; inf where it is not known.
    reason : str
        Where they come from.
    """

    value: float
    sensitivity: float
    reason: str


__all__ = ["RowRange"]
