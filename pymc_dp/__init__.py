"""Differentially private Bayesian inference for PyMC models."""

from pymc_dp import datasets, testing
from pymc_dp.accounting import Budget, Ledger
from pymc_dp.audit import Audit, audit
from pymc_dp.domain import Domain
from pymc_dp.errors import BudgetExceeded, PrivacyError
from pymc_dp.explain import Explanation, explain
from pymc_dp.mechanisms.statistics import Statistics
from pymc_dp.plots.budget import plot_budget
from pymc_dp.plots.release import plot_release
from pymc_dp.sampling import sample
from pymc_dp.trace.accessor import PrivacyAccessor
from pymc_dp.trace.scrub import scrub
from pymc_dp.transforms.privatize import privatize
from pymc_dp.transforms.truncate import truncate
from pymc_dp.transforms.truncated_dirichlet import TruncatedDirichlet

__all__ = [
    "Audit",
    "Budget",
    "BudgetExceeded",
    "Domain",
    "Explanation",
    "Ledger",
    "PrivacyAccessor",
    "PrivacyError",
    "Statistics",
    "TruncatedDirichlet",
    "audit",
    "datasets",
    "explain",
    "plot_budget",
    "plot_release",
    "privatize",
    "sample",
    "scrub",
    "testing",
    "truncate",
]
