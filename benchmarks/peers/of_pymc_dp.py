"""Methods of pymc_dp: noised gradients, released statistics, one posterior sample, a chain that starts at one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
from _job import Fit, Job, Peer
from _models import QUIET, coefficients, model_of

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.walk_rows import WalkRows
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.release.tables import ReleasePlan
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.funding import Claims
from pymc_dp.transforms.privatize import plan_for
from tests.paid import draw_release

KNOWN: dict[str, dict[str, Any]] = {
    "logistic": {"norms": {"x": 1.0}},
    "linear": {"bounds": {"x": (-1, 1), "y": (-1, 1)}},
}
"""What is public about a row."""
AUDITED = dp.Domain(norms={"x": 1.0}, bounds={"y": (0, 1)})
"""Of a linear regression: the rows by which the audit tells two tables apart are nearly the worst that it allows."""
STEPS_PER_DRAW, SMALL_STEPS = 20, 100
LONGEST = 8.0
"""Of a vector of coefficients that a posterior sample is drawn of."""


def paid(job: Job, x: np.ndarray, most: int | None = None, neighbours: str = "replace") -> dict[str, Any]:
    """Return budget and domain. Of a person at most `most` rows count, or all."""
    if job.kind == "persons":
        domain = _of_persons(len(x), most or x.shape[1])
    else:
        n_max = len(x) if neighbours == "add_remove" else None
        domain = dp.Domain(**KNOWN[job.kind], neighbours=neighbours, n_max=n_max)
    unit = None if domain.unit is None else domain.unit.column
    ledger = dp.Ledger(job.epsilon, job.delta, unit=unit, neighbours=domain.neighbours)
    return {"epsilon": job.epsilon, "delta": job.delta, "domain": domain, "ledger": ledger}


def _of_persons(count: int, most: int) -> dp.Domain:
    unit = dp.Unit("person", max_rows=most)
    return dp.Domain(norms={"x": 1.0}, neighbours="add_remove", n_max=count, unit=unit)


def gradients(
    job: Job, x: np.ndarray, y: np.ndarray, seed: int, *, trust_model: bool = False, **domain: Any
) -> np.ndarray:
    with model_of(job, x, y):
        settings = {"draws": 500, "tune": 500, "statistics": dp.Gradients(trust_model=trust_model)}
        found = dp.sample(**paid(job, x, **domain), **QUIET, **settings)
    return coefficients(job.kind, found["posterior"])


@functools.lru_cache(maxsize=2)
def _walk_of(epsilon: float, delta: float, x: bytes, y: bytes, n: int) -> Planned:
    found = interface_of(_model(x, y, n), dp.Domain(**KNOWN["logistic"]))
    return Planned.of(dp.Gradients(), found, Budget(epsilon, delta))


def walked(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """The slope and the curvature that the posterior is a function of: as `dp.sample` releases them."""
    plan = _walk_of(*_as_key(job, x, y))
    rows = WalkRows(inspection=plan.interface.inspection, size=plan.block)
    found = plan.walked(plan.charged(rows, Rehearsal(rows.relation)))
    return np.concatenate([found.slope, found.curvature.ravel()])


def statistics(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    with model_of(job, x, y):
        found = dp.sample(**paid(job, x), **QUIET, tune=500, draws=500, statistics=dp.Statistics(noise="gaussian"))
    return coefficients(job.kind, found["posterior"])


@functools.lru_cache(maxsize=2)
def _plan_of(epsilon: float, delta: float, x: bytes, y: bytes, n: int) -> ReleasePlan:
    settings = {"domain": AUDITED, "statistics": dp.Statistics(noise="gaussian")}
    return plan_for(_model(x, y, n, "linear"), epsilon=epsilon, delta=delta, **settings)[1]


def released(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """The sums of a linear regression of these rows: all that its posterior sees of them, as `dp.sample` draws them."""
    with opened_gate():
        drawn = draw_release(_plan_of(*_as_key(job, x, y)))
    return np.concatenate([np.ravel(found) for found in drawn.values.values()])


def _in_a_ball(job: Job, x: np.ndarray, y: np.ndarray) -> pm.Model:
    return dp.truncate(model_of(job, x, y), norms={"w": LONGEST})


def one_sample(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    with _in_a_ball(job, x, y):
        found = dp.sample(**paid(job, x), step=dp.OPS(assume_converged=True), progressbar=False)
    return coefficients(job.kind, found["posterior"])


def chain(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """The last half of a chain of n steps in batches of √n rows, from a posterior sample where there is one."""
    n, sampled = len(y), job.kind == "logistic"
    start = {"start": dp.OPS(assume_converged=True)} if sampled else {}
    step = dp.SGNHT(batch_size=round(np.sqrt(n)), clip_norm=1.0, steps_per_draw=STEPS_PER_DRAW, **start)
    with _in_a_ball(job, x, y) if sampled else model_of(job, x, y):
        found = dp.sample(n // STEPS_PER_DRAW, tune=0, chains=1, cores=1, **paid(job, x), step=step, progressbar=False)
    draws = coefficients(job.kind, found["posterior"])
    return draws[len(draws) // 2 :]


def _as_key(job: Job, x: np.ndarray, y: np.ndarray) -> tuple[float, float, bytes, bytes, int]:
    rows = np.ascontiguousarray(x, dtype=float).tobytes()
    return job.epsilon, job.delta, rows, y.astype(np.int64).tobytes(), len(y)


def _model(x: bytes, y: bytes, n: int, kind: str = "logistic") -> pm.Model:
    rows = np.frombuffer(x).reshape(n, -1)
    job = Job(kind=kind, x=rows, y=np.empty(0), epsilon=1.0, delta=0.0)
    return model_of(job, rows, np.frombuffer(y, dtype=np.int64))


@functools.lru_cache(maxsize=2)
def _step_of(make: Callable[..., Any], epsilon: float, delta: float, x: bytes, y: bytes, n: int) -> tuple[Any, Any]:
    """A step with a budget of its own and the point where it starts, compiled once for each table."""
    model = _model(x, y, n)
    with dp.truncate(model, {"w": (-LONGEST, LONGEST)}) if make is _small_draw else model as model:
        return make(n, epsilon=epsilon, delta=delta, domain=dp.Domain(**KNOWN["logistic"])), model.initial_point()


def _one_step(make: Callable[..., Any]) -> Fit:
    """One state of a step that is not compiled anew; its `Claims` are renewed, as if each were the only run."""

    def fit(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
        step, start = _step_of(make, *_as_key(job, x, y))
        step._binding = replace(step.binding, claims=Claims(1))
        step.setup_chain(np.random.default_rng(), 0, 1)
        (state,) = step.step(dict(start))[0].values()  # of coefficients within bounds it is their logit
        return state

    return fit


def _small_chain(n: int, **funding: Any) -> dp.SGNHT:
    return dp.SGNHT(batch_size=n // 4, clip_norm=1.0, steps_per_draw=SMALL_STEPS, **funding)


def _small_draw(n: int, **funding: Any) -> dp.OPS:
    return dp.OPS(**funding)


def naive_bayes(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Normal columns given the answer; predictions averaged over the posterior."""
    d = x.shape[1]
    with pm.Model():
        share = pm.Beta("share", 1, 1)
        answer = pm.Bernoulli("answer", share, observed=y.astype(int))
        for j in range(d):
            mean, sd = pm.Normal(f"mean{j}", 0, 0.5, shape=2), pm.HalfNormal(f"sd{j}", 0.5, shape=2)
            pm.Normal(f"x{j}", mean[answer], sd[answer], observed=x[:, j])
        domain = dp.Domain(bounds={f"x{j}": (-1, 1) for j in range(d)})
        noise = dp.Statistics(noise="gaussian") if job.delta else dp.Statistics()
        settings = {"domain": domain, "statistics": noise, "tune": 500, "draws": 500, **QUIET}
        ledger = dp.Ledger(job.epsilon, job.delta)
        found = dp.sample(epsilon=job.epsilon, delta=job.delta, ledger=ledger, **settings)["posterior"]
    p = found["share"].values[0][:, None]
    odds = np.log(p) - np.log1p(-p) + np.zeros(len(job.x_test))
    for j in range(d):
        mean, sd = (found[f"{name}{j}"].values[0][:, :, None] for name in ("mean", "sd"))
        log_p = -(((job.x_test[:, j] - mean) / sd) ** 2) / 2 - np.log(sd)
        odds += log_p[:, 1] - log_p[:, 0]
    return (1 / (1 + np.exp(-odds))).mean(axis=0)[None]


