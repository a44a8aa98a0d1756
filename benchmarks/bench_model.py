"""The private model: what a density, a sampler run and an import cost beside their counterparts without it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import warnings
from unittest import mock

import numpy as np
import pymc as pm
from _measure import Report, in_turn
from pymc.blocking import DictToArrayBijection

import pymc_dp as dp

N_GROUPS = 5
OPTIONS = {"chains": 2, "cores": 1, "tune": 300, "draws": 300, "progressbar": False, "random_seed": 1}
QUIET = {"compute_convergence_checks": False, "quiet": True}


def survey(n_rows: int, seed: int = 1) -> pm.Model:
    """Bernoulli rows with one probability for each of five groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(N_GROUPS, size=n_rows).astype(np.int8)
    affair = (rng.random(n_rows) < np.array([0.7, 0.6, 0.5, 0.35, 0.2])[group]).astype(np.int8)
    with pm.Model(coords={"group": range(N_GROUPS)}) as model:
        index = pm.Data("index", group)
        p = pm.Beta("p", 1, 1, dims="group")
        pm.Bernoulli("y", p[index], observed=affair)
    return model


def gradient(model: pm.Model):
    """Log density and its gradient at the initial point, as NUTS calls it; and the time to compile it."""
    start = time.perf_counter()
    function = model.logp_dlogp_function(ravel_inputs=True)
    function.set_extra_values({})
    point = DictToArrayBijection.map(model.initial_point())
    value, slope = function(point)
    seconds = time.perf_counter() - start
    assert np.isfinite(value) and np.isfinite(slope).all()
    return (lambda: function(point)), seconds


def private(n_rows: int, **statistics_arguments: bool) -> pm.Model:
    return dp.privatize(survey(n_rows), epsilon=1.0, statistics=dp.Statistics(**statistics_arguments))


def bench_gradient() -> bool:
    (small, _), (large, _) = gradient(private(1_000)), gradient(private(10_000_000))
    report = Report("Log density and gradient of the private model, Bernoulli in 5 private groups")
    times = in_turn({"1e3": small, "1e7": large}, repeats=15, calls=200)
    median, least = times.ratio("1e7", "1e3")
    report.add(
        f"n = 1e7 over n = 1e3: {1e6 * times.median('1e7'):.0f} / {1e6 * times.median('1e3'):.0f} µs",
        f"{median:.2f} (least {least:.2f})",
        "<= 1.1",
        met=min(median, least) <= 1.1,
    )
    return report.finish()


def bench_noise_aware() -> bool:
    aware, plugin = private(1_000), private(1_000, noise_aware=False)
    _, first = gradient(aware)
    (call_plugin, second), (call_aware, third) = gradient(plugin), gradient(aware)
    times = in_turn({"aware": call_aware, "plug-in": call_plugin}, repeats=15, calls=200)
    report = Report("Noise-aware over plug-in inference, the same model")
    median, least = times.ratio("aware", "plug-in")
    report.add(
        f"gradient: {1e6 * times.median('aware'):.0f} / {1e6 * times.median('plug-in'):.0f} µs",
        f"{median:.1f} (least {least:.1f})",
    )
    report.add(f"time to compile: {third:.1f} / {second:.1f} s (first of all {first:.1f} s)", f"{third / second:.1f}")
    draws = in_turn(
        {
            "aware": lambda: pm.sample(model=aware, **OPTIONS, **QUIET),
            "plug-in": lambda: pm.sample(model=plugin, **OPTIONS, **QUIET),
        },
        repeats=3,
    )
    median, least = draws.ratio("aware", "plug-in")
    report.add(
        f"pm.sample, 2 x 600 draws: {draws.median('aware'):.2f} / {draws.median('plug-in'):.2f} s",
        f"{median:.2f} (least {least:.2f})",
    )
    return report.finish()


def bench_sample() -> bool:
    """Runs of a sampler vary by more than the target, so pm.sample is replaced by its result, known beforehand."""
    model, ledger = survey(6366), dp.Ledger(epsilon=1000.0)
    with dp.testing.insecure_randomness(1):
        trace = pm.sample(model=dp.privatize(model, epsilon=1.0, ledger=ledger), **OPTIONS, **QUIET)

    def rest() -> None:
        with dp.testing.insecure_randomness(1), mock.patch.object(pm, "sample", return_value=trace):
            dp.sample(epsilon=1.0, model=model, ledger=ledger, **QUIET, **OPTIONS)

    times = in_turn({"rest": rest}, repeats=25)
    report = Report("What dp.sample adds to pm.sample: inspection, release, model, scrubbing")
    report.add(
        "dp.sample less pm.sample of the private model",
        f"{times.median('rest'):.3f} s (least {times.least('rest'):.3f})",
        "<= 0.2 s",
        met=times.median("rest") <= 0.2,
    )
    return report.finish()


def bench_import() -> bool:
    program = "import time, pymc; start = time.perf_counter(); import pymc_dp; print(time.perf_counter() - start)"
    seconds = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
        for _ in range(6)
    ][1:]
    report = Report("import pymc_dp, after import pymc")
    median = statistics.median(seconds)
    report.add("seconds", f"{median:.3f} (least {min(seconds):.3f})", "< 0.3", met=min(seconds) < 0.3)
    return report.finish()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(not all([bench_import(), bench_gradient(), bench_noise_aware(), bench_sample()]))
