"""Private samplers, each on a small model of the same table, with what it is charged and the exact law of its draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import stats

import pymc_dp as dp
from tests.zoo.kind import Kind, Relation, Table, model_of, people

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1}
SAMPLERS: dict[str, Sampler] = {}
"""Every sampler, by its name."""
Values = Mapping[str, np.ndarray]
Call = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Law:
    """Prior and likelihood written out in NumPy, over a box of the parameters.

    Attributes
    ----------
    axes : mapping of str to pair
        Ends of each scalar that the law is looked at on; those of a vector are named ``b[0]``.
    prior, likelihood : callable
        Logarithms up to a constant, of arrays of parameters that broadcast; the likelihood is of all rows of a table.
    """

    axes: Mapping[str, tuple[float, float]]
    prior: Callable[[Values], np.ndarray]
    likelihood: Callable[[Table, Values], np.ndarray]

    def cdfs(self, table: Table, power: float, prior_power: float = 1.0) -> dict[str, Callable[[Any], Any]]:
        """Return the distribution function of each scalar under the tempered posterior, by quadrature on a grid."""
        count = 4001 if len(self.axes) == 1 else 301
        at = {name: np.linspace(*ends, count) for name, ends in self.axes.items()}
        values = dict(zip(at, np.meshgrid(*at.values(), indexing="ij"), strict=True))
        logs = prior_power * self.prior(values) + power * self.likelihood(table, values)
        mass = np.exp(logs - logs.max())
        found = {}
        for place, (name, grid) in enumerate(at.items()):
            one = mass.sum(axis=tuple(axis for axis in range(len(at)) if axis != place))
            below = np.concatenate([[0.0], np.cumsum((one[1:] + one[:-1]) / 2)])
            found[name] = lambda x, grid=grid, below=below / below[-1]: np.interp(x, grid, below)
        return found


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """A sampler with a model.

    Attributes
    ----------
    name, about : str
    kind : Kind
        The model, its table, and what its user declares.
    call : callable
        Takes draws, model, domain, ledger, epsilon and delta; returns a trace.
    relation : str
    epsilon, delta : float
    guarantee : str
    events : tuple of str
        Kinds of the events that are charged, without those that only compose.
    law : Law or None
        Of the draws, if the model has one or two parameters.
    draws : int
        Of the tests that do not look at laws.
    refused : str
        Of the error, where the sampler does not take the model; empty where it does.
    """

    name: str
    about: str
    kind: Kind
    call: Call
    relation: Relation = "replace"
    epsilon: float = 1.0
    delta: float = 0.0
    guarantee: str = "exact"
    events: tuple[str, ...] = ()
    law: Law | None = None
    draws: int = 3
    refused: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)

    def domain(self) -> dp.Domain:
        """Return what the user of the model declares."""
        return self.kind.domain(self.relation)

    def ledger(self, epsilon: float | None = None) -> dp.Ledger:
        """Return a new ledger with enough room, or with a given one."""
        return dp.Ledger(self.epsilon if epsilon is None else epsilon, self.delta or 0.0, neighbours=self.relation)

    def sample(self, table: Table | None = None, **given: Any) -> Any:
        """Run it on a table, by itself its own."""
        asked = {
            "draws": self.draws,
            "model": self.kind.build(self.kind.table() if table is None else table),
            "domain": self.domain(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            **self.given,
            **given,
        }
        if "ledger" not in asked:
            asked["ledger"] = dp.Ledger(asked["epsilon"], asked["delta"], neighbours=self.relation)
        return self.call(**asked)


def stepping(make: Callable[[], Any]) -> Call:
    """Return a call of `dp.sample` with a step, or several, that `make` makes anew."""

    def call(draws: int, **given: Any) -> Any:
        return dp.sample(draws, step=make(), **{"tune": 0, "chains": 1, **QUIET, **given})

    return call


def mode(draws: int, **given: Any) -> Any:
    """Call `dp.find_map`."""
    given.pop("random_seed", None)
    return dp.find_map(progressbar=False, **given)


def annealing(draws: int, **given: Any) -> Any:
    """Call `dp.sample_ais`, by few particles."""
    return dp.sample_ais(draws, progressbar=False, **{"particles": 4, "temperatures": 3, **given})


# --- models: each once ------------------------------------------------------------------------------------------------

MODELS: dict[str, tuple[Kind, Law | None]] = {}


def model(bounded: str = "", *, public: str = "", law: Law | None = None, **declared: Any) -> Callable[[Any], Any]:
    """Enter the function below as a model of samplers; names are separated by spaces."""

    def enter(build: Callable[[Table], None]) -> Callable[[Table], None]:
        assert build.__doc__
        found = Kind(
            name=build.__name__,
            about=build.__doc__,
            build=model_of(build),
            table=people,
            bounded=tuple(bounded.split()),
            public=tuple(public.split()),
            declared=declared,
        )
        MODELS[build.__name__] = found, law
        return build

    return enter


def _flat(values: Values) -> np.ndarray:
    return np.zeros(np.shape(next(iter(values.values()))))


def _rows(column: np.ndarray, values: Values) -> np.ndarray:
    """Return a column with axes for the parameters after that of the rows."""
    return column.reshape(-1, *(1,) * np.ndim(next(iter(values.values()))))


SHARE = Law(
    axes={"p": (0.1, 0.9)},
    prior=lambda v: stats.beta.logpdf(v["p"], 2, 3),
    likelihood=lambda t, v: t["yes"].sum() * np.log(v["p"]) + (1 - t["yes"]).sum() * np.log1p(-v["p"]),
)


@model(law=SHARE)
def share(table: Table) -> None:
    """A share of yes."""
    pm.Bernoulli("seen", pm.Truncated("p", pm.Beta.dist(2.0, 3.0), 0.1, 0.9), observed=table["yes"])


@model(
    law=Law(axes={"p": (1e-6, 1 - 1e-6)}, prior=SHARE.prior, likelihood=SHARE.likelihood),
)
def open_share(table: Table) -> None:
    """A share of yes between 0 and 1."""
    pm.Bernoulli("seen", pm.Beta("p", 2.0, 3.0), observed=table["yes"])


@model("h")
def shares(table: Table) -> None:
    """A share of yes in each of four groups, which are private."""
    p = pm.Uniform("p", 0.1, 0.9, shape=4)
    pm.Bernoulli("seen", p[pm.Data("h", table["h"])], observed=table["yes"])


@model(public="h")
def shares_of_public_groups(table: Table) -> None:
    """A share of yes in each of four groups, which are public."""
    p = pm.Uniform("p", 0.1, 0.9, shape=4)
    pm.Bernoulli("seen", p[pm.Data("h", table["h"])], observed=table["yes"])


@model(
    "count",
    law=Law(
        axes={"rate": (0.5, 8.0)},
        prior=lambda v: stats.gamma.logpdf(v["rate"], 2.0),
        likelihood=lambda t, v: stats.poisson.logpmf(_rows(np.clip(t["count"], 0, 9), v), v["rate"]).sum(axis=0),
    ),
)
def rate(table: Table) -> None:
    """A rate of counts."""
    pm.Poisson("count", pm.Truncated("rate", pm.Gamma.dist(2.0, 1.0), 0.5, 8.0), observed=table["count"])


@model(
    "y",
    law=Law(
        axes={"mu": (-1.0, 1.5)},
        prior=lambda v: stats.norm.logpdf(v["mu"], 0.5, 1.0),
        likelihood=lambda t, v: stats.norm.logpdf(_rows(t["y"], v), v["mu"], 1.0).sum(axis=0),
    ),
)
def mean(table: Table) -> None:
    """A mean of numbers."""
    pm.Normal("y", pm.TruncatedNormal("mu", 0.5, 1.0, lower=-1.0, upper=1.5), 1.0, observed=table["y"])


@model(
    "y",
    law=Law(
        axes={"mu": (-6.0, 6.0)},
        prior=lambda v: stats.norm.logpdf(v["mu"], 0.5, 1.0),
        likelihood=lambda t, v: stats.norm.logpdf(_rows(t["y"], v), v["mu"], 1.0).sum(axis=0),
    ),
)
def open_mean(table: Table) -> None:
    """A mean of numbers, without bounds."""
    pm.Normal("y", pm.Normal("mu", 0.5, 1.0), 1.0, observed=table["y"])


@model(
    "y",
    law=Law(
        axes={"mu": (-1.0, 1.0), "sd": (0.5, 2.0)},
        prior=_flat,
        likelihood=lambda t, v: stats.norm.logpdf(_rows(t["y"], v), v["mu"], v["sd"]).sum(axis=0),
    ),
)
def mean_and_spread(table: Table) -> None:
    """A mean and a spread of numbers."""
    pm.Normal("y", pm.Uniform("mu", -1, 1), pm.Uniform("sd", 0.5, 2), observed=table["y"])


@model(
    "y",
    law=Law(
        axes={"mu": (-1.0, 1.0)},
        prior=_flat,
        likelihood=lambda t, v: stats.t.logpdf(_rows(t["y"], v), 4, v["mu"], 0.5).sum(axis=0),
    ),
)
def robust(table: Table) -> None:
    """A location under heavy tails: no sums of rows are enough."""
    pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -1, 1), sigma=0.5, observed=table["y"])


@model("z")
def logistic(table: Table) -> None:
    """A logistic regression of one coefficient, without bounds."""
    pm.Bernoulli("seen", logit_p=pm.Normal("b", 0, 1.5) * pm.Data("z", table["z"]), observed=table["yes"])


@model(
    "x z",
    law=Law(
        axes={"b[0]": (-6.0, 6.0), "b[1]": (-6.0, 6.0)},
        prior=lambda v: stats.norm.logpdf(v["b[0]"]) + stats.norm.logpdf(v["b[1]"]),
        likelihood=lambda t, v: sum(
            -np.logaddexp(0, (1 - 2 * yes) * (v["b[0]"] * x + v["b[1]"] * z))
            for x, z, yes in zip(t["x"], t["z"], t["yes"], strict=True)
        ),
    ),
)
def two_coefficients(table: Table) -> None:
    """A logistic regression of two coefficients, without bounds."""
    b = pm.Normal("b", 0, 1, shape=2)
    at = b[0] * pm.Data("x", table["x"]) + b[1] * pm.Data("z", table["z"])
    pm.Bernoulli("seen", logit_p=at, observed=table["yes"])


@model(
    "z count",
    law=Law(
        axes={"b": (-1.0, 1.0)},
        prior=lambda v: stats.norm.logpdf(v["b"]),
        likelihood=lambda t, v: stats.poisson.logpmf(_rows(t["count"], v), np.exp(1 + v["b"] * _rows(t["z"], v))).sum(
            axis=0
        ),
    ),
)
def poisson_regression(table: Table) -> None:
    """A Poisson regression of one coefficient within bounds."""
    b = pm.TruncatedNormal("b", 0, 1, lower=-1, upper=1)
    pm.Poisson("count", pt.exp(1 + b * pm.Data("z", table["z"])), observed=table["count"])


@model()
def levels(table: Table) -> None:
    """Probabilities of three levels, each at least 0.05."""
    pm.Categorical("chosen", dp.TruncatedDirichlet("p", np.ones(3), 0.05), observed=table["choice"])


@model("y x z")
def ball(table: Table) -> None:
    """Two coefficients of a linear regression within a ball."""
    w = pm.Normal("w", 0.0, 1.0, shape=2)
    covariates = pt.stack([pm.Data("x", table["x"]), pm.Data("z", table["z"])], axis=1)
    pm.Normal("y", covariates @ w, 1.0, observed=table["y"])


@model(
    law=Law(
        axes={"p": (0.1, 0.9), "q[0]": (0.1, 0.9), "q[1]": (0.1, 0.9)},
        prior=_flat,
        likelihood=lambda t, v: sum(
            np.log(v["p"] if first else 1 - v["p"])
            + np.log(v[f"q[{int(first)}]"] if second else 1 - v[f"q[{int(first)}]"])
            for first, second in zip(t["yes"], t["choice"] > 0, strict=True)
        ),
    ),
)
def network(table: Table) -> None:
    """A share, and another outcome whose share depends on the first one."""
    first = pm.Bernoulli("seen", pm.Uniform("p", 0.1, 0.9), observed=table["yes"])
    pm.Bernoulli("chosen", pm.Uniform("q", 0.1, 0.9, shape=2)[first], observed=(table["choice"] > 0).astype(int))


@model("y")
def mixture(table: Table) -> None:
    """A class of every row, and a mean of every class."""
    z = pm.Categorical("z", pm.Dirichlet("w", np.ones(2)), shape=len(table["y"]))
    pm.Normal("y", pm.Uniform("means", [-2.0, 0.0], [0.0, 2.0])[z], 1.0, observed=table["y"])


@model("y", public="h")
def hierarchy(table: Table) -> None:
    """Means of four public groups about a mean of their own, with an unknown spread."""
    means = pm.TruncatedNormal("means", pm.Normal("centre"), pm.HalfNormal("spread"), lower=-2, upper=2, shape=4)
    pm.Normal("y", means[pm.Data("h", table["h"])], pm.Uniform("sd", 0.5, 2.0), observed=table["y"])


@model(public="month h")
def hidden_states(table: Table) -> None:
    """States of regions over time, which nobody sees, and an outcome whose share depends on them."""
    pm.modelcontext(None).add_coords({"region": range(4), "quarter": range(12)})
    start, moves = pm.Dirichlet("start", np.ones(2)), pm.Dirichlet("moves", np.ones((2, 2)))
    states = dp.markov.MarkovStates("states", start, moves, dims=("region", "quarter"))
    cell = states[pm.Data("h", table["h"]), pm.Data("month", table["month"])]
    profile = dp.TruncatedDirichlet("profile", np.array([[3.0, 1.0], [1.0, 2.0]]), 0.1)
    pm.Categorical("seen", profile[cell], observed=table["yes"])


@model("y")
def number_of_components(table: Table) -> None:
    """A discrete parameter that chooses between two spreads."""
    which = pm.Bernoulli("which", 0.5)
    pm.Normal("y", pm.Uniform("mu", -1, 1), pt.as_tensor(np.array([0.5, 1.5]))[which], observed=table["y"])


# --- samplers ---------------------------------------------------------------------------------------------------------

SMALL_DELTA = {"epsilon": 2.0, "delta": 1e-6}
ADDED = {"relation": "add_remove"}
RANGE, BATCHES = ("bounded_range",), ("subsampled_gaussian",)


def enter(name: str, about: str, of: str, call: Call, **given: Any) -> None:
    """Enter a sampler of a model."""
    kind, law = MODELS[of]
    if "law" in given:
        law = given.pop("law")
    assert name not in SAMPLERS
    SAMPLERS[name] = Sampler(name=name, about=about, kind=kind, call=call, law=law, **given)


def _ops() -> None:
    ops = stepping(dp.OPS)
    for name, of, given in [
        ("OPS", "share", {}),
        ("OPS, rows come or go", "share", ADDED),
        ("OPS, groups", "shares", {}),
        ("OPS, public groups", "shares_of_public_groups", {}),
        ("OPS, counts", "rate", {}),
        ("OPS, numbers", "mean", {}),
        ("OPS, numbers come or go", "mean", {**ADDED, **SMALL_DELTA}),
        ("OPS, levels", "levels", {}),
        ("OPS, network", "network", {}),
        ("OPS, two scalars", "mean_and_spread", {}),
        ("OPS, rows one by one", "robust", {}),
        ("OPS, rows one by one come or go", "robust", ADDED),
        ("OPS, a coefficient", "poisson_regression", {}),
    ]:
        enter(name, "One exact draw of the tempered posterior.", of, ops, events=RANGE, **given)
    enter("OPS, papers", "The papers' rule: twice the largest log-likelihood, and a tempered prior.", "share",
          stepping(lambda: dp.OPS(papers=True)), events=("pure",))  # fmt: skip
    enter("OPS, hidden states", "A last state of a chain that the caller takes for converged.", "hidden_states",
          stepping(lambda: dp.OPS(assume_converged=True, scans=20)), events=RANGE, guarantee="asymptotic",
          draws=2)  # fmt: skip
    enter("OPS, without bounds", "One row can move its likelihood by any amount.", "logistic", ops,
          refused="dp.truncate(model, {'b': (low, high)})")  # fmt: skip
    enter("OPS, hierarchy", "A hierarchy has no exact draw.", "hierarchy", ops, refused="TemperedGibbs")


def _gibbs() -> None:
    gibbs = stepping(dp.TemperedGibbs)
    for name, of, given in [
        ("Gibbs", "share", {}),
        ("Gibbs, rows come or go", "share", ADDED),
        ("Gibbs, groups", "shares", {}),
        ("Gibbs, counts", "rate", {}),
        ("Gibbs, numbers", "mean_and_spread", {"events": ("pure",)}),
        ("Gibbs, rows one by one", "robust", SMALL_DELTA),
        ("Gibbs, levels", "levels", {}),
        ("Gibbs, classes of rows", "mixture", {}),
        ("Gibbs, hierarchy", "hierarchy", {"events": ("pure",)}),
        ("Gibbs, hidden states", "hidden_states", {}),
        ("Gibbs, discrete parameter", "number_of_components", {}),
    ]:
        enter(name, "Scans of exact conditional draws of the tempered posterior.", of, gibbs,
              guarantee="stepwise", **{"events": RANGE, **given})  # fmt: skip
    enter("Gibbs, without bounds", "No bound of what a row moves.", "open_mean", gibbs, refused="dp.truncate")


def _metropolis() -> None:
    barker, penalty = stepping(lambda: dp.BarkerMetropolis(scale=0.3)), stepping(dp.PenaltyMetropolis)
    for name, of, given in [
        ("Barker", "open_share", {}),
        ("Barker, numbers", "open_mean", {}),
        ("Barker, rows come or go", "open_share", {**ADDED, **SMALL_DELTA}),
        ("Barker, rows one by one", "robust", {**SMALL_DELTA, "epsilon": 200.0, "draws": 12}),
        ("Barker, two coefficients", "two_coefficients", {}),
    ]:
        enter(name, "Accept bits by Barker's rule, charged by the ranges of their ratios.", of, barker,
              events=("zcdp",) if "delta" in given else ("pure",), guarantee="stepwise",
              **{"epsilon": 20.0, **given})  # fmt: skip
    for name, of, given in [("penalty", "open_share", {}), ("penalty, rows one by one", "robust", ADDED)]:
        enter(name, "Accept bits of noised ratios, with a penalty for the noise.", of, penalty, events=("penalty_bit",),
              guarantee="stepwise", **SMALL_DELTA, **given)  # fmt: skip
    enter("penalty, without a δ", "Gaussian noise.", "open_share", penalty, refused="no guarantee at delta=0")
    enter("tempered Metropolis", "Metropolis's rule with steps so short that rejections are rare.", "open_share",
          stepping(lambda: dp.TemperedMetropolis(beta=0.001)), events=("approximate",), guarantee="stepwise",
          **SMALL_DELTA)  # fmt: skip


def _gradients() -> None:
    step = {"guarantee": "stepwise", **SMALL_DELTA}
    hmc = stepping(lambda: dp.PrivateHMC(clip_norm=2.0))
    for name, of, given in [("HMC", "two_coefficients", {}), ("HMC, rows come or go", "open_mean", ADDED)]:
        enter(name, "Noised gradients, and accept bits of noised ratios.", of, hmc,
              events=("penalty_bit", "discrete_gaussian"), **step, **given)  # fmt: skip
    batch = {"clip_norm": 1.0, "batch_size": 8}
    for name, make, given in [
        ("SGLD", lambda: dp.SGLD(**batch), {}),
        ("SGLD, rows come or go", lambda: dp.SGLD(**batch), ADDED),
        ("SGLD, fixed batches", lambda: dp.SGLD(**batch, sampling="without_replacement"), {}),
        ("SGLD, papers", lambda: dp.SGLD(**batch, papers=True), {}),
        ("SGHMC", lambda: dp.SGHMC(**batch), {}),
        ("SGNHT", lambda: dp.SGNHT(**batch), {}),
        ("SGFS", lambda: dp.SGFS(**batch), {}),
    ]:
        enter(name, "Noised sums of clipped gradients of batches.", "two_coefficients", stepping(make), events=BATCHES,
              **step, **given)  # fmt: skip
    enter("SGNHT, start", "The same, from a posterior sample.", "poisson_regression",
          stepping(lambda: dp.SGNHT(**batch, start=dp.OPS())), events=(*RANGE, *BATCHES), **step)  # fmt: skip
    enter("SGLD, without a δ", "Gaussian noise.", "two_coefficients", stepping(lambda: dp.SGLD(**batch)),
          refused="no guarantee at delta=0")  # fmt: skip


def _others() -> None:
    enter("steps in turns", "Two steps, each of its own variables, for one budget.", "mean_and_spread",
          stepping(lambda: [dp.TemperedGibbs(["sd"]), dp.BarkerMetropolis(["mu"], scale=0.1)]),
          events=("bounded_range", "zcdp"), guarantee="stepwise", **SMALL_DELTA)  # fmt: skip
    enter("mode among candidates", "The exponential mechanism on a grid.", "robust", mode, events=RANGE)
    enter("mode of a density", "A draw from a power of the posterior.", "mean", mode, events=RANGE,
          given={"annealed": True})  # fmt: skip
    enter("annealing", "Particles from the prior to the tempered posterior.", "share", annealing, events=RANGE,
          guarantee="stepwise", law=None)  # fmt: skip
    enter("annealing, evidence", "Particles with noised weights, and a noised evidence.", "mean", annealing,
          events=("bounded_range", "pure"), guarantee="stepwise", law=None,
          given={"resampling": "laplace", "marginal_likelihood": True})  # fmt: skip


_ops(), _gibbs(), _metropolis(), _gradients(), _others()

__all__ = ["MODELS", "SAMPLERS", "Law", "Sampler"]
