"""Settings of `SGLD`, `SGHMC`, `SGNHT` and `SGFS`: step sizes that fall, and a clip norm that is bought."""

from pymc_dp.step_methods.langevin.estimated_norm import EstimatedNorm
from pymc_dp.step_methods.langevin.step_sizes import AlphaPhase, PolynomialDecay

__all__ = ["AlphaPhase", "EstimatedNorm", "PolynomialDecay"]
