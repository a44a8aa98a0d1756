from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases
from pymc_dp.trace.manifest import MANIFEST, PRIVACY, RECORD, make_manifest

CANARY = 3_133_731_337  # no number of a text holds ten digits of it by chance
LABELS = [f"patient-{i}-{CANARY}" for i in range(60)]


def build_model(answers: np.ndarray, groups: np.ndarray) -> pm.Model:
    """One table of 60 patients: a private group, and a yes or no."""
    with pm.Model(coords={"group": ["a", "b", "c"], "patient": LABELS}) as model:
        group = pm.Data("group_index", groups, dims="patient")
        p = pm.Beta("p", 2, 2, dims="group")
        pm.Deterministic("odds", p / (1 - p), dims="group")
        pm.Deterministic("row_probability", p[group], dims="patient")
        pm.Bernoulli("answer", p[group], observed=answers, dims="patient")
    return model


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(20)
    return rng.integers(0, 2, 60), rng.integers(0, 3, 60)


@pytest.fixture(autouse=True)
def _no_history() -> Iterator[None]:
    forget_releases()
    yield
    forget_releases()


@pytest.fixture(scope="session")
def raw_model() -> pm.Model:
    return build_model(*table())


@pytest.fixture(scope="session")
def sampled(raw_model: pm.Model) -> xr.DataTree:
    """A short private trace, of graphs that are not compiled; copy it before changing it."""
    forget_releases()
    quiet = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return dp.sample(20, epsilon=1.0, model=raw_model, tune=20, chains=2, cores=1, random_seed=1, **quiet)


@pytest.fixture
def trace(sampled: xr.DataTree) -> xr.DataTree:
    return sampled.copy(deep=True)


def write_record(tree: xr.DataTree, record: Mapping[str, Any]) -> None:
    """Forge a record, with the manifest that belongs to it."""
    tree[PRIVACY].attrs[RECORD] = json.dumps(record)
    tree[PRIVACY].attrs[MANIFEST] = make_manifest(tree)
