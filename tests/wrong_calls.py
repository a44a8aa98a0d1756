"""Every public call with arguments that are right; a test puts wrong ones in the place of each."""

import inspect
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import xarray as xr

import pymc_dp as dp
from pymc_dp.kernel.accounting.events import PureEvent
from pymc_dp.trace.accessor import PrivacyAccessor


class Opaque:
    """Something that no argument is."""

    def __repr__(self) -> str:
        return "<opaque>"


WRONG = {
    **{"none": None, "three": 3, "negative": -1, "half": 1.5, "nan": np.nan, "inf": np.inf, "text": "abc"},
    **{"huge": 2**2000, "list": [], "mapping": {}, "object": Opaque(), "true": True, "zero": 0, "empty text": ""},
    **{"texts": ["abc", "d"], "pairs": {"abc": (0, 1)}, "array": np.array([1.0, 2.0]), "matrix": np.eye(2)},
    **{"number array": np.array(2.5), "class": dict, "frame": pd.DataFrame({"y": [0, 1]}), "none array": [None]},
    **{"dataset": xr.Dataset(), "tree": xr.DataTree(), "bytes": b"abc", "complex": 1j, "far": 1e300, "tiny": 5e-324},
    **{
        "string map": {"y": "abc"},
        "number keys": {1: 2.0},
        "set": {1, 2},
        "function": len,
        "path": Path("/nonexistent/x"),
    },
}
LEFT = ("progressbar", "scratch")  # flags of many kinds; a text is a right folder
FEW = ("object", "text", "matrix", "huge")
"""Names of wrong values that no argument takes for a right one."""
WORDS = {
    **{"low": ("bounds",), "high": ("bounds",), "ends": ("bounds",), "norm": ("norms",), "tree": ("DataTree",)},
    **{
        "idata": ("DataTree",),
        "source": ("DataTree",),
        "weight": ("columns",),
        "power": ("temperatures",),
        "random_seed": ("model",),
    },
}
"""What an error may call an argument instead of its name."""


@dataclass(frozen=True)
class Call:
    """A call of the package, the arguments that are right for it beside defaults, and those to replace: by default all.

    A method is looked up when its arguments are made: some take a trace to be made.
    """

    name: str
    function: Callable[..., Any]
    given: Callable[[], dict[str, Any]]
    varied: tuple[str, ...] = ()
    slow: bool = False

    def right(self) -> dict[str, Any]:
        parameters = inspect.signature(self.function).parameters.values()
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        own = [one for one in parameters if one.kind not in kinds and one.default is not inspect.Parameter.empty]
        return {one.name: one.default for one in own if one.name not in LEFT} | self.given()

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.varied or tuple(self.right())


@cache
def model() -> pm.Model:
    """Rows of zeros and ones."""
    with pm.Model() as made:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.Bernoulli("y", p, observed=np.array([0, 1, 1, 0, 1, 1, 0, 1]))
    return made


@cache
def latent_model() -> pm.Model:
    """Rows with a latent each."""
    with pm.Model() as made:
        theta = pm.Normal("theta", pm.Normal("b"), 1.0, shape=4)
        pm.Bernoulli("y", logit_p=theta, observed=np.array([0, 1, 1, 0]))
    return made


@cache
def covariate_model() -> pm.Model:
    """Rows with a covariate."""
    with pm.Model() as made:
        pm.Bernoulli("y", logit_p=pm.Normal("b") * pm.Data("x", [0.1, 0.2, 0.3]), observed=np.array([0, 1, 1]))
    return made


@cache
def counted() -> pm.Model:
    """Counts without bounds."""
    with pm.Model() as made:
        pm.Poisson("k", pm.Gamma("rate", 1, 1), observed=np.array([0, 1, 1, 0, 1, 1, 0, 3]))
    return made


@cache
def trace() -> xr.DataTree:
    """A private trace whose posterior is drawn without a sampler."""
    private = dp.privatize(model(), epsilon=1.0, ledger=dp.Ledger(1.0))
    with private:
        raw = pm.sample_prior_predictive(5, var_names=["p"], random_seed=1)
    raw["posterior"] = raw["prior"].copy()
    return dp.scrub(raw, private)


@cache
def drawn() -> xr.DataTree:
    """A trace of two posterior samples."""
    return dp.sample(2, epsilon=1.0, step=dp.OPS(), model=model(), ledger=dp.Ledger(1.0), progressbar=False)


@cache
def of_cells() -> xr.DataTree:
    """Draws of a variable by cells."""
    draws = xr.Dataset({"p": (("chain", "draw", "cell"), [[[0.2, 0.6]]])}, {"cell": ["a", "b"]})
    return xr.DataTree.from_dict({"posterior": draws})


@cache
def release() -> dp.Release:
    return dp.Release.of(trace())


