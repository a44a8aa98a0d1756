"""Maximum a posteriori by the exponential mechanism: over candidates, or over all of the parameter space."""

from pymc_dp.step_methods.mode.annealed import AnnealedMode
from pymc_dp.step_methods.mode.candidates import Draws, Grid, Points
from pymc_dp.step_methods.mode.mode import CandidateMode

__all__ = ["AnnealedMode", "CandidateMode", "Draws", "Grid", "Points"]
