"""Langevin samplers: gradients of clipped rows, with the noise of the dynamics as the noise that makes them private."""

from pymc_dp.step_methods.langevin.sgld import SGLD

__all__ = ["SGLD"]