@cache
def other_release() -> dp.Release:
    """One with other numbers; made of nothing."""
    return replace(release(), tables={name: table + 1 for name, table in release().tables.items()})


def ledger() -> dp.Ledger:
    return dp.Ledger(1e6, 0.5)


def folder() -> Path:
    return Path(tempfile.mkdtemp())


def attribute(name: str, tree: Any) -> Any:
    found = getattr(PrivacyAccessor(tree), name)
    return found() if name == "report" else found


def mechanism(data: Any, n: int) -> Any:
    return np.random.default_rng(len(data)).laplace(size=n)


@cache
def planned() -> Any:
    return dp.plan(model(), [1.0], repeats=2, random_seed=1, progressbar=False)


BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SHORT = {"draws": 5, "tune": 0, "chains": 1, "cores": 1}
GAUSSIAN = dp.Statistics(noise="gaussian")


def asked(**more: Any) -> dict[str, Any]:
    return {**BUDGET, "domain": dp.Domain(), "ledger": ledger(), "model": model(), **more}


def of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of these arguments alone, by name."""
    found = lambda **given: function(*given.values())  # noqa: E731
    found.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    return found


SLOW: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Any]]]] = {
    "privatize": (dp.privatize, lambda: asked(statistics=GAUSSIAN)),
    "sample": (dp.sample, lambda: asked(**SHORT, statistics=GAUSSIAN)),
    "sample with a step": (dp.sample, lambda: asked(**SHORT, step=dp.OPS())),
    "find_map": (dp.find_map, lambda: asked(grid=20)),
    "find_map among candidates": (dp.find_map, lambda: asked(candidates={"p": [0.2, 0.5]})),
    "find_bounds": (
        dp.find_bounds,
        lambda: {"model": counted(), "columns": "k", "epsilon": 1.0, "domain": dp.Domain(), "ledger": ledger()},
    ),
    "find_levels": (
        dp.find_levels,
        lambda: {
            "column": "city",
            "rows": {"city": np.array(["Oslo"] * 9)},
            "max_levels": 5,
            **BUDGET,
            "domain": dp.Domain(),
            "ledger": ledger(),
        },
    ),
    "sample_ais": (dp.sample_ais, lambda: asked(particles=3, temperatures=3, random_seed=1, progressbar=False)),
    "explain": (dp.explain, lambda: {"model": model(), "domain": dp.Domain(), **BUDGET}),
    "sensitivity": (dp.sensitivity, lambda: {"model": model(), "domain": dp.Domain()}),
    "plan": (
        dp.plan,
        lambda: {
            "model": model(),
            **BUDGET,
            "var_names": ["p"],
            "n_rows": 10,
            "repeats": 2,
            "domain": dp.Domain(),
            "random_seed": 1,
            "progressbar": False,
            "width": 0.1,
        },
    ),
    "plan of a sampler": (
        dp.plan,
        lambda: {"model": model(), **BUDGET, "step": dp.SGLD(), "covariates": {}, "repeats": 2, "domain": dp.Domain()},
    ),
    "truncate": (dp.truncate, lambda: {"model": model(), "bounds": {"p": (0.2, 0.8)}}),
    "truncate to": (of(lambda low, high: dp.truncate(model(), {"p": (low, high)})), lambda: {"low": 0.2, "high": 0.8}),
    "integrate": (dp.integrate, lambda: {"model": latent_model(), "latent": "theta", "nodes": 5}),
    "fill": (dp.fill, lambda: {"model": covariate_model(), "values": {"x": 0.0}}),
    "clamp": (dp.clamp, lambda: {"model": model(), "low": -3.0, "high": 0.0}),
    "from_bambi": (dp.models.from_bambi, lambda: {"model": None}),
    "condition": (dp.condition, lambda: {"model": model(), "release": release()}),
    "draw_intervals": (dp.from_draws.draw_intervals, lambda: {"idata": drawn()}),
    "marginalize_states": (dp.markov.marginalize_states, lambda: {"model": model()}),
    "draw_states": (dp.markov.draw_states, lambda: {"idata": trace(), "model": model(), "random_seed": 1}),
}
PEOPLE = xr.DataArray([3, 1], {"cell": ["a", "b"]}, "cell")
ATTRIBUTES = ("epsilon", "delta", "guarantee", "arithmetic", "neighbours", "history", "release", "metric", "report")
METRIC = dp.metrics.L1({"y": 1.0})
GIVEN = dp.theorems.StochasticLipschitz(offset=0.1, rate=2.0, ratio=2.0)
QUICK: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Any]]]] = {
    "scrub": (dp.scrub, lambda: {"idata": trace(), "model": model()}),
    "poststratify": (dp.poststratify, lambda: {"idata": of_cells(), "cells": PEOPLE, "var": "p", "by": "cell"}),
    "synthesize": (dp.synthesize, lambda: {"idata": trace(), "model": model(), "n": 5, "random_seed": 1}),
    "rehearse": (
        dp.rehearse,
        lambda: {"idata": trace(), "model": model(), "tables": 3, "random_seed": 1, "progressbar": False},
    ),
    "answer": (
        dp.answer,
        lambda: {"idata": trace(), "utility": "squared_error", "responses": [0.1, 0.5], "query": "p",
                 "bounds": (-1, 0)},
    ),
    "Release.of": (dp.Release.of, lambda: {"source": trace()}),
    "Release.of_counts": (
        dp.Release.of_counts,
        lambda: {"values": {"count": [3, -4, 9]}, "scale": 5.0, "noise": "discrete laplace", "dims": "area",
                 "made_by": "an office", "guarantee": "pure, epsilon = 0.2", "budget": dp.Budget(0.2)},
    ),
    "condition on several": (
        of(lambda release: dp.condition(model(), release)),
        lambda: {"release": {"2025": release(), "2026": other_release()}},
    ),
    "Release.load": (dp.Release.load, lambda: {"path": release().save(folder() / "r.nc")}),
    "Release.save": (of(lambda path: release().save(path)), lambda: {"path": folder() / "r.nc"}),
    "publish": (of(lambda path: trace().dp.publish(path)), lambda: {"path": folder() / "r.nc"}),
    "report.save": (
        of(lambda path, dataset: trace().dp.report().save(path, dataset=dataset)),
        lambda: {"path": folder() / "r.md", "dataset": "a survey"},
    ),
    **{f"dp.{name}": (of(partial(attribute, name)), lambda: {"tree": trace()}) for name in ATTRIBUTES},
    "plots.budget": (dp.plots.budget, lambda: {"source": trace(), "backend": "none"}),
    "plots.release": (dp.plots.release, lambda: {"idata": trace(), "backend": "none"}),
    "plots.tradeoff": (dp.plots.tradeoff, lambda: {"plan": planned(), "backend": "none"}),
    "Plan.suggest": (
        of(lambda width, name: planned().suggest(width, var_name=name)), lambda: {"width": 0.3, "var_name": None}
    ),
    "audit": (
        dp.audit,
        lambda: {"mechanism": mechanism, "data": [0, 0], "neighbour": [0, 1], "epsilon": 1.0, "runs": 100,
                 "confidence": 0.9, "vectorised": True, "progressbar": False},
    ),
    "Domain": (
        dp.Domain,
        lambda: {"rows": "row", "bounds": {"y": (0, 1)}, "norms": {"x": 1.0}, "public": ("g",),
                 "levels": {"g": ["a", "b"]}},
    ),
    "Domain.of": (
        dp.Domain.of,
        lambda: {"frame": pl.DataFrame({"g": ["a"], "y": [0.5]}), "bounds": {"y": (0, 1)}, "columns": ["g", "y"],
                 "levels": {"g": ["a", "b"]}},
    ),
    "Domain of a hidden number of rows": (
        of(lambda n_max, unit: dp.Domain(neighbours="add_remove", n_max=n_max, unit=unit)),
        lambda: {"n_max": 10, "unit": dp.Unit("who", 2)},
    ),
    "Unit": (dp.Unit, lambda: {"column": "who", "max_rows": 2}),
    "Domain bounds": (of(lambda ends: dp.Domain(bounds={"y": ends})), lambda: {"ends": (0, 1)}),
    "Domain norms": (of(lambda norm: dp.Domain(norms={"x": norm})), lambda: {"norm": 1.0}),
    "Budget": (dp.Budget, lambda: {"epsilon": 1.0}),
    "Budget.covers": (dp.Budget(1.0).covers, lambda: {"other": dp.Budget(0.5)}),
    "Budget.split": (dp.Budget(1.0).split, lambda: {"weights": [1, 2]}),
    "Ledger": (dp.Ledger, lambda: {"epsilon": 1.0, "metric": METRIC}),
    "Ledger.spend": (
        lambda event, label, neighbours: dp.Ledger(1.0).spend(event, label=label, neighbours=neighbours),
        lambda: {"event": PureEvent(epsilon=0.5), "label": "ages", "neighbours": "replace"},
    ),
    "Statistics": (dp.Statistics, lambda: {"share": {"y": 1.0}}),
    "Statistics.histogram": (dp.Statistics().histogram, lambda: {"name": "y"}),
    "Histogram": (dp.Histogram, lambda: {"edges": [0, 1, 2]}),
    "LaplaceUpdates": (dp.networks.LaplaceUpdates, dict),
    "FourierUpdates": (dp.networks.FourierUpdates, dict),
    "AlphaPhase": (dp.schedules.AlphaPhase, dict),
    "PolynomialDecay": (dp.schedules.PolynomialDecay, lambda: {"first": 0.1, "least": 0.01}),
    "EstimatedNorm": (dp.schedules.EstimatedNorm, dict),
    "Table": (dp.Table, lambda: {"frame": pl.LazyFrame({"y": [0]}), "columns": {"y": "y"}}),
    "Levels": (dp.Levels, lambda: {"column": "city", "labels": ["Oslo"]}),
    "Levels.codes": (dp.Levels("city", ["a"]).codes, lambda: {"values": np.array(["a"])}),
    "Parquet": (dp.Parquet, lambda: {"files": "x.parquet", "columns": {"y": "y"}}),
    **{name: (getattr(dp.metrics, name), lambda: {"columns": {"y": 1.0}}) for name in ("L1", "L2", "Hamming")},
    "L1 weights": (of(lambda weight: dp.metrics.L1({"y": weight})), lambda: {"weight": 1.0}),
    "Geographic": (dp.metrics.Geographic, lambda: {"latitude": "lat", "longitude": "lon"}),
}  # fmt: skip
BATCH, MOVES = {"batch_size": 5, "clip_norm": 1.0, "sampling": "poisson"}, {"clamp": 1.0, "scale": 0.1}
STEPS: dict[Any, dict[str, Any]] = {
    dp.OPS: {"grid": 20},
    dp.TemperedGibbs: {"grid": 20},
    dp.BarkerMetropolis: MOVES,
    dp.PenaltyMetropolis: MOVES,
    dp.TemperedMetropolis: {"radius": 0.1},
    dp.PrivateHMC: {"n_leapfrog": 2},
    **dict.fromkeys((dp.SGLD, dp.SGHMC, dp.SGNHT, dp.SGFS), BATCH),
}
THEOREMS: dict[str, dict[str, Any]] = {
    "StochasticLipschitz": {"offset": 0.1, "rate": 2.0, "ratio": 2.0},
    "approximate_sampling": {"epsilon": 1.0, "l1_distance": 0.1},
    "distinguishing_distance": {"lipschitz": 1.0, "samples": 2, "delta": 0.1},
    "fourier_updates_error": {
        "epsilon": 1.0, "closure": 8, "parents": 2, "delta": 0.1, "increment": 1.0, "n_rows": 10
    },
    "laplace_updates_divergence": {
        "n_rows": 100, "epsilon": 1.0, "nodes": 2, "alpha": [2.0, 2.0], "beta": [2.0, 2.0], "delta": 0.1
    },
    "posterior_divergence": {"lipschitz": 1.0, "distance": 1.0},
    "posterior_privacy": {"lipschitz": 1.0, "distance": 1.0},
    "query_loss": {"samples": 10, "delta": 0.1, "responses": 2},
    "random_privacy": {"given": GIVEN, "lipschitz": 1.0},
    "restricted_prior_loss": {"outside": 0.1, "samples": 10, "delta": 0.1, "responses": 2},
    "stochastic_distinguishing_distance": {"given": GIVEN, "samples": 10, "delta": 0.1, "step": 0.1},
    "stochastic_divergence": {"given": GIVEN, "distance": 1.0, "step": 0.1},
    "stochastic_total_variation": {"given": GIVEN, "distance": 1.0, "step": 0.1},
    "families.bayesian_network": {"smallest": 0.1, "children": [1, 2]},
    "families.beta_binomial": {"concentration": 2.0, "trials": 5},
    "families.exponential": {"rate": (0.1, 2.0), "bound": 3.0, "prior_rate": 1.0},
    "families.laplace": {"inverse_scale": (0.1, 2.0), "location": 0.0, "bound": 3.0, "prior_rate": 1.0},
    "families.multivariate_normal": {"eigenvalues": [1.0, 2.0], "mean_norm": 1.0, "row_norm": 2.0},
    "families.normal_precision": {"precision": (0.1, 2.0), "mean": 0.0, "bound": 3.0, "prior_rate": 1.0},
}  # fmt: skip


def calls() -> list[Call]:
    """Return every public call."""
    found = [Call(name, *one) for name, one in QUICK.items()]
    for name, right in THEOREMS.items():
        found.append(Call(f"theorems.{name}", attrgetter(name)(dp.theorems), partial(dict, right)))
    found += [Call(name, *one, slow=True) for name, one in SLOW.items()]
    for step, own in STEPS.items():
        within = {**own, **BUDGET, "chains": 1, "domain": dp.Domain(), "vars": None}
        found.append(Call(step.__name__, step, partial(in_model, within), slow=True))
    return found


def in_model(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "model": model()}


__all__ = ["FEW", "WORDS", "WRONG", "Call", "calls", "planned", "trace"]
