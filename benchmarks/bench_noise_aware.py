"""What accounting for the noise costs beside the plug-in form, under both noises, by the number of statistics."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import pymc as pm
from _measure import Report, in_turn
from bench_model import gradient

import pymc_dp as dp

N_ROWS = 20_000
FORMS = {
    "plug-in": (dp.Statistics(noise_aware=False), 0.0),
    "laplace": (dp.Statistics(), 0.0),
    "gaussian": (dp.Statistics(noise="gaussian"), 1e-6),
}
OPTIONS = {"chains": 2, "cores": 1, "tune": 500, "draws": 500, "progressbar": False, "random_seed": 1}
QUIET = {"compute_convergence_checks": False, "quiet": True}


def levels(count: int = 5) -> pm.Model:
    """One table of counts."""
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(count))
        pm.Categorical("y", p, observed=rng.choice(count, N_ROWS, p=rng.dirichlet(np.ones(count))))
    return model


def cells(count: int) -> pm.Model:
    """A yes or no in groups of private size: two counts for each."""
    rng = np.random.default_rng(2)
    group = rng.integers(count, size=N_ROWS)
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2, shape=count)
        pm.Bernoulli("y", p[pm.Data("group", group)], observed=rng.integers(2, size=N_ROWS))
    return model


def tables(count: int) -> pm.Model:
    """Five levels in groups of private size: five counts for each."""
    rng = np.random.default_rng(1)
    group = rng.integers(count, size=N_ROWS)
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(5), shape=(count, 5))
        pm.Categorical("y", p[pm.Data("group", group)], observed=rng.integers(5, size=N_ROWS))
    return model


def pairs(count: int) -> pm.Model:
    """A normal value of unknown mean and spread in groups of private size: a size and two sums for each."""
    rng = np.random.default_rng(3)
    group = rng.integers(count, size=N_ROWS)
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 2, shape=count), pm.HalfNormal("sigma", 1, shape=count)
        index = pm.Data("group", group)
        pm.Normal("y", mu[index], sigma[index], observed=rng.normal(size=N_ROWS))
    return model


def private(model: pm.Model, form: str, epsilon: float = 1.0) -> pm.Model:
    statistics, delta = FORMS[form]
    domain = dp.Domain(bounds={"y": (-4, 4)}) if "mu" in model.named_vars else None
    return dp.privatize(model, epsilon=epsilon, delta=delta, domain=domain, statistics=statistics)


def bench_levels() -> bool:
    report = Report("Five levels, 20,000 rows, ε = 1: noise-aware over plug-in")
    models = {form: private(levels(), form) for form in FORMS}
    compiled = in_turn({form: lambda model=model: gradient(model) for form, model in models.items()}, repeats=3)
    divergences: dict[str, int] = {}
    sampled = in_turn({form: sampler(form, model, divergences) for form, model in models.items()}, repeats=5)
    empty = {form: seconds_with_empty_cache(form) for form in FORMS}
    for form in ("laplace", "gaussian"):
        median, least = sampled.ratio(form, "plug-in")
        times = f"{sampled.median(form):.2f} / {sampled.median('plug-in'):.2f} s"
        report.at_most(f"{form}: pm.sample, 2 x 1000 draws, {times} (least {least:.1f})", median, 6)
        report.at_most(f"{form}: divergences", divergences[form], 0, digits=0)
        report.at_most(f"{form}: compile, {compiled.median(form):.1f} s", compiled.ratio(form, "plug-in")[0], 2)
        report.at_most(f"{form}: compile, empty cache, {empty[form]:.0f} s", empty[form] / empty["plug-in"], 2)
    return report.finish()


def sampler(form: str, model: pm.Model, divergences: dict[str, int]) -> Callable[[], None]:
    def run() -> None:
        trace = pm.sample(model=model, **OPTIONS, **QUIET)
        divergences[form] = divergences.get(form, 0) + int(trace["sample_stats"]["diverging"].sum())

    return run


def seconds_with_empty_cache(form: str) -> float:
    """In a process of its own, nothing compiled before but a small model."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={folder}", "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, __file__, form]
        return float(subprocess.check_output(command, env=environment, text=True).split()[-1])


def one_compile(form: str) -> None:
    model = private(levels(), form)
    with pm.Model() as first:
        pm.Beta("p", 1, 1)
    gradient(first)
    print(gradient(model)[1])


def bench_sizes(builders: Mapping[str, Callable[[int], pm.Model]], counts: tuple[int, ...]) -> bool:
    """Gradients only: samplers of many parameters differ in the number of their steps."""
    report = Report("Gradient of the private model, ε = 1: µs, and noise-aware over plug-in")
    for name, build in builders.items():
        for count in counts:
            models = {form: gradient(private(build(count), form))[0] for form in FORMS}
            times = in_turn(models, repeats=9, calls=max(5, 2000 // count))
            for form in ("laplace", "gaussian"):
                median, least = times.ratio(form, "plug-in")
                micro = f"{1e6 * times.median(form):.0f} / {1e6 * times.median('plug-in'):.0f} µs"
                report.add(f"{name}, {count} cells, {form}: {micro}", f"{median:.1f} (least {least:.1f})")
    return report.finish()


def main() -> bool:
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        one_compile(sys.argv[1])
        return True
    return all(
        [bench_levels(), bench_sizes({"counts": cells, "five counts": tables, "moments": pairs}, (5, 30, 200, 1000))]
    )


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
