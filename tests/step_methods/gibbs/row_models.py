"""Models without exact sums, each with its log-likelihood of one row in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pymc as pm
from scipy import special, stats

from pymc_dp.domain import Domain
from pymc_dp.transforms.clamp import clamp

Array = npt.NDArray[np.float64]
Values = Mapping[str, Array]


@dataclass(frozen=True, kw_only=True)
class RowModel:
    """One likelihood of rows, bounded parameters, and all that a test needs to know of them.

    Attributes
    ----------
    build : callable
        From columns by name to a model, in which each is a ``pm.Data``.
    density : callable
        From rows and parameters, both by name with a leading axis of cases, to log-likelihoods.
    rows : mapping
        (low, high) of each column of numbers; a norm with the length of each column of vectors; whole numbers
        where both ends are int.
    parameters : mapping
        Box of every free variable: arrays of its shape.
    public : tuple of str
    """

    build: Callable[[Mapping[str, Array]], pm.Model]
    density: Callable[[Values, Values], Array]
    rows: Mapping[str, tuple[float, float] | tuple[str, float, int]]
    parameters: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]
    public: tuple[str, ...] = ()
    observed: Mapping[str, str] = field(default_factory=lambda: {"y": "d"})

    def domain(self, relation: str = "replace") -> Domain:
        names = {column: name for name, column in self.observed.items()}
        known = {names.get(column, column): ends for column, ends in self.rows.items() if column not in self.public}
        return Domain(
            neighbours=relation,
            n_max=1000 if relation == "add_remove" else None,
            bounds={name: ends for name, ends in known.items() if ends[0] != "norm"},
            norms={name: ends[1] for name, ends in known.items() if ends[0] == "norm"},
            public=self.public,
        )

    def draw_rows(self, rng: np.random.Generator, count: int) -> dict[str, Array]:
        """Draw rows, many of them at the ends of what a row may be."""
        return {name: _column(rng, ends, count) for name, ends in self.rows.items()}

    def draw_parameters(self, rng: np.random.Generator, count: int) -> dict[str, Array]:
        """Draw places of the parameter space, many of them at its corners."""
        return {name: _between(rng, *ends, count) for name, ends in self.parameters.items()}

    def model(self, rng: np.random.Generator, count: int = 5) -> pm.Model:
        return self.build(self.draw_rows(rng, count))


def _column(rng: np.random.Generator, ends, count: int) -> Array:
    if ends[0] == "norm":
        directions = rng.normal(size=(count, ends[2])) * rng.choice([1.0, 1e-3], size=(count, ends[2]))
        return ends[1] * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    if isinstance(ends[0], int):
        return np.where(rng.random(count) < 0.5, rng.choice(ends, count), rng.integers(ends[0], ends[1] + 1, count))
    return _between(rng, *ends, count)


def _between(rng: np.random.Generator, low: npt.ArrayLike, high: npt.ArrayLike, count: int) -> Array:
    low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    inside = low + (high - low) * rng.random((count, *low.shape))
    return np.choose(
        rng.integers(0, 3, inside.shape),
        [inside, np.broadcast_to(low, inside.shape), np.broadcast_to(high, inside.shape)],
    )


def _student(columns):
    with pm.Model() as model:
        mu = pm.Uniform("mu", -3, 3)
        pm.StudentT("y", nu=4, mu=mu, sigma=1.0, observed=pm.Data("d", columns["d"]))
    return model


def _logistic(columns):
    with pm.Model() as model:
        b = pm.Truncated("b", pm.Normal.dist(0, 1), -2, 3, shape=2)
        pm.Bernoulli("y", logit_p=pm.Data("X", columns["X"]) @ b, observed=pm.Data("d", columns["d"]))
    return model


def _public_logistic(columns):
    """Public covariates, whose coefficients are products of two variables, one of which is subtracted as well."""
    with pm.Model() as model:
        a, tau = pm.Uniform("a", -1, 2), pm.Uniform("tau", 0.5, 2)
        z = pm.Truncated("z", pm.Normal.dist(0, 1), -1, 1, shape=2)
        eta = pm.Data("X", columns["X"]) @ (tau * z) - a - tau
        pm.Bernoulli("y", logit_p=eta, observed=pm.Data("d", columns["d"]))
    return model


def _inflated(columns):
    with pm.Model() as model:
        psi = pm.Uniform("psi", 0.1, 0.8)
        rate = pm.Truncated("rate", pm.Gamma.dist(0.5, 0.3), 0.2, 6.0)
        pm.ZeroInflatedPoisson("y", psi, rate, observed=pm.Data("d", columns["d"].astype(int)))
    return model


def _inflated_density(x, t):
    y, psi, rate = x["d"], t["psi"], t["rate"]
    counted = np.log(psi) + stats.poisson.logpmf(y, rate)
    return np.where(y == 0, np.logaddexp(np.log1p(-psi), counted), counted)


def _mixture(columns):
    with pm.Model(coords={"part": range(2)}) as model:
        w = pm.Uniform("w", 0.2, 0.7)
        mu = pm.Uniform("mu", [-3.0, 0.0], [0.0, 2.0], dims="part")
        weights = pm.math.stack([w, 1 - w])
        pm.NormalMixture("y", w=weights, mu=mu, sigma=1.0, observed=pm.Data("d", columns["d"]))
    return model


def _mixture_density(x, t):
    parts = np.log([t["w"], 1 - t["w"]]) + stats.norm.logpdf(x["d"], t["mu"].T)
    return special.logsumexp(parts, axis=0)


def _clamped(columns):
    with pm.Model() as model:
        mu = pm.Uniform("mu", -1, 2)
        pm.Normal("y", mu, 1.0, observed=pm.Data("d", columns["d"]))
    return clamp(model, low=-3.0, high=-1.0)


def _groups(columns):
    """Three groups of a private column, whose means share a prior."""
    with pm.Model() as model:
        top = pm.Normal("top")
        mu = pm.Truncated("mu", pm.Normal.dist(top, 1), -2, 3, shape=3)
        group = pm.Data("g", columns["g"].astype(int))
        pm.StudentT("y", nu=3, mu=mu[group], sigma=1.0, observed=pm.Data("d", columns["d"]))
    return model


def _regression(columns):
    """Robust regression with an unknown scale."""
    with pm.Model() as model:
        b, sd = pm.Uniform("b", -1, 2, shape=2), pm.Uniform("sd", 0.5, 1.5)
        pm.StudentT("y", nu=4, mu=pm.Data("X", columns["X"]) @ b, sigma=sd, observed=pm.Data("d", columns["d"]))
    return model


def _heteroscedastic(columns):
    """One coefficient moves the mean through a predictor, and the scale by itself."""
    with pm.Model() as model:
        b = pm.Uniform("b", -1, 1, shape=2)
        mean = pm.Data("X", columns["X"]) @ b
        pm.Normal("y", mean, pm.math.exp(b[0]), observed=pm.Data("d", columns["d"]))
    return model


def _categories(columns):
    with pm.Model() as model:
        b = pm.Uniform("b", -1, 2, shape=(2, 3))
        eta = pm.Data("X", columns["X"]) @ b
        pm.Categorical("y", p=pm.math.softmax(eta, axis=1), observed=pm.Data("d", columns["d"].astype(int)))
    return model


def _categories_density(x, t):
    scores = special.log_softmax(np.einsum("nk,nkc->nc", x["X"], t["b"]), axis=1)
    return np.take_along_axis(scores, x["d"].astype(int)[:, None], axis=1)[:, 0]


def _bernoulli(eta, y):
    return np.where(y > 0, -np.logaddexp(0, -eta), -np.logaddexp(0, eta))


ROW_MODELS = {
    "location": RowModel(
        build=_student,
        density=lambda x, t: stats.t.logpdf(x["d"], 4, t["mu"]),
        rows={"d": (-4.0, 5.0)},
        parameters={"mu": (-3, 3)},
    ),
    "logistic": RowModel(
        build=_logistic,
        density=lambda x, t: _bernoulli((x["X"] * t["b"]).sum(axis=1), x["d"]),
        rows={"X": ("norm", 1.5, 2), "d": (0, 1)},
        parameters={"b": ([-2, -2], [3, 3])},
    ),
    "public logistic": RowModel(
        build=_public_logistic,
        density=lambda x, t: _bernoulli((x["X"] * t["tau"][:, None] * t["z"]).sum(axis=1) - t["a"] - t["tau"], x["d"]),
        rows={"X": ("norm", 1.5, 2), "d": (0, 1)},
        parameters={"a": (-1, 2), "tau": (0.5, 2), "z": ([-1, -1], [1, 1])},
        public=("X",),
    ),
    "zero-inflated": RowModel(
        build=_inflated,
        density=_inflated_density,
        rows={"d": (0, 8)},
        parameters={"psi": (0.1, 0.8), "rate": (0.2, 6.0)},
    ),
    "mixture": RowModel(
        build=_mixture,
        density=_mixture_density,
        rows={"d": (-4.0, 3.0)},
        parameters={"w": (0.2, 0.7), "mu": ([-3, 0], [0, 2])},
    ),
    "clamped": RowModel(
        build=_clamped,
        density=lambda x, t: np.clip(stats.norm.logpdf(x["d"], t["mu"]), -3.0, -1.0),
        rows={"d": (-8.0, 8.0)},
        parameters={"mu": (-1, 2)},
    ),
    "groups": RowModel(
        build=_groups,
        density=lambda x, t: stats.t.logpdf(
            x["d"], 3, np.take_along_axis(t["mu"], x["g"].astype(int)[:, None], 1)[:, 0]
        ),
        rows={"d": (-4.0, 4.0), "g": (0, 2)},
        parameters={"mu": ([-2, -2, -2], [3, 3, 3])},
    ),
    "regression": RowModel(
        build=_regression,
        density=lambda x, t: stats.t.logpdf(x["d"], 4, (x["X"] * t["b"]).sum(axis=1), t["sd"]),
        rows={"X": ("norm", 1.0, 2), "d": (-3.0, 4.0)},
        parameters={"b": ([-1, -1], [2, 2]), "sd": (0.5, 1.5)},
    ),
    "heteroscedastic": RowModel(
        build=_heteroscedastic,
        density=lambda x, t: stats.norm.logpdf(x["d"], (x["X"] * t["b"]).sum(axis=1), np.exp(t["b"][:, 0])),
        rows={"X": ("norm", 1.0, 2), "d": (-2.0, 2.0)},
        parameters={"b": ([-1, -1], [1, 1])},
    ),
    "categories": RowModel(
        build=_categories,
        density=_categories_density,
        rows={"X": ("norm", 1.0, 2), "d": (0, 2)},
        parameters={"b": (np.full((2, 3), -1), np.full((2, 3), 2))},
    ),
}
