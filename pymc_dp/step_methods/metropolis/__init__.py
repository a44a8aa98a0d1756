from pymc_dp.step_methods.metropolis.barker import BarkerMetropolis
from pymc_dp.step_methods.metropolis.penalty import PenaltyMetropolis
from pymc_dp.step_methods.metropolis.tempered import TemperedMetropolis

__all__ = ["BarkerMetropolis", "PenaltyMetropolis", "TemperedMetropolis"]
