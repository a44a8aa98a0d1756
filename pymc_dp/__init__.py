"""Differentially private Bayesian inference for PyMC models."""

from pymc_dp.domain import Domain
from pymc_dp.transforms.privatize import privatize

__all__ = ["Domain", "privatize"]
