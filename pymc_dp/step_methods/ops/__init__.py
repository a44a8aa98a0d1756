"""One posterior sample."""

from pymc_dp.step_methods.ops.one_sample import OPS

__all__ = ["OPS"]
