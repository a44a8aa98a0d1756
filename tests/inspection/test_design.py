import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import plain_draw

N = 40
RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(N, 3)), RNG.uniform(size=N)
GROUP, OTHER = RNG.integers(0, 4, N), RNG.integers(0, 2, N)
Y = RNG.normal(size=N)
B = (Y > 0).astype(int)
BOUNDS = {"X": (-3, 3), "w": (0, 1), "y": (-5, 5)}


def columns():
    return pm.Data("X", X), pm.Data("w", W), pm.Data("group", GROUP), pm.Data("other", OTHER)


def plain():
    x, *_ = columns()
    a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1, shape=3)
    return "normal", a + x @ b


def without_intercept():
    x, *_ = columns()
    return "normal", pm.math.dot(x, pm.Normal("b", 0, 1, shape=3))


def by_columns():
    x, w, *_ = columns()
    a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1, shape=2)
    return "normal", a + b[0] * (w - 3) / 2 - x[:, 1] * b[1] + 2 * x[:, 0]


def groups():
    x, w, group, _ = columns()
    offset = pm.HalfNormal("tau", 1) * pm.Normal("z", 0, 1, shape=4)
    return "normal", offset[group] + x @ pm.Normal("b", 0, 1, shape=3) + pm.Normal("c", 0, 1) * w


def crossed():
    _, w, group, other = columns()
    one, two = pm.Normal("one", 0, 1, shape=4), pm.Normal("two", 0, 1, shape=2)
    return "bernoulli", one[group] + two[other] * w


def counts():
    x, w, *_ = columns()
    return "poisson", pm.Normal("a", 0, 1) + pm.Normal("c", 0, 1) * w + (x * pm.Normal("b", 0, 1, shape=3)).sum(axis=1)


MODELS = {
    "plain": (plain, True, False),
    "without_intercept": (without_intercept, False, False),
    "by_columns": (by_columns, True, False),
    "groups": (groups, True, False),
    "crossed": (crossed, True, True),
    "counts": (counts, True, False),
}


def built(make):
    with pm.Model() as model:
        likelihood, eta = make()
        if likelihood == "normal":
            pm.Normal("y", eta, pm.HalfNormal("sd", 1), observed=Y)
        elif likelihood == "bernoulli":
            pm.Bernoulli("b_", pm.math.invprobit(eta), observed=B)
        else:
            pm.Poisson("y", pm.math.exp(eta), observed=B)
    return model


def inspected(model, **domain):
    known = {name: ends for name, ends in BOUNDS.items() if name in model.named_vars}
    return inspect(model, Domain(**{"bounds": known, **domain})).sums


@pytest.mark.parametrize("name", MODELS)
def test_coefficients_and_link_give_the_mean_of_every_row(name):
    make, constant, apart = MODELS[name]
    model = built(make)
    found = inspected(model)
    assert not found.problems
    (observed,) = found.observed
    design = observed.design
    assert (design.constant, design.apart) == (constant, apart)
    shape = [len(column.levels) for column in observed.columns]
    grids = np.meshgrid(*[column.levels for column in observed.columns], indexing="ij")
    levels = {
        var: pt.constant(np.ravel(grid).astype(var.type.dtype))
        for column, grid in zip(observed.columns, grids, strict=True)
        for var in column.stand_ins
    }
    own = {"group": GROUP, "other": OTHER}
    place = [own[column.name] for column in observed.columns]
    cell = np.ravel_multi_index(place, shape) if shape else np.zeros(N, dtype=int)
    rows = np.column_stack([{"X": X, "w": W}[item.name] for item in design.predictors])
    a, w = design.coefficients(levels, int(np.prod(shape)))
    eta = a[cell] + (w[cell] * rows).sum(axis=1)
    mean = observed.variable.owner.op.dist_params(observed.variable.owner)[0]
    for expected, by_parts in zip(*plain_draw([mean, design.link(eta)], 1, 3), strict=True):
        np.testing.assert_allclose(by_parts, expected, rtol=1e-10, atol=1e-12)


def test_public_columns_bring_the_range_of_their_values():
    with pm.Model() as model:
        x, w, *_ = columns()
        pm.Normal("y", x @ pm.Normal("b", 0, 1, shape=3) + pm.Normal("c", 0, 1) * w, 1, observed=Y)
    found = inspected(model, public=("X",), bounds={"y": (-5, 5), "w": (0, 1)})
    assert not found.problems
    design = found.observed[0].design
    public = {item.name: item for item in design.predictors}
    assert public["X"].bounds == (X.min(), X.max()) and public["X"].public
    assert not design.public
