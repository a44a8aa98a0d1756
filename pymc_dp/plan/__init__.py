"""What would ε buy: simulation from the prior, before anything is spent."""

from pymc_dp.plan.result import Plan, Suggestion
from pymc_dp.plan.run import plan
from pymc_dp.plan.sampler import SamplerPlan

__all__ = ["Plan", "SamplerPlan", "Suggestion", "plan"]
