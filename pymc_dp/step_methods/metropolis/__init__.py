from pymc_dp.step_methods.metropolis.barker import BarkerMetropolis

__all__ = ["BarkerMetropolis"]
