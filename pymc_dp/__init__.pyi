"""Differentially private Bayesian inference for PyMC models."""

from pymc_dp import datasets as datasets
from pymc_dp import errors as errors
from pymc_dp import from_draws as from_draws
from pymc_dp import markov as markov
from pymc_dp import metrics as metrics
from pymc_dp import models as models
from pymc_dp import networks as networks
from pymc_dp import plots as plots
from pymc_dp import schedules as schedules
from pymc_dp import testing as testing
from pymc_dp import theorems as theorems
from pymc_dp.accounting import Budget
from pymc_dp.annealing import sample_ais
from pymc_dp.answer import answer
from pymc_dp.audit import audit
from pymc_dp.domain import Domain
from pymc_dp.errors import BudgetExceeded
from pymc_dp.explain import explain
from pymc_dp.families.histogram import Histogram
from pymc_dp.find_bounds import find_bounds
from pymc_dp.find_levels import find_levels
from pymc_dp.find_map import find_map
from pymc_dp.gradients.choice import Gradients
from pymc_dp.ledgers import Ledger
from pymc_dp.plan import plan
from pymc_dp.poststratify import poststratify
from pymc_dp.privatize import privatize
from pymc_dp.rehearse import rehearse
from pymc_dp.release.statistics import Statistics
from pymc_dp.released import Release, condition
from pymc_dp.rows.levels import Levels
from pymc_dp.rows.parquet import Parquet
from pymc_dp.rows.table import Table
from pymc_dp.sampling import sample
from pymc_dp.sensitivities import sensitivity
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.langevin import SGFS, SGHMC, SGLD, SGNHT
from pymc_dp.step_methods.metropolis import BarkerMetropolis, PenaltyMetropolis, TemperedMetropolis
from pymc_dp.step_methods.ops import OPS
from pymc_dp.synthesize import synthesize
from pymc_dp.trace.scrub import scrub
from pymc_dp.transforms.clamp import clamp
from pymc_dp.transforms.fill import fill
from pymc_dp.transforms.integrate import integrate
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet
from pymc_dp.transforms.truncate import truncate
from pymc_dp.unit import Unit

__version__: str

__all__ = [
    "OPS",
    "SGFS",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "BarkerMetropolis",
    "Budget",
    "BudgetExceeded",
    "Domain",
    "Gradients",
    "Histogram",
    "Ledger",
    "Levels",
    "Parquet",
    "PenaltyMetropolis",
    "PrivateHMC",
    "Release",
    "Statistics",
    "Table",
    "TemperedGibbs",
    "TemperedMetropolis",
    "TruncatedDirichlet",
    "Unit",
    "answer",
    "audit",
    "clamp",
    "condition",
    "explain",
    "fill",
    "find_bounds",
    "find_levels",
    "find_map",
    "integrate",
    "plan",
    "poststratify",
    "privatize",
    "rehearse",
    "sample",
    "sample_ais",
    "scrub",
    "sensitivity",
    "synthesize",
    "truncate",
]
