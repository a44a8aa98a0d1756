"""How well do the intervals of a release hold up: tables simulated from its own posterior, and released again."""

from pymc_dp.rehearse.result import Rehearsed
from pymc_dp.rehearse.run import rehearse

__all__ = ["Rehearsed", "rehearse"]
