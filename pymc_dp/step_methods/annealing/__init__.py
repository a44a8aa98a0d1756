"""Annealed importance sampling, of which every transition is an exponential mechanism."""

from pymc_dp.step_methods.annealing.sampler import Annealed, Annealing, Resampling, Settings

__all__ = ["Annealed", "Annealing", "Resampling", "Settings"]