ADDED, TRUSTING = {"neighbours": "add_remove"}, {"trust_model": True}


def _regressions(**settings: Any) -> dict[str, Fit]:
    return dict.fromkeys(("logistic", "linear"), functools.partial(gradients, **settings))


PEERS = (
    Peer(
        name="pymc_dp, noised gradients",
        neighbours="replace",
        fits={**_regressions(), "persons": gradients},
        audited={"logistic": walked},
        packages=("pymc-dp", "pymc"),
        intervals=True,
    ),
    Peer(
        name="pymc_dp, noised gradients, add or remove",
        neighbours="add or remove",
        fits=_regressions(**ADDED),
        intervals=True,
    ),
    Peer(
        name="pymc_dp, noised gradients, trust_model",
        neighbours="replace",
        fits=_regressions(**TRUSTING),
        intervals=True,
    ),
    Peer(
        name="pymc_dp, noised gradients, trust_model, add or remove",
        neighbours="add or remove",
        fits=_regressions(**ADDED, **TRUSTING),
        intervals=True,
    ),
    Peer(
        name="pymc_dp, noised gradients, max_rows=2",
        neighbours="add or remove",
        fits={"persons": functools.partial(gradients, most=2)},
        intervals=True,
    ),
    Peer(
        name="pymc_dp, released statistics",
        neighbours="replace",
        fits={"linear": statistics, "naive_bayes": naive_bayes},
        audited={"logistic": released},
        intervals=True,
    ),
    Peer(
        name="pymc_dp, OPS, one draw",
        neighbours="replace",
        fits={"logistic": one_sample},
        audited={"logistic": _one_step(_small_draw)},
    ),
    Peer(
        name="pymc_dp, SGNHT from OPS",
        neighbours="replace",
        fits={"logistic": chain, "linear": chain},
        audited={"logistic": _one_step(_small_chain)},
        intervals=True,
    ),
)
