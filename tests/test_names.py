"""Few names stand at the top, and they are those of the design; the others are in a namespace that says its purpose."""

import importlib

import pytest

import pymc_dp as dp
from pymc_dp._lazy import sources
from tests.test_lazy import STUB

MOST_NAMES = 44
NAMES = {
    "what is public, what is spent": [
        "Domain",
        "Unit",
        "Parquet",
        "Table",
        "Levels",
        "Budget",
        "Ledger",
        "BudgetExceeded",
    ],
    "before anything is spent": ["explain", "sensitivity", "plan", "audit"],
    "what is public once it is paid for": ["find_bounds", "find_levels"],
    "releases": ["sample", "privatize", "Statistics", "Histogram", "Gradients", "Release", "condition"],
    "afterwards": ["rehearse", "scrub", "synthesize", "answer", "poststratify"],
    "step methods": [
        *["OPS", "TemperedGibbs", "BarkerMetropolis", "PenaltyMetropolis", "TemperedMetropolis", "PrivateHMC"],
        *["SGLD", "SGHMC", "SGNHT", "SGFS", "DataAugmentation"],
    ],
    "estimates": ["sample_ais", "find_map"],
    "models": ["TruncatedDirichlet", "truncate", "clamp", "fill", "integrate"],
}
NAMESPACES = {
    "datasets": {"load_fair"},
    "errors": {"PrivacyError", "BudgetExceeded", "UnsupportedModelError"},
    "from_draws": {"draw_intervals"},
    "markov": {"IsingField", "MarkovStates", "draw_states", "marginalize_states"},
    "metrics": {"L1", "Hamming"},
    "models": {"HSGP", "HSGPPeriodic", "from_bambi", "with_statistics"},
    "networks": {"FourierUpdates", "LaplaceUpdates"},
    "plots": {"budget", "rehearsal", "release", "tradeoff"},
    "schedules": {"AlphaPhase", "EstimatedNorm", "PolynomialDecay"},
    "testing": {"insecure_randomness", "without_noise"},
    "theorems": {"posterior_privacy", "families"},
}


def test_the_names_at_the_top_are_those_of_the_design_and_few():
    assert sorted(dp.__all__) == sorted(name for names in NAMES.values() for name in names)
    assert len(dp.__all__) <= MOST_NAMES


def test_the_namespaces_are_these():
    assert {name for name, source in sources(STUB).items() if source == "pymc_dp"} == set(NAMESPACES)


@pytest.mark.parametrize(("space", "names"), NAMESPACES.items(), ids=list(NAMESPACES))
def test_a_namespace_has_its_names(space, names):
    assert getattr(dp, space) is importlib.import_module(f"pymc_dp.{space}")
    assert names <= set(dir(getattr(dp, space)))
    assert space in dir(dp) and space not in dp.__all__
