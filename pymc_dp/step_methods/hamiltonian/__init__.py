"""Hamiltonian Monte Carlo on noised gradients, corrected by a noised accept test."""

from pymc_dp.step_methods.hamiltonian.hmc import PrivateHMC

__all__ = ["PrivateHMC"]
