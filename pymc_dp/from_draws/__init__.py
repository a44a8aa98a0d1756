"""What released draws of one posterior sample say about the parameters of the table."""

from pymc_dp.from_draws.private_model import draw_intervals

__all__ = ["draw_intervals"]
