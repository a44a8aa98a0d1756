import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.privatize import privatize

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


def kinked(x, w):
    return pm.math.abs(pm.Normal("a", 0, 1) * x[:, 0])


def through_exp(x, w):
    return pm.math.exp(pm.Normal("a", 0, 1) * w)


@pytest.mark.parametrize("make", [kinked, through_exp])
def test_a_mean_that_is_not_affine_is_refused(make):
    with pm.Model() as model:
        x, w, *_ = columns()
        pm.Normal("y", make(x, w), 1, observed=Y)
    problems = inspected(model).problems
    assert any("affine" in problem.what for problem in problems)


def test_rows_that_meet_are_refused():
    with pm.Model() as model:
        _, w, *_ = columns()
        pm.Normal("y", pm.Normal("a", 0, 1) * (w - w.mean()), 1, observed=Y)
    assert any("runs over the rows" in problem.what for problem in inspected(model).problems)


def test_a_link_with_parameters_of_its_own_is_refused():
    with pm.Model() as model:
        _, w, *_ = columns()
        scale = pm.Beta("scale", 1, 1)
        pm.Bernoulli("b_", scale * pm.math.sigmoid(pm.Normal("a", 0, 1) * w), observed=B)
    assert any("linear predictor" in problem.what for problem in inspected(model).problems)


def test_a_standard_deviation_that_varies_is_refused():
    with pm.Model() as model:
        _, w, *_ = columns()
        pm.Normal("y", pm.Normal("a", 0, 1) * w, pm.math.exp(w), observed=Y)
    assert any("standard deviation" in problem.what for problem in inspected(model).problems)


@pytest.mark.parametrize("given", [{}, {"bounds": {"X": (-1, 1), "y": (-5, 5)}, "norms": {"X": 1}}])
def test_a_private_array_needs_bounds_or_a_norm(given):
    with pm.Model() as model:
        x, *_ = columns()
        pm.Normal("y", x @ pm.Normal("b", 0, 1, shape=3), 1, observed=Y)
    problems = inspect(model, Domain(**given)).sums.problems
    assert any(
        "'X'" in problem.what and ("norm" in problem.remedy or "one of" in problem.remedy) for problem in problems
    )


def test_a_norm_that_nothing_uses_is_told():
    with pm.Model() as model:
        _, w, *_ = columns()
        pm.Normal("y", pm.Normal("a", 0, 1) * w, 1, observed=Y)
    problems = inspected(model, norms={"X": 1.0}).problems
    assert any("its norm is not used" in problem.what for problem in problems)


@pytest.mark.parametrize(("bounded", "scaled"), [("m", "X"), ("X", "m")])
def test_bounds_for_one_likelihood_and_a_norm_for_another_are_of_one_column_by_two_names(bounded, scaled):
    with pm.Model() as model:
        x, *_ = columns()
        pm.MvNormal("m", pm.Normal("mu", 0, 1, shape=3), pt.eye(3), observed=x)
        pm.Normal("y", x @ pm.Normal("b", 0, 1, shape=3), 1, observed=Y)
    found = inspected(model, bounds={bounded: (-1, 1), "y": (-5, 5)}, norms={scaled: 1.5})
    assert not found.problems
    sums, regression = found.observed
    (predictor,) = regression.design.predictors
    assert sums.bounds == (-1, 1) and predictor.norm == 1.5 and predictor.bounds is None


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


def test_indices_alone_are_still_counted_in_cells():
    with pm.Model() as model:
        *_, group, _ = columns()
        pm.Bernoulli("b_", pm.math.sigmoid(pm.Normal("a", 0, 1, shape=4)[group]), observed=B)
    (observed,) = inspected(model).observed
    assert observed.design is None and len(observed.columns) == 1


def observed_before():
    with pm.Model() as model:
        held = pm.Data("w", W)
        seen = pm.Normal("seen", pm.Normal("m", 0, 1), 1, observed=held)
        pm.Normal("y", pm.Normal("c", 0, 1) * seen + held, 1, observed=Y)
    return model


def test_a_predictor_may_be_observed_itself():
    found = inspected(observed_before())
    assert not found.problems
    (item,) = found.observed[1].design.predictors
    assert (item.name, len(item.stand_ins), item.bounds) == ("w", 2, (0.0, 1.0))
    _, slopes = found.observed[1].design.coefficients({}, 1)
    c, drawn = plain_draw([found.model["c"], slopes], 1)
    np.testing.assert_allclose(drawn, [[c + 1]])


def test_a_predictor_that_the_model_computes_is_refused_as_such():
    with pm.Model() as model:
        x, w, *_ = columns()
        seen = pm.Normal("seen", 0, 1, observed=w * 2)
        pm.Normal("y", pm.Normal("c", 0, 1) * seen + x[:, 0], 1, observed=Y)
    (problem,) = inspected(model).problems
    assert "computed inside the model" in problem.what


@pytest.mark.parametrize("n_rows", [4, 3])
def test_there_may_be_as_many_rows_as_slopes(n_rows):
    with pm.Model() as model:
        slopes = pm.Normal("b", 0, 1) * pt.ones(3)
        pm.Normal("y", pm.Data("X", X[:n_rows]) @ slopes, 1, observed=Y[:n_rows])
    (observed,) = inspected(model).observed
    expected, found = plain_draw([slopes, observed.design.coefficients({}, 1)[1][0]], 1)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("part", ["shares", "covariates", "noise_variance"])
def test_names_of_what_a_release_adds_are_refused_before_it_is_paid_for(part):
    with pm.Model() as model:
        x, *_ = columns()
        pm.Normal("y", x @ pm.Normal(f"y_{part}", 0, 1, shape=3), 1, observed=Y)
    (problem,) = inspected(model).problems
    assert f"'y_{part}' is taken" in problem.what


def test_rows_in_a_prior_are_refused_and_not_drawn_from():
    def told(first):
        with pm.Model() as model:
            x = pm.Data("X", np.vstack([np.full(3, first), X[1:]]))
            pm.Poisson("b_", pm.math.exp(x @ pm.Normal("b", 0, x[0, 0], shape=3)), observed=B)
        with pytest.raises(UnsupportedModelError) as error:
            privatize(model, epsilon=1.0, domain=Domain(bounds={"X": (-3, 3), "b_": (0, 3)}))
        return str(error.value)

    assert told(1.0) == told(-1.0)
    assert "reach the prior" in told(1.0)


@pytest.mark.parametrize("name", ["float32", "poly(x, 3)[1]"])
def test_columns_may_be_called_anything(name):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("c", 0, 1) * pm.Data(name, W), 1, observed=Y)
    (observed,) = inspected(model, bounds={name: (0, 1), "y": (-5, 5)}).observed
    assert [item.name for item in observed.design.predictors] == [name]


def test_an_index_of_several_columns_is_refused():
    with pm.Model() as model:
        index = pm.Data("index", np.zeros((N, 2), dtype=int))
        pm.Normal("y", pm.Normal("a", 0, 1, shape=3)[index].sum(axis=1), 1, observed=Y)
    problems = inspected(model).problems
    assert any("'index' has 2 dimensions" in problem.what for problem in problems)


def test_parameters_may_be_matrices():
    with pm.Model() as model:
        x, _, group, other = columns()
        slopes = pm.Normal("b", 0, 1, shape=(4, 3))
        pm.Normal(
            "y", (slopes[group] * x).sum(axis=1) + pm.Normal("a", 0, 1, shape=(4, 2))[group, other], 1, observed=Y
        )
    found = inspected(model)
    assert not found.problems and found.observed[0].design.apart
