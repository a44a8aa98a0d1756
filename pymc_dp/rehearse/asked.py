"""What a rehearsal is made of: a release, the model of its rows, and parameters from its posterior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pymc import Model

from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import described_domain
from pymc_dp.released import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A release, the model of its rows, and parameters from its posterior. Nothing in it is a private value.

    Attributes
    ----------
    release : Release
    model : pymc.Model
        Of which rows are not read.
    domain : Domain
    values : mapping of str to (n_tables, ...) array
        Of the free variables: one draw of the posterior for each table.
    interval : float
    n_rows : int or None
    """

    release: Release
    model: Model
    domain: Domain
    values: Mapping[str, Array]
    interval: float
    n_rows: int | None

    @property
    def tables(self) -> int:
        """How many tables to simulate."""
        return len(next(iter(self.values.values())))

    def require_domain(self, found: Domain) -> None:
        """Refuse a domain, as an inspection completed it, that is not that of the release."""
        own, released = described_domain(found), described_domain(self.release.domain)
        if differ := [name for name in {**own, **released} if own.get(name) != released.get(name)]:
            raise ArgumentError(
                f"domain differs from that of the release in {', '.join(differ)}. Leave domain= out, or repeat that of "
                "the release."
            )


__all__ = ["Asked"]
