"""Settings of `SGLD`, `SGHMC`, `SGNHT` and `SGFS`: step sizes that fall, and a clip norm that is bought."""

from pymc_dp.step_methods.langevin.batches import AlphaPhase, PolynomialDecay
from pymc_dp.step_methods.langevin.estimated_norm import EstimatedNorm

__all__ = ["AlphaPhase", "EstimatedNorm", "PolynomialDecay"]
