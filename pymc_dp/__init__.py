"""Differentially private Bayesian inference for PyMC models."""

from pymc_dp._lazy import attach
from pymc_dp._version import __version__ as __version__
from pymc_dp.trace.registered import privacy as privacy

__all__ = attach(__name__)
