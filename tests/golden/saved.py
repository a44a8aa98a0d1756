"""Releases and traces that were saved once and have to be read for ever: what they say, and what new ones say.

The noise of these files is seeded, by patches and not by ``pymc_dp.testing``, so that their records are those of real
ones. They hold made-up rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.kernel.noise import Noise
from pymc_dp.trace.manifest import entries
from tests.golden.models import MODELS
from tests.golden.plain import Json, lines
from tests.golden.topics import FOLDER, Topic

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
LENGTHS = {"draws": 12, "tune": 8, "chains": 1, "cores": 1, "random_seed": 7, **QUIET}


@contextmanager
def seeded(seed: int = 11) -> Iterator[None]:
    """Repeat the same privacy noise inside; it hides nothing, and records do not say so."""
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Noise, "add", lambda noise, sums, scale: sums + noise.simulated(rng, scale, sums.shape))
        for module in ("step_methods.base", "step_methods.annealing.sampler"):
            patch.setattr(f"pymc_dp.{module}.secure_generator", lambda stream=None: rng.spawn(1)[0])
        yield


def ledger(delta: float = 0.0) -> dp.Ledger:
    return dp.Ledger(epsilon=2.0, delta=delta)


def counts() -> dp.Release:
    return dp.Release.of(dp.privatize(MODELS["survey"].model(), epsilon=1.0, ledger=ledger()))


def products() -> dp.Release:
    case = MODELS["linear regression"]
    gaussian = dp.Statistics(noise="gaussian")
    budget = {"epsilon": 1.0, "delta": 1e-6}
    private = dp.privatize(case.model(), domain=case.domain(), statistics=gaussian, ledger=ledger(1e-6), **budget)
    return dp.Release.of(private)


def sampled(name: str, **options: Any) -> xr.DataTree:
    case = MODELS[name]
    delta = options.get("delta", 0.0)
    return dp.sample(model=case.model(), domain=case.domain(), ledger=ledger(delta), **{"epsilon": 1.0, **options})


TRACES: dict[str, Callable[[], xr.DataTree]] = {
    "released": lambda: sampled("survey", **LENGTHS),
    "OPS": lambda: sampled("bounded normal", step=dp.OPS(), draws=3, **QUIET),
    "TemperedGibbs": lambda: sampled("bounded normal", step=dp.TemperedGibbs(), **LENGTHS, delta=1e-6),
    "BarkerMetropolis": lambda: sampled("bounded normal", step=dp.BarkerMetropolis(), **LENGTHS, delta=1e-6),
    "find_map": lambda: dp.find_map(
        epsilon=1.0, model=MODELS["robust"].model(), domain=MODELS["robust"].domain(), ledger=ledger()
    ),
    "sample_ais": lambda: dp.sample_ais(
        epsilon=1.0,
        model=MODELS["bounded normal"].model(),
        domain=MODELS["bounded normal"].domain(),
        particles=3,
        temperatures=4,
        random_seed=5,
        progressbar=False,
        ledger=ledger(),
    ),
}
RELEASES: dict[str, Callable[[], dp.Release]] = {"release_counts.json": counts, "release_products.nc": products}
PUBLISHED = {"trace_released.nc": "released", "trace_sampled.nc": "TemperedGibbs"}


def remake(folder: Path = FOLDER) -> None:
    """Write the files that are not there: those that are have to stay, whatever the code has become."""
    with seeded(), pytensor.config.change_flags(mode="FAST_COMPILE"):
        for name, make in RELEASES.items():
            if not (folder / name).exists():
                make().save(folder / name)
        for name, trace in PUBLISHED.items():
            if not (folder / name).exists():
                TRACES[trace]().dp.publish(folder / name)


def of_release(name: str) -> Json:
    release = dp.Release.load(FOLDER / name)
    return {
        "text": repr(release),
        "record": release.record.to_dict(),
        "tables": dict(release.tables),
        "domain": repr(release.domain),
    }


def of_trace(name: str) -> Json:
    with xr.open_datatree(FOLDER / name) as tree:
        tree.load()
    report = tree.dp.report()
    released = tree.dp.release.to_dict() if tree.dp.history["noise_scale"].iloc[0] else None
    return {**of_tree(tree), "additions": report.additions, "publishable": report.publishable, "released": released}


def of_tree(tree: xr.DataTree) -> Json:
    """What a trace says of itself; draws are left out."""
    return {
        "report": lines(str(tree.dp.report())),
        "history": tree.dp.history.to_dict(orient="records"),
        "record": {name: item for name, item in tree.dp.report().record.items() if name != "account"},  # of chance
        "manifest": sorted(path for path, _ in entries(tree)),
        "sizes": {node.path: dict(node.sizes) for node in tree.subtree},
    }


def new_trace(name: str) -> Json:
    with seeded(), pytensor.config.change_flags(mode="FAST_COMPILE"):
        return of_tree(TRACES[name]())


def conditioned() -> Json:
    """A saved release still fits a model of dummies."""
    private = dp.condition(MODELS["survey"].model(), dp.Release.load(FOLDER / "release_counts.json"))
    return {"free": [var.name for var in private.free_RVs], "observed": [var.name for var in private.observed_RVs]}


def _of(read: Callable[[str], Json], name: str) -> Callable[[], Json]:
    return lambda: read(name)


_FILES = {name: _of(of_release, name) for name in RELEASES} | {name: _of(of_trace, name) for name in PUBLISHED}
SAVED = Topic(name="saved", entries=_FILES | {"conditioned": conditioned}, quick={*_FILES, "conditioned"})
NEW_TRACES = Topic(name="traces", entries={name: _of(new_trace, name) for name in TRACES}, quick=set())
