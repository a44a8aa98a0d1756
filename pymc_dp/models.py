"""Models that need a word before they are PyMC models of rows: bambi's, densities by hand, processes with a basis."""

from pymc_dp.inspection.given import from_bambi
from pymc_dp.inspection.stated import with_statistics
from pymc_dp.transforms.hsgp import HSGP, HSGPPeriodic

__all__ = ["HSGP", "HSGPPeriodic", "from_bambi", "with_statistics"]
