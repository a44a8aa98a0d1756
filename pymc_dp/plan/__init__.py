"""What would ε buy: simulation from the prior, before anything is spent."""

from pymc_dp.plan.result import Plan, Suggestion
from pymc_dp.plan.run import plan

__all__ = ["Plan", "Suggestion", "plan"]
