"""Gibbs sampling whose every draw is private."""

from pymc_dp.step_methods.gibbs.tempered import TemperedGibbs

__all__ = ["TemperedGibbs"]
