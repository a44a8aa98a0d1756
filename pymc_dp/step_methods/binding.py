"""What a specification is bound to: a table and what is public about it, a budget, and the chains that it is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.inspection.findings import Inspection
from pymc_dp.step_methods.funding import Claims


@dataclass(frozen=True, kw_only=True, eq=False)
class Binding:
    """What a step has from the moment when it gets a model and a budget.

    Attributes
    ----------
    budget : Budget
        For all chains together: per row, or per unit of the domain's metric.
    chains : int
    domain : Domain
        What is public about one row.
    assumptions, left_out : tuple of str
        What the trace says was assumed public, and which variables it leaves out.
    claims : Claims
        How many of the chains have begun.
    """

    budget: Budget
    chains: int
    domain: Domain
    assumptions: tuple[str, ...]
    left_out: tuple[str, ...]
    claims: Claims

    @classmethod
    def of(cls, inspection: Inspection, budget: Budget, chains: int) -> Self:
        """Bind to an inspected model, which has no problems."""
        return cls(
            budget=budget,
            chains=chains,
            domain=inspection.domain,
            assumptions=inspection.assumptions,
            left_out=inspection.dropped,
            claims=Claims(chains),
        )


__all__ = ["Binding"]
