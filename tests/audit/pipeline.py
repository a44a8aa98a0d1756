"""The real way from rows to a release, made fast enough to be run ten thousand times and to be fuzzed."""

from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
import pymc as pm

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.noise import Noise
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.rows.asked import Asked
from tests.paid import draw_release

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One model; rows are tuples with one entry for each `pm.Data`."""

    model: pm.Model
    domain: Domain
    columns: tuple[str, ...]
    corners: tuple[tuple, ...]
    epsilon: float = 1.0
    delta: float = 0.0
    noise: str = "laplace"

    def plan(self):
        return plan_release(inspect(self.model, self.domain).sums, Statistics(self.noise), self.epsilon, self.delta)

    def with_gaussian_noise(self, delta):
        return replace(self, noise="gaussian", delta=delta)

    def hold(self, rows):
        for place, name in enumerate(self.columns):
            dtype = self.model[name].get_value().dtype
            self.model[name].set_value(np.array([row[place] for row in rows], dtype=dtype))

    def mechanism(self, rows, runs):
        """Release `runs` times: plan and noise are the real ones, the exact sums are computed once and repeated."""
        self.hold(rows)
        once = Asked.of
        with patch.object(Asked, "of", lambda asked, values: np.tile(once(asked, values), (runs, 1))):
            release = draw_release(self.plan())
        return np.concatenate([table.reshape(runs, -1) for table in release.values.values()], axis=1)

    def block_sums(self, plan, block):
        """Return a function from rows to the integers of one block, as they are just before the noise."""

        def sums_of(rows):
            self.hold(rows)
            seen = []
            with patch.object(Noise, "add", lambda noise, sums, scale: seen.append(sums) or sums):
                draw_release(plan)
            return seen[block]

        return sums_of


def domain(relation, **options):
    return Domain(neighbours=relation, n_max=100 if relation == "add_remove" else None, **options)


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


def normal(relation):
    return _normal(relation, ("mean", "sd"))


def normal_mean(relation):
    return _normal(relation, ("mean",))


def normal_sd(relation):
    return _normal(relation, ("sd",))


def grouped_normal(relation):
    return _normal(relation, ("mean", "sd"), grouped=True)


def _normal(relation, free, grouped=False):
    with pm.Model(coords={"of": range(2)}) as model:
        mean = pm.Normal("mean", dims="of" if grouped else None) if "mean" in free else 20.0
        sd = pm.HalfNormal("sd") if "sd" in free else 2.0
        if grouped:
            mean = mean[pm.Data("group", np.array([0, 1]))]
        pm.Normal("y", mean, sd, observed=pm.Data("d", np.array([5.0, 6.0])))
    corners = tuple((g, x) for g in (0, 1) for x in VALUES) if grouped else tuple((x,) for x in VALUES)
    columns = ("group", "d") if grouped else ("d",)
    return Pipeline(model=model, domain=domain(relation, bounds={"y": (5, 100)}), columns=columns, corners=corners)


def two_variables(relation):
    """Naive Bayes: both observed variables of a row change together."""
    with pm.Model(coords={"row": range(2)}) as model:
        p, q = pm.Beta("p", 1, 1), pm.Beta("q", 1, 1)
        pm.Bernoulli("y", p, observed=pm.Data("d", np.array([0, 1])), dims="row")
        pm.Bernoulli("z", q, observed=pm.Data("e", np.array([0, 1])), dims="row")
    corners = tuple((y, z) for y in (0, 1, 4) for z in (0, 1, -2))
    return Pipeline(model=model, domain=domain(relation), columns=("d", "e"), corners=corners)
