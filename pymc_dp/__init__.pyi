"""Differentially private Bayesian inference for PyMC models."""

from pymc_dp import bounds, datasets, metrics, testing
from pymc_dp.accounting import Budget, Ledger
from pymc_dp.annealing import sample_ais
from pymc_dp.answer import Answer, answer
from pymc_dp.audit import Audit, audit
from pymc_dp.domain import Domain
from pymc_dp.errors import BudgetExceeded, PrivacyError
from pymc_dp.explain import Explanation, explain
from pymc_dp.families.histogram import Histogram
from pymc_dp.find_map import find_map
from pymc_dp.from_draws.intervals import draw_intervals
from pymc_dp.gradients.choice import Gradients
from pymc_dp.inspection.given import from_bambi
from pymc_dp.inspection.stated import with_statistics
from pymc_dp.plan import Plan, SamplerPlan, plan
from pymc_dp.plots.budget import plot_budget
from pymc_dp.plots.release import plot_release
from pymc_dp.plots.tradeoff import plot_tradeoff
from pymc_dp.privatize import privatize
from pymc_dp.release.network_mechanisms import FourierUpdates, LaplaceUpdates
from pymc_dp.release.statistics import Statistics
from pymc_dp.released import Release, condition
from pymc_dp.rows.parquet import Parquet
from pymc_dp.sampling import sample
from pymc_dp.sensitivities import Bound, Sensitivity, sensitivity
from pymc_dp.step_methods.augmentation import DataAugmentation
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.langevin import (
    SGFS,
    SGHMC,
    SGLD,
    SGNHT,
    AlphaPhase,
    EstimatedNorm,
    PolynomialDecay,
)
from pymc_dp.step_methods.metropolis import BarkerMetropolis, PenaltyMetropolis, TemperedMetropolis
from pymc_dp.step_methods.ops import OPS
from pymc_dp.synthesize import synthesize
from pymc_dp.trace.accessor import PrivacyAccessor
from pymc_dp.trace.scrub import scrub
from pymc_dp.transforms.clamp import clamp
from pymc_dp.transforms.ising_field import IsingField
from pymc_dp.transforms.marginal_states import draw_states, marginalize_states
from pymc_dp.transforms.markov_states import MarkovStates
from pymc_dp.transforms.truncate import truncate
from pymc_dp.transforms.truncated_dirichlet import TruncatedDirichlet

__all__ = [
    "OPS",
    "SGFS",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "AlphaPhase",
    "Answer",
    "Audit",
    "BarkerMetropolis",
    "Bound",
    "Budget",
    "BudgetExceeded",
    "DataAugmentation",
    "Domain",
    "EstimatedNorm",
    "Explanation",
    "FourierUpdates",
    "Gradients",
    "Histogram",
    "IsingField",
    "LaplaceUpdates",
    "Ledger",
    "MarkovStates",
    "Parquet",
    "PenaltyMetropolis",
    "Plan",
    "PolynomialDecay",
    "PrivacyAccessor",
    "PrivacyError",
    "PrivateHMC",
    "Release",
    "SamplerPlan",
    "Sensitivity",
    "Statistics",
    "TemperedGibbs",
    "TemperedMetropolis",
    "TruncatedDirichlet",
    "answer",
    "audit",
    "bounds",
    "clamp",
    "condition",
    "datasets",
    "draw_intervals",
    "draw_states",
    "explain",
    "find_map",
    "from_bambi",
    "marginalize_states",
    "metrics",
    "plan",
    "plot_budget",
    "plot_release",
    "plot_tradeoff",
    "privatize",
    "sample",
    "sample_ais",
    "scrub",
    "sensitivity",
    "synthesize",
    "testing",
    "truncate",
    "with_statistics",
]
