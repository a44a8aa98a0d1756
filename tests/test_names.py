"""Few names stand at the top, those of the design; others are in a namespace. All come when they are used."""

import ast
import importlib
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import pymc_dp as dp
from pymc_dp._lazy import sources

STUB = Path(dp.__file__).with_suffix(".pyi")
SOURCES = sources(STUB)
NAMES = """
Domain Unit Parquet Table Levels Budget Ledger BudgetExceeded explain sensitivity plan audit find_bounds find_levels
sample privatize Statistics Histogram Gradients Release condition rehearse scrub synthesize answer poststratify
OPS TemperedGibbs BarkerMetropolis PenaltyMetropolis TemperedMetropolis PrivateHMC SGLD SGHMC SGNHT SGFS
sample_ais find_map TruncatedDirichlet truncate clamp fill integrate
"""
NAMESPACES = {
    "datasets": "load_fair",
    "errors": "PrivacyError BudgetExceeded UnsupportedModelError",
    "from_draws": "draw_intervals",
    "markov": "MarkovStates draw_states marginalize_states",
    "metrics": "L1 Hamming",
    "models": "HSGP HSGPPeriodic from_bambi with_statistics",
    "networks": "FourierUpdates LaplaceUpdates",
    "plots": "budget rehearsal release tradeoff",
    "schedules": "AlphaPhase EstimatedNorm PolynomialDecay",
    "testing": "insecure_randomness without_noise",
    "theorems": "posterior_privacy families",
}


def test_the_names_at_the_top_are_those_of_the_design_and_of_the_stub():
    (listed,) = [ast.literal_eval(node.value) for node in ast.parse(STUB.read_text("utf-8")).body
                 if isinstance(node, ast.Assign)]  # fmt: skip
    assert sorted(dp.__all__) == sorted(listed) == sorted(NAMES.split()) and len(listed) <= 44
    assert {name for name, source in SOURCES.items() if source == "pymc_dp"} == set(NAMESPACES)


@pytest.mark.parametrize("space", NAMESPACES)
def test_a_namespace_has_its_names(space):
    assert getattr(dp, space) is importlib.import_module(f"pymc_dp.{space}")
    assert set(NAMESPACES[space].split()) <= set(dir(getattr(dp, space)))
    assert space in dir(dp) and space not in dp.__all__


@pytest.mark.parametrize("name", NAMES.split())
def test_every_name_is_what_the_stub_says_and_no_module_hides_a_function(name):
    module = importlib.import_module(SOURCES[name])
    assert getattr(dp, name) is vars(module)[name] and not isinstance(getattr(dp, name), ModuleType)
    importlib.import_module("pymc_dp.plan.run")
    assert isinstance(dp.plan, FunctionType)


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'pymc_dp' has no attribute 'nonsense'"):
        _ = dp.nonsense
    assert not hasattr(dp, "nonsense")
