"""Every public call with arguments that are right; a test puts wrong ones in the place of each."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import xarray as xr

import pymc_dp as dp
from pymc_dp.accounting.events import PureEvent
from pymc_dp.trace.accessor import PrivacyAccessor
from tests.from_draws.conftest import trace_of


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
    """A call of the package, the arguments that are right for it, and those to replace: by default every one."""

    name: str
    function: Callable[..., Any]
    right: Callable[[], dict[str, Any]]
    varied: tuple[str, ...] = ()
    slow: bool = False

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


def latent_model_arguments() -> dict[str, Any]:
    return {"model": latent_model(), "latent": "theta", "nodes": 5}


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
    """A trace of one posterior sample."""
    return trace_of(model(), {"p": np.array([0.4])})


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


def mechanism(data: Any, n: int) -> Any:
    return np.random.default_rng(len(data)).laplace(size=n)


@cache
def planned() -> Any:
    return dp.plan(model(), [1.0], repeats=2, random_seed=1, progressbar=False)


def _model_calls() -> Iterator[Call]:
    budget = {"epsilon": 1.0, "delta": 1e-6}

    def shared() -> dict[str, Any]:
        return {**budget, "domain": dp.Domain(), "ledger": ledger(), "model": model()}

    gaussian = dp.Statistics(noise="gaussian")
    yield Call("privatize", dp.privatize, lambda: {**shared(), "statistics": gaussian})
    yield Call(
        "sample", dp.sample, lambda: {**shared(), "draws": 5, "tune": 5, "chains": 1, "cores": 1,
        "statistics": gaussian},
    )  # fmt: skip
    yield Call(
        "sample with a step", dp.sample, lambda: {**shared(), "draws": 5, "tune": 0, "chains": 1, "cores": 1,
        "step": dp.OPS(), "statistics": None},
    )  # fmt: skip
    yield Call(
        "sample with augmentation", dp.sample, lambda: {**shared(), "draws": 5, "tune": 0, "chains": 1,
        "step": dp.DataAugmentation(), "delta": 0.0},
    )  # fmt: skip
    yield Call(
        "find_map", dp.find_map, lambda: {**shared(), "grid": 20, "candidates": None, "annealed": False,
        "assume_converged": False},
    )  # fmt: skip
    yield Call(
        "find_bounds", dp.find_bounds, lambda: {"model": counted(), "columns": "k", "epsilon": 1.0,
        "domain": dp.Domain(), "ledger": ledger(), "rows": None, "outside": 0.01},
    )  # fmt: skip
    yield Call(
        "find_levels", dp.find_levels, lambda: {"column": "city", "rows": {"city": np.array(["Oslo"] * 9)}, **budget,
        "max_levels": 5, "other": "other", "domain": dp.Domain(), "ledger": ledger()},
    )  # fmt: skip
    yield Call(
        "find_map among candidates", lambda **given: dp.find_map(**given), lambda: {**shared(),
        "candidates": {"p": [0.2, 0.5]}}, varied=("candidates",),
    )  # fmt: skip
    yield Call(
        "sample_ais", dp.sample_ais, lambda: {**shared(), "draws": 1, "particles": 3, "temperatures": 3, "power": None,
        "resampling": "range", "marginal_likelihood": False, "weights_share": None, "evidence_share": None,
        "grid": None, "random_seed": 1, "progressbar": False},
    )  # fmt: skip
    yield Call("explain", dp.explain, lambda: {"model": model(), "domain": dp.Domain(), **budget})
    yield Call("sensitivity", dp.sensitivity, lambda: {"model": model(), "domain": dp.Domain()})
    yield Call(
        "plan", dp.plan, lambda: {"model": model(), **budget, "noise": None, "statistics": None, "step": None,
        "covariates": None, "var_names": ["p"], "n_rows": 10, "repeats": 2, "interval": 0.9, "domain": dp.Domain(),
        "random_seed": 1, "progressbar": False, "width": 0.1},
    )  # fmt: skip
    yield Call(
        "plan of a sampler", dp.plan, lambda: {"model": model(), **budget, "step": dp.SGLD(), "covariates": {},
        "n_rows": None, "repeats": 2, "domain": dp.Domain()},
    )  # fmt: skip
    yield Call("truncate", dp.truncate, lambda: {"model": model(), "bounds": {"p": (0.2, 0.8)}})
    yield Call(
        "truncate to", lambda low, high: dp.truncate(model(), {"p": (low, high)}), lambda: {"low": 0.2, "high": 0.8}
    )
    yield Call("integrate", dp.integrate, latent_model_arguments)
    yield Call("fill", dp.fill, lambda: {"model": covariate_model(), "values": {"x": 0.0}})
    yield Call("clamp", dp.clamp, lambda: {"model": model(), "low": -3.0, "high": 0.0})
    yield Call("from_bambi", dp.models.from_bambi, lambda: {"model": None, "domain": None})
    yield Call("condition", dp.condition, lambda: {"model": model(), "release": release(), "noise_aware": True})
    yield Call(
        "condition on draws", dp.condition, lambda: {"model": model(), "release": drawn(), "noise_aware": True,
        "covariates": {}, "n_rows": 8}, slow=True,
    )  # fmt: skip
    yield Call(
        "draw_intervals", dp.from_draws.draw_intervals, lambda: {"idata": drawn(), "model": model(),
        "probability": 0.9, "covariates": {}, "n_rows": 8}, slow=True,
    )  # fmt: skip
    yield Call("marginalize_states", dp.markov.marginalize_states, lambda: {"model": model()})
    yield Call("draw_states", dp.markov.draw_states, lambda: {"idata": trace(), "model": model(), "random_seed": 1})


def _trace_calls() -> Iterator[Call]:
    yield Call("scrub", dp.scrub, lambda: {"idata": trace(), "model": model()})
    people = xr.DataArray([3, 1], {"cell": ["a", "b"]}, "cell")
    yield Call(
        "poststratify", dp.poststratify, lambda: {"idata": of_cells(), "cells": people, "var": "p", "by": "cell"}
    )
    yield Call("synthesize", dp.synthesize, lambda: {"idata": trace(), "model": model(), "n": 5, "random_seed": 1})
    yield Call(
        "rehearse", dp.rehearse, lambda: {"idata": trace(), "model": model(), "tables": 3, "random_seed": 1,
        "progressbar": False},
    )  # fmt: skip
    yield Call(
        "answer", dp.answer, lambda: {"idata": trace(), "utility": "squared_error", "responses": [0.1, 0.5],
        "query": "p", "bounds": (-1, 0), "failure": 0.05},
    )  # fmt: skip
    yield Call("Release.of", dp.Release.of, lambda: {"source": trace()})
    yield Call(
        "Release.of_counts", dp.Release.of_counts, lambda: {"values": {"count": [3, -4, 9]}, "scale": 5.0,
        "noise": "discrete laplace", "dims": "area", "made_by": "an office", "guarantee": "pure, epsilon = 0.2",
        "budget": dp.Budget(0.2), "postprocessed": False},
    )  # fmt: skip
    yield Call(
        "condition on several", lambda release: dp.condition(model(), release), lambda: {"release": {"2025": release(),
        "2026": other_release()}},
    )  # fmt: skip
    yield Call("Release.load", dp.Release.load, lambda: {"path": release().save(folder() / "r.nc")})
    yield Call("Release.save", lambda path: release().save(path), lambda: {"path": folder() / "r.nc"})
    yield Call("publish", lambda path: trace().dp.publish(path), lambda: {"path": folder() / "r.nc"})
    yield Call(
        "report.save", lambda path, dataset: trace().dp.report().save(path, dataset=dataset),
        lambda: {"path": folder() / "r.md", "dataset": "a survey"},
    )  # fmt: skip
    for attribute in ("epsilon", "delta", "guarantee", "arithmetic", "neighbours", "history", "release", "metric"):
        yield Call(
            f"dp.{attribute}", lambda tree, attribute=attribute: getattr(PrivacyAccessor(tree), attribute),
            lambda: {"tree": trace()},
        )  # fmt: skip
    yield Call("dp.report", lambda tree: PrivacyAccessor(tree).report(), lambda: {"tree": trace()})
    yield Call("plots.budget", dp.plots.budget, lambda: {"source": trace(), "backend": "none"})
    yield Call(
        "plots.release", dp.plots.release, lambda: {"idata": trace(), "var_name": None, "ci_prob": 0.9,
        "backend": "none"},
    )  # fmt: skip
    yield Call(
        "plots.tradeoff", dp.plots.tradeoff, lambda: {"plan": planned(), "var_names": None, "quantity": "width",
        "backend": "none"},
    )  # fmt: skip
    yield Call(
        "Plan.suggest", lambda width, var_name: planned().suggest(width, var_name=var_name), lambda: {"width": 0.3,
        "var_name": None},
    )  # fmt: skip
    yield Call(
        "audit", dp.audit, lambda: {"mechanism": mechanism, "data": [0, 0], "neighbour": [0, 1], "epsilon": 1.0,
        "delta": 0.0, "pairs": None, "runs": 100, "events": None, "confidence": 0.9, "vectorised": True,
        "progressbar": False},
    )  # fmt: skip


def _value_calls() -> Iterator[Call]:
    metric = dp.metrics.L1({"y": 1.0})
    yield Call(
        "Domain", dp.Domain, lambda: {"rows": "row", "bounds": {"y": (0, 1)}, "norms": {"x": 1.0}, "public": ("g",),
        "neighbours": "replace", "n_max": None, "metric": None, "unit": None, "levels": {"g": ["a", "b"]}},
    )  # fmt: skip
    yield Call(
        "Domain.of", dp.Domain.of, lambda: {"frame": pl.DataFrame({"g": ["a"], "y": [0.5]}), "bounds": {"y": (0, 1)},
        "levels": {"g": ["a", "b"]}, "public_levels": (), "columns": ["g", "y"]},
    )  # fmt: skip
    yield Call(
        "Domain of a hidden number of rows", dp.Domain, lambda: {"neighbours": "add_remove", "n_max": 10,
        "unit": dp.Unit("who", 2)}, varied=("n_max", "unit"),
    )  # fmt: skip
    yield Call("Unit", dp.Unit, lambda: {"column": "who", "max_rows": 2})
    yield Call("Domain bounds", lambda ends: dp.Domain(bounds={"y": ends}), lambda: {"ends": (0, 1)})
    yield Call("Domain norms", lambda norm: dp.Domain(norms={"x": norm}), lambda: {"norm": 1.0})
    yield Call("Budget", dp.Budget, lambda: {"epsilon": 1.0, "delta": 0.0})
    yield Call("Budget.covers", dp.Budget(1.0).covers, lambda: {"other": dp.Budget(0.5)})
    yield Call("Budget.split", dp.Budget(1.0).split, lambda: {"weights": [1, 2]})
    yield Call(
        "Ledger", dp.Ledger, lambda: {"epsilon": 1.0, "delta": 0.0, "neighbours": "replace", "metric": metric,
        "unit": None},
    )  # fmt: skip
    yield Call(
        "Ledger.spend", lambda **given: dp.Ledger(1.0).spend(**given), lambda: {"event": PureEvent(epsilon=0.5),
        "label": "ages", "neighbours": "replace"},
    )  # fmt: skip
    yield Call(
        "Statistics", dp.Statistics, lambda: {"noise": "laplace", "noise_aware": True, "share": {"y": 1.0},
        "mechanism": None},
    )  # fmt: skip
    yield Call("Statistics.histogram", dp.Statistics().histogram, lambda: {"name": "y"})
    yield Call("Histogram", dp.Histogram, lambda: {"edges": [0, 1, 2]})
    yield Call("LaplaceUpdates", dp.networks.LaplaceUpdates, lambda: {"papers": False})
    yield Call("FourierUpdates", dp.networks.FourierUpdates, lambda: {"t": 0.0, "papers": False})
    yield Call("AlphaPhase", dp.schedules.AlphaPhase, lambda: {"alpha": 0.5})
    yield Call(
        "PolynomialDecay", dp.schedules.PolynomialDecay, lambda: {"first": 0.1, "least": 0.01, "offset": 1.0,
        "power": 0.55},
    )  # fmt: skip
    yield Call(
        "EstimatedNorm", dp.schedules.EstimatedNorm, lambda: {"share": 0.1, "quantile": 0.9, "low": 1e-4, "high": 1e6}
    )
    frame = pl.LazyFrame({"y": [0]})
    yield Call("Table", dp.Table, lambda: {"frame": frame, "columns": {"y": "y"}, "assume_rows": False})
    yield Call("Levels", dp.Levels, lambda: {"column": "city", "labels": ["Oslo"], "other": "other"})
    yield Call("Levels.codes", dp.Levels("city", ["a"]).codes, lambda: {"values": np.array(["a"])})
    yield Call("Parquet", dp.Parquet, lambda: {"files": "x.parquet", "columns": {"y": "y"}})


def _step_calls() -> Iterator[Call]:
    batch = {
        "batch_size": 5, "clip_norm": 1.0, "step_size": None, "sampling": "poisson", "papers": False,
        "dtype": "float64", "steps_per_draw": 1, "start": None, "start_share": 0.5, "rows": None, "scratch": None,
    }  # fmt: skip
    moves = {"clamp": 1.0, "scale": 0.1, "covariance": None, "blocks": None, "steps_per_draw": 1, "share": 1.0}
    own: dict[Any, dict[str, Any]] = {
        dp.OPS: {"papers": False, "grid": 20, "assume_converged": False, "scans": None},
        dp.TemperedGibbs: {"steps_per_draw": 1, "grid": 20, "share": 1.0},
        dp.BarkerMetropolis: moves,
        dp.PenaltyMetropolis: moves,
        dp.TemperedMetropolis: {"beta": 1.0, "radius": 0.1, "covariance": None, "blocks": None, "steps_per_draw": 1},
        dp.PrivateHMC: {
            "clip_norm": None, "clamp": None, "n_leapfrog": 2, "step_size": None, "scale": None, "gradient_share": 0.4,
            "steps_per_draw": 1,
        },
        dp.SGLD: {**batch, "precondition": None},
        dp.SGHMC: {**batch, "friction": 0.1},
        dp.SGNHT: {**batch, "friction": 0.1},
        dp.SGFS: {**batch, "fisher_share": 0.1},
    }  # fmt: skip
    for step, settings in own.items():
        yield Call(step.__name__, step, lambda settings=settings: {"vars": None, **settings})
        yield Call(
            f"funded {step.__name__}", step, lambda: {"epsilon": 1.0, "delta": 1e-6, "chains": 1,
            "domain": dp.Domain(), "model": model(), "vars": None},
        )  # fmt: skip
        yield Call(
            f"{step.__name__} in a model",
            lambda step=step, settings=settings, **given: step(
                **{**settings, **given}, epsilon=1.0, delta=1e-6, model=model()
            ),
            lambda settings=settings: dict(settings),
            varied=tuple(name for name in settings if name != "scratch"),  # a text is a right one
        )
    yield Call("DataAugmentation.on", dp.DataAugmentation().on, lambda: {"private": model()})


def _metric_calls() -> Iterator[Call]:
    for metric in (dp.metrics.L1, dp.metrics.L2, dp.metrics.Hamming):
        yield Call(metric.__name__, metric, lambda: {"columns": {"y": 1.0}})
        yield Call(
            f"{metric.__name__} weights", lambda weight, metric=metric: metric({"y": weight}), lambda: {"weight": 1.0}
        )
    yield Call("Geographic", dp.metrics.Geographic, lambda: {"latitude": "lat", "longitude": "lon", "weight": 1.0})


def _bound_calls() -> Iterator[Call]:
    b = dp.theorems
    given = b.StochasticLipschitz(offset=0.1, rate=2.0, ratio=2.0)
    yield Call("StochasticLipschitz", b.StochasticLipschitz, lambda: {"offset": 0.1, "rate": 2.0, "ratio": 2.0})
    for function, right in (
        (b.approximate_sampling, {"epsilon": 1.0, "l1_distance": 0.1, "distance": 1.0}),
        (b.distinguishing_distance, {"lipschitz": 1.0, "samples": 2, "delta": 0.1, "papers": False}),
        (
            b.fourier_updates_error,
            {"epsilon": 1.0, "closure": 8, "parents": 2, "delta": 0.1, "increment": 1.0, "n_rows": 10},
        ),
        (
            b.laplace_updates_divergence,
            {"n_rows": 100, "epsilon": 1.0, "nodes": 2, "alpha": [2.0, 2.0], "beta": [2.0, 2.0], "delta": 0.1},
        ),
        (b.posterior_divergence, {"lipschitz": 1.0, "distance": 1.0}),
        (b.posterior_privacy, {"lipschitz": 1.0, "distance": 1.0, "samples": 1}),
        (b.query_loss, {"samples": 10, "delta": 0.1, "responses": 2}),
        (b.random_privacy, {"given": given, "lipschitz": 1.0}),
        (b.restricted_prior_loss, {"outside": 0.1, "samples": 10, "delta": 0.1, "responses": 2}),
        (b.stochastic_distinguishing_distance, {"given": given, "samples": 10, "delta": 0.1, "step": 0.1}),
        (b.stochastic_divergence, {"given": given, "distance": 1.0, "step": 0.1}),
        (b.stochastic_total_variation, {"given": given, "distance": 1.0, "step": 0.1}),
    ):
        yield Call(f"bounds.{function.__name__}", function, lambda right=right: dict(right))
    for name, right in FAMILIES.items():
        yield Call(f"families.{name}", getattr(b.families, name), lambda right=right: dict(right))


FAMILIES: dict[str, dict[str, Any]] = {
    "bayesian_network": {"smallest": 0.1, "children": [1, 2]},
    "beta_binomial": {"concentration": 2.0, "trials": 5},
    "exponential": {"rate": (0.1, 2.0), "bound": 3.0, "prior_rate": 1.0},
    "laplace": {"inverse_scale": (0.1, 2.0), "location": 0.0, "bound": 3.0, "prior_rate": 1.0},
    "multivariate_normal": {"eigenvalues": [1.0, 2.0], "mean_norm": 1.0, "row_norm": 2.0},
    "normal_precision": {"precision": (0.1, 2.0), "mean": 0.0, "bound": 3.0, "prior_rate": 1.0},
}


def calls() -> list[Call]:
    """Return every public call."""
    quick = (_trace_calls, _value_calls, _metric_calls, _bound_calls)
    slow = (_model_calls, _step_calls)
    return [call for part in quick for call in part()] + [replace(call, slow=True) for part in slow for call in part()]


__all__ = ["FEW", "WORDS", "WRONG", "Call", "calls", "planned", "trace"]
