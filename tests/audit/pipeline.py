"""The real way from rows to a release, made fast enough to be run ten thousand times and to be fuzzed."""

from dataclasses import dataclass, replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.kernel import draw
from pymc_dp.kernel.tallies import Tally
from pymc_dp.transforms.privatize import plan_for
from tests.networks import TRIANGLE, network_model
from tests.paid import draw_release

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One model; rows are tuples with one entry for each `pm.Data`."""

    model: pm.Model
    domain: dp.Domain
    columns: tuple[str, ...]
    corners: tuple[tuple, ...]
    epsilon: float = 1.0
    delta: float = 0.0
    noise: str = "laplace"
    how: object = None
    reach: float = 1 - 1e-6
    """Share of the claim that some pair of the corners has to move sums by."""

    def plan(self):
        statistics = dp.Statistics(self.noise, mechanism=self.how)
        budget = {"epsilon": self.epsilon, "delta": self.delta}
        return plan_for(self.model, domain=self.domain, statistics=statistics, **budget)[1]

    def with_gaussian_noise(self, delta):
        return replace(self, noise="gaussian", delta=delta)

    def hold(self, rows):
        for place, name in enumerate(self.columns):
            dtype = self.model[name].get_value().dtype
            self.model[name].set_value(np.array([row[place] for row in rows], dtype=dtype))

    def mechanism(self, rows, runs):
        """Release `runs` times: plan and noise are the real ones, the exact sums are computed once and repeated."""
        self.hold(rows)
        once = Tally.exact
        with patch.object(Tally, "exact", lambda tally, rows: np.tile(once(tally, rows), (runs, 1))):
            release = draw_release(self.plan())
        return np.concatenate([table.reshape(runs, -1) for table in release.values.values()], axis=1)

    def block_sums(self, plan, block):
        """Return a function from rows to the integers of one block, as they are just before the noise."""

        def sums_of(rows):
            self.hold(rows)
            seen = []
            with patch.object(draw, "noised", lambda sums, kind, scale: seen.append(sums) or sums):
                draw_release(plan)
            return seen[block]

        return sums_of


def domain(relation, **options):
    return dp.Domain(neighbours=relation, n_max=100 if relation == "add_remove" else None, **options)


def bernoulli(relation):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("y", p, observed=pm.Data("d", np.array([0, 1])))
    return Pipeline(
        model=model, domain=domain(relation), columns=("d",), corners=((0,), (1,), (-1,), (2,), (2**31 - 1,))
    )


def grouped_bernoulli(relation):
    with pm.Model(coords={"of": range(3)}) as model:
        p = pm.Beta("p", 1, 1, dims="of")
        group = pm.Data("group", np.array([0, 1]))
        pm.Bernoulli("y", p[group], observed=pm.Data("d", np.array([0, 1])))
    corners = tuple((g, y) for g in (0, 2, 3, -1, -(2**31)) for y in (0, 1, 5, -3))
    return Pipeline(model=model, domain=domain(relation), columns=("group", "d"), corners=corners)


def categorical(relation):
    with pm.Model(coords={"level": ["a", "b", "c"]}) as model:
        p = pm.Dirichlet("p", np.ones(3), dims="level")
        pm.Categorical("y", p, observed=pm.Data("d", np.array([0, 1])))
    return Pipeline(model=model, domain=domain(relation), columns=("d",), corners=tuple((k,) for k in (0, 1, 2, 3, -7)))


def poisson(relation):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 1, 1)
        pm.Poisson("y", rate, observed=pm.Data("d", np.array([5, 6])))
    bounds = {"y": (5, 100)}
    corners = tuple((k,) for k in (0, 5, 100, 101, 2**31 - 1, -4))
    return Pipeline(model=model, domain=domain(relation, bounds=bounds), columns=("d",), corners=corners)


def grouped_poisson(relation):
    with pm.Model(coords={"of": range(2)}) as model:
        rate = pm.Gamma("rate", 1, 1, dims="of")
        group = pm.Data("group", np.array([0, 1]))
        pm.Poisson("y", rate[group], observed=pm.Data("d", np.array([5, 6])))
    bounds = {"y": (5, 100)}
    corners = tuple((g, k) for g in (0, 1, 9) for k in (0, 5, 52, 100, 2**31 - 1))
    return Pipeline(model=model, domain=domain(relation, bounds=bounds), columns=("group", "d"), corners=corners)


VALUES = (-1e300, -3.0, 0.0, 5.0, 20.0, 28.75, 30.000000001, 52.5, 100.0, 1e9, INF, -INF, NAN, 5e-324)


def _bounded(relation, low, high, build, dtype=float):
    """One column of a wide or tiny range."""
    with pm.Model() as model:
        build(pm.Data("d", np.array([low, high]).astype(dtype)))
    inside = [low + (high - low) * part for part in (0, 0.25, 0.5, 0.75, 1)]
    beyond = (-1e300, 1e300, INF, -INF, NAN, 0.0) if dtype is float else (-(2**31), 2**31 - 1, -1)
    corners = tuple((dtype(x),) for x in (*inside, *beyond))
    return Pipeline(model=model, domain=domain(relation, bounds={"y": (low, high)}), columns=("d",), corners=corners)


def _normal_of_both(data):
    pm.Normal("y", pm.Normal("mean"), pm.HalfNormal("sd"), observed=data)


def huge_range(relation):
    return _bounded(relation, -1e100, 3e99, _normal_of_both)


def tiny_range(relation):
    return _bounded(relation, 1e-30, 3e-30, _normal_of_both)


def large_counts(relation):
    return _bounded(relation, 0, 2**29, lambda d: pm.Poisson("y", pm.Gamma("rate", 1, 1), observed=d), int)


def weighted(relation):
    """Sums and squares of rows whose weights are at most 3."""
    with pm.Model(coords={"of": range(2)}) as model:
        pm.Data("w", np.ones(2))
        mean = pm.Normal("mean", dims="of")[pm.Data("group", np.array([0, 1]))]
        pm.Normal("y", mean, pm.HalfNormal("sd"), observed=pm.Data("d", np.array([5.0, 6.0])))
    known = domain(relation, bounds={"y": (5, 100), "w": (0, 3)}, weights={"y": "w"})
    values, weights = (-3.0, 5.0, 52.5, 28.75, 100.0, INF, NAN), (0.0, 3.0, 1.0, 7.0, -2.0, INF, NAN)
    corners = tuple(product((0, 1), values, weights))
    return Pipeline(model=model, domain=known, columns=("group", "d", "w"), corners=corners, reach=0.89)


def weighted_counts(relation):
    with pm.Model(coords={"of": range(3), "level": range(2)}) as model:
        pm.Data("w", np.ones(2))
        p = pm.Dirichlet("p", np.ones(2), dims=("of", "level"))
        pm.Categorical("y", p[pm.Data("group", np.array([0, 1]))], observed=pm.Data("d", np.array([0, 1])))
    known = domain(relation, bounds={"w": (0, 3)}, weights={"y": "w"})
    corners = tuple((g, y, w) for g in (0, 2, -1) for y in (0, 1, 5) for w in (0.0, 3.0, 7.0, INF, NAN))
    return Pipeline(model=model, domain=known, columns=("group", "d", "w"), corners=corners, reach=0.89)


def regression(relation, computed=False):
    """Products with columns of which the model may compute others."""
    with pm.Model() as model:
        x, y = pm.Data("x", np.zeros(2)), pm.Data("d", np.zeros(2))
        mean = pm.Normal("a") + pm.Normal("b") * x
        if computed:
            mean = mean + pm.Normal("c") * x**2 + pm.Normal("e") * (x > 0.5).astype(float)
        pm.Normal("y", mean, pm.HalfNormal("sd"), observed=y)
    corners = tuple((x, y) for x in (-3.0, 0.0, 0.5, 0.6, 2.0, INF, NAN) for y in (5.0, 52.5, 100.0, -INF, 1e300))
    known = domain(relation, bounds={"x": (-3, 2), "y": (5, 100)})
    return Pipeline(model=model, domain=known, columns=("x", "d"), corners=corners, reach=0.75 if computed else 0.9)


def computed(relation):
    return regression(relation, computed=True)


def network(relation):
    """Coefficients of three nodes, of which one has three levels: all rows there are."""
    levels = {"a": 2, "b": 3, "c": 2}
    model = network_model(TRIANGLE, levels=levels)
    corners = tuple(product(*(range(count) for count in levels.values())))
    columns = tuple(f"{name}_rows" for name in levels)
    fourier = dp.networks.FourierUpdates(t=1)
    return Pipeline(model=model, domain=domain(relation), columns=columns, corners=corners, how=fourier)


def normal(relation, free=("mean", "sd"), grouped=False):
    with pm.Model(coords={"of": range(2)}) as model:
        mean = pm.Normal("mean", dims="of" if grouped else None) if "mean" in free else 20.0
        sd = pm.HalfNormal("sd") if "sd" in free else 2.0
        if grouped:
            mean = mean[pm.Data("group", np.array([0, 1]))]
        pm.Normal("y", mean, sd, observed=pm.Data("d", np.array([5.0, 6.0])))
    corners = tuple((g, x) for g in (0, 1) for x in VALUES) if grouped else tuple((x,) for x in VALUES)
    columns = ("group", "d") if grouped else ("d",)
    return Pipeline(model=model, domain=domain(relation, bounds={"y": (5, 100)}), columns=columns, corners=corners)


def normal_mean(relation):
    return normal(relation, ("mean",))


def normal_sd(relation):
    return normal(relation, ("sd",))


def grouped_normal(relation):
    return normal(relation, grouped=True)


def two_variables(relation):
    """Naive Bayes: both observed variables of a row change together."""
    with pm.Model(coords={"row": range(2)}) as model:
        p, q = pm.Beta("p", 1, 1), pm.Beta("q", 1, 1)
        pm.Bernoulli("y", p, observed=pm.Data("d", np.array([0, 1])), dims="row")
        pm.Bernoulli("z", q, observed=pm.Data("e", np.array([0, 1])), dims="row")
    corners = tuple((y, z) for y in (0, 1, 4) for z in (0, 1, -2))
    return Pipeline(model=model, domain=domain(relation), columns=("d", "e"), corners=corners)
