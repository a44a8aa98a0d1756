"""The operations by which anything leaves private rows. Each: check, cost, pay, read, enforce, sum exactly, draw."""

from __future__ import annotations

from typing import final

from pymc_dp.kernel.sums import Sums


@final
class Kernel(Sums):
    """A table, the account of its budget, and every operation on them; see `Holder`, `Choices` and `Sums`."""


__all__ = ["Kernel"]
