"""Models that need a word before they are PyMC models of rows: bambi's, and densities that are written by hand."""

from pymc_dp.inspection.given import from_bambi
from pymc_dp.inspection.stated import with_statistics

__all__ = ["from_bambi", "with_statistics"]
