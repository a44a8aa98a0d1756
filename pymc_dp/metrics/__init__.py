"""Distances between rows, for privacy that is stated per unit of distance: ``Domain(metric=...)``."""

from pymc_dp.kernel.relations import PER_UNIT
from pymc_dp.metrics.columns import L1, L2, Hamming
from pymc_dp.metrics.geographic import EARTH, Geographic
from pymc_dp.metrics.metric import Extent, Metric, Sum

__all__ = ["EARTH", "L1", "L2", "PER_UNIT", "Extent", "Geographic", "Hamming", "Metric", "Sum"]
