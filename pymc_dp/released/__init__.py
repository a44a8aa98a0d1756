"""Released statistics alone: saved, loaded, and fitted by anyone with a model of their own."""

from pymc_dp.released.condition import condition, planned
from pymc_dp.released.release import Release

__all__ = ["Release", "condition", "planned"]
