"""Log density of a private model and its gradient, accounting for the noise, beside plain PyMC or the plug-in form."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from bench_model import gradient
from bench_noise_aware import FORMS, N_ROWS, cells, levels, pairs, private, tables

import pymc_dp as dp

# Every form is a release of the same made-up rows.
pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")

GROUPS = 1000
SAMPLED = {"draws": 300, "tune": 300, "chains": 1, "cores": 1, "progressbar": False, "random_seed": 1}
QUIET = {"compute_convergence_checks": False, "quiet": True}


def exact_counts(count: int) -> pm.Model:
    """The same as `cells`, on exact counts."""
    rng = np.random.default_rng(2)
    group = rng.integers(count, size=N_ROWS)
    sizes = np.bincount(group, minlength=count)
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2, shape=count)
        pm.Binomial("y", sizes, p, observed=rng.binomial(sizes, 0.5))
    return model


def logistic(*, exact: bool) -> pm.Model:
    """A yes or no in groups around a common mean: its rows, or their counts."""
    rng = np.random.default_rng(3)
    group = rng.integers(GROUPS, size=N_ROWS)
    answer = rng.random(N_ROWS) < 1 / (1 + np.exp(0.3 - 0.7 * rng.normal(size=GROUPS)[group]))
    with pm.Model() as model:
        logit = pm.Normal("mu", 0, 1) + pm.HalfNormal("sd", 1) * pm.Normal("z", shape=GROUPS)
        if exact:
            sizes, yes = np.bincount(group, minlength=GROUPS), np.bincount(group, answer, GROUPS)
            pm.Binomial("y", sizes, logit_p=logit, observed=yes.astype(np.int64))
        else:
            pm.Bernoulli("y", logit_p=logit[pm.Data("group", group)], observed=answer.astype(np.int64))
    return model


@pytest.mark.benchmark(group="gradient, five levels")
@pytest.mark.parametrize("form", ["plug-in", "laplace", "gaussian"])
def test_gradient(benchmark, form):
    timed(benchmark, private(levels(), form))


@pytest.mark.parametrize("form", ["exact", "laplace", "gaussian"])
@pytest.mark.parametrize("count", [5, 30, 200, 1000, 10_000])
def test_gradient_of_two_levels(benchmark, count, form):
    benchmark.group = f"gradient, a yes or no in {count} cells of private size"
    timed(benchmark, exact_counts(count) if form == "exact" else private(cells(count), form))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [5, 30, 200, 1000])
@pytest.mark.parametrize(("what", "build"), [("five levels", tables), ("a mean and a spread", pairs)])
def test_gradient_of_cells(benchmark, what, build, count, form):
    benchmark.group = f"gradient, {what} in {count} cells of private size"
    timed(benchmark, private(build(count), form))


@pytest.mark.benchmark(group=f"300 draws of a hierarchical logistic model, {GROUPS} cells")
@pytest.mark.parametrize("form", ["exact", "laplace", "gaussian"])
def test_draws_of_a_hierarchical_logistic_model(benchmark, form):
    def fit() -> None:
        if form == "exact":
            pm.sample(model=logistic(exact=True), **SAMPLED, **QUIET)
        else:
            statistics, delta = FORMS[form]
            rows = logistic(exact=False)
            dp.sample(model=rows, epsilon=1.0, delta=delta, statistics=statistics, **QUIET, **SAMPLED)

    benchmark.pedantic(fit, rounds=3, warmup_rounds=1)


def timed(benchmark, model: pm.Model) -> None:
    call = gradient(model)[0]
    benchmark(call)
    assert np.isfinite(np.concatenate([np.ravel(part) for part in call()])).all()
