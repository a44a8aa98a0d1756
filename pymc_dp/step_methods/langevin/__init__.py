"""Stochastic-gradient samplers: gradients of clipped rows, whose noise is what makes them private."""

from pymc_dp.step_methods.langevin.batches import AlphaPhase, PolynomialDecay
from pymc_dp.step_methods.langevin.estimated_norm import EstimatedNorm
from pymc_dp.step_methods.langevin.fisher import SGFS
from pymc_dp.step_methods.langevin.momentum import SGHMC, SGNHT
from pymc_dp.step_methods.langevin.sgld import SGLD

__all__ = ["SGFS", "SGHMC", "SGLD", "SGNHT", "AlphaPhase", "EstimatedNorm", "PolynomialDecay"]
