"""Which models have a log-likelihood that is a sum over rows."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import ParameterValueError
from pytensor.graph.traversal import ancestors

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.transforms.integrate import integrate

N = 30
RNG = np.random.default_rng(5)
X, G, Y = RNG.normal(size=(N, 3)), RNG.integers(0, 4, size=N), RNG.integers(0, 2, size=N)


def regression():
    b = pm.Normal("b", shape=3)
    pm.Bernoulli("y", logit_p=pm.Data("x", X) @ b, observed=Y)


def held_in_data():
    y, x = pm.Data("answers", Y), pm.Data("x", X)
    pm.Bernoulli("y", logit_p=x @ pm.Normal("b", shape=3), observed=y)


def normal_held_in_data():
    pm.Normal("y", pm.Data("x", X) @ pm.Normal("b", shape=3), pm.HalfNormal("s"), observed=pm.Data("v", X[:, 0]))


def counts_held_in_data():
    pm.Poisson("y", pt.exp(pm.Normal("b", shape=4))[pm.Data("g", G)], observed=pm.Data("v", G))


def closure():
    pm.Normal("y", pm.math.dot(X, pm.Normal("b", shape=3)), pm.HalfNormal("s"), observed=X[:, 0])


def hierarchy():
    b = pm.Normal("b", pm.Normal("m"), pm.HalfNormal("t"), dims="level")
    pm.Normal("y", b[pm.Data("g", G)], 1.0, observed=X[:, 0])


def sums():
    pm.StudentT("y", nu=4, mu=(pm.Data("x", X) * pm.Normal("b", shape=3)).sum(-1), sigma=1.0, observed=X[:, 0])


def mixture():
    w, m = pm.Dirichlet("w", np.ones(2)), pm.Normal("m", [-1.0, 1.0], 1.0, shape=2)
    pm.NormalMixture("y", w, m, 1.0, observed=X[:, 0])


def censored():
    pm.Censored("y", pm.Normal.dist(pm.Normal("m"), 1.0), -1, 1, observed=np.clip(X[:, 0], -1, 1))


def softmax():
    pm.Categorical("y", logit_p=pm.Data("x", X) @ pm.Normal("w", shape=(3, 4)), observed=G)


def ordered():
    cuts = pm.Normal("c", [-1.0, 0.0, 1.0], 1.0, shape=3, transform=pm.distributions.transforms.ordered)
    pm.OrderedLogistic("y", eta=pm.Data("x", X) @ pm.Normal("b", shape=3), cutpoints=cuts, observed=G)


def counts():
    mean = pt.exp(pm.Data("x", X) @ pm.Normal("b", shape=3))
    pm.NegativeBinomial("y", mu=mean, alpha=pm.Exponential("a", 1.0), observed=G)


def wide():
    pm.Normal("y", pm.Normal("m", shape=3), 1.0, observed=X)


def multinomial():
    draws = RNG.multinomial(5, np.full(4, 0.25), size=N)
    pm.Multinomial("y", 5, pm.Dirichlet("p", np.ones(4)), observed=draws)


def chained():
    first = pm.Normal("y", pm.Normal("a"), 1.0, observed=X[:, 0])
    pm.Normal("z", first * pm.Normal("b"), 1.0, observed=X[:, 1])


def shaped():
    pm.Exponential("y", pm.Gamma("r", 2.0, 1.0), observed=np.abs(X[:, 0]))


def custom():
    def logp(value, m):
        return -pt.log1p((value - m) ** 2)

    pm.CustomDist("y", pm.Normal("m"), logp=logp, observed=X[:, 0])


FINE = (
    *(regression, closure, hierarchy, sums, mixture, censored, softmax),
    *(ordered, counts, wide, multinomial, chained, shaped, custom),
    *(held_in_data, normal_held_in_data, counts_held_in_data),
)


def build(write):
    with pm.Model(coords={"level": range(4)}) as model:
        write()
    return model


@pytest.mark.few(15)
@pytest.mark.parametrize("write", FINE)
def test_rows_of_ordinary_models_separate(write):
    found = inspect(build(write)).rows
    assert found.problems == ()
    assert all(term.logp.type.ndim >= 1 for term in found.terms)


def latents():
    pm.Normal("y", pm.Normal("z", shape=N), 1.0, observed=X[:, 0])


def centred():
    x = pm.Data("x", X)
    pm.Normal("y", (x - x.mean(0)) @ pm.Normal("b", shape=3), 1.0, observed=X[:, 0])


def lagged():
    y = pm.Data("past", X[:, 0])
    pm.Normal("y", pm.Normal("a") * pt.concatenate([[0.0], y[:-1]]), 1.0, observed=X[:, 0])


def walk():
    pm.GaussianRandomWalk("y", sigma=pm.HalfNormal("s"), init_dist=pm.Normal.dist(), observed=X[:, 0])


def number_of_rows():
    x = pm.Data("x", X)
    pm.Normal("y", pm.Normal("m") / x.shape[0], 1.0, observed=X[:, 0])


def prior_of_rows():
    pm.Normal("y", pm.Normal("m", pm.Data("x", X)[:, 0].mean(), 1), 1.0, observed=X[:, 0])


def potential():
    pm.Normal("y", pm.Normal("m"), 1.0, observed=X[:, 0])
    pm.Potential("p", -pm.Data("x", X).sum())


def another_length():
    pm.Normal("y", pm.Normal("m") + pm.Data("knots", np.arange(4.0)).sum(), 1.0, observed=X[:, 0])


REFUSED = {
    latents: "one latent per row",
    centred: "runs over the rows",
    lagged: "",
    walk: "",
    number_of_rows: "number of rows",
    prior_of_rows: "reach",
    potential: "reach",
    another_length: "does not have the row axis",
}


@pytest.mark.parametrize("write", REFUSED)
def test_rows_that_hang_together_are_refused(write):
    problems = inspect(build(write)).rows.problems
    assert problems and REFUSED[write] in " ".join(map(str, problems))


def test_values_outside_are_clamped_before_anything_sees_them():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("m") * pm.Data("x", X), 1.0, observed=X)
    found = inspect(model, Domain(bounds={"y": (-1, 3)})).rows
    by_name = {column.name: column for column in found.columns}
    values = np.array([[np.nan, np.inf, -np.inf], [0.5, -7.0, 9.0]])
    assert by_name["y"].clamped(values).tolist() == [[1.0, 3.0, -1.0], [0.5, -1.0, 3.0]]
    most = np.finfo(float).max  # without bounds, any number, but a number: proofs are about those
    assert by_name["x"].clamped(values).tolist() == [[0.0, most, -most], [0.5, -7.0, 9.0]]
    with build(regression) as model:
        found = inspect(model, Domain(bounds={"y": (0, 1)})).rows
    (column,) = [column for column in found.columns if column.name == "y"]
    assert column.clamped(np.array([-5, 0, 1, 2**40])).tolist() == [0, 0, 1, 1]


def test_public_columns_go_with_the_rows_and_public_tables_do_not():
    with pm.Model() as model:
        table = pm.Data("table", np.arange(4.0))
        pm.Normal("y", pm.Normal("m") + table[pm.Data("g", G)], 1.0, observed=X[:, 0])
    assert inspect(model).rows.problems
    found = inspect(model, Domain(public=("table", "g"))).rows
    assert found.problems == ()
    assert {column.name for column in found.columns} == {"g", "y"}


@pytest.mark.parametrize(
    "mean",
    [
        lambda x, b: x * pt.sum(b * pt.ones(N)),
        lambda x, b: x + pt.alloc(b, N).sum(),
        lambda x, b: x * pt.full((N,), 2.0).sum() * b,
    ],
)
def test_sums_of_what_is_repeated_for_every_row_are_refused(mean):
    with pm.Model() as model:
        pm.Normal("y", mean(pm.Data("x", X[:, 0]), pm.Normal("b")), 1.0, observed=X[:, 1])
    assert any("runs over the rows" in str(problem) for problem in inspect(model).rows.problems)


NAMED = {
    "normal": lambda mu: pm.Normal("y", mu, 1.0, observed=X[:, 0], dims="obs"),
    "mixture": lambda mu: pm.NormalMixture(
        "y", pt.stack([w := pm.Beta("w", 1, 1), 1 - w]), pt.stack([mu, 1.0]), 1.0, observed=X[:, 0], dims="obs"
    ),
    "zero inflated": lambda mu: pm.ZeroInflatedPoisson("y", psi=0.9, mu=pt.exp(mu), observed=G, dims="obs"),
}
RELATIONS = {"replace": Domain(), "add_remove": Domain(neighbours="add_remove", n_max=100)}


@pytest.mark.few(4)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("write", NAMED)
@pytest.mark.parametrize("labels", [True, False])
def test_dimensions_name_rows_and_do_not_count_them(write, labels, relation):
    def build(scale):
        with pm.Model(coords={"obs": range(N)} if labels else {}) as model:
            if not labels:
                model.add_coord("obs", length=N)
            mu = pm.Normal("m")
            NAMED[write](mu * pt.cos(np.pi * model.dim_lengths["obs"]) if scale else mu)
        return model

    assert inspect(build(False), RELATIONS[relation]).rows.problems == ()
    found = inspect(build(True), RELATIONS[relation]).rows.problems
    assert any("the number of rows is used as a value" in str(problem) for problem in found)


def test_under_add_remove_no_length_of_a_dimension_is_a_value():
    with pm.Model(coords={"obs": range(N)}) as model:
        pm.Normal("y", pm.Normal("m") * model.dim_lengths["obs"], 1.0, observed=X[:, 0])
    found = inspect(model, RELATIONS["add_remove"]).rows.problems
    assert any("the number of rows is used as a value" in str(problem) for problem in found)


def test_a_density_written_by_hand_may_not_hold_the_number_of_rows():
    with pm.Model() as model:
        model.add_coord("obs", length=N)
        length = model.dim_lengths["obs"]
        pm.CustomDist("y", pm.Normal("m"), logp=lambda v, m: -((v - m * length) ** 2), observed=X[:, 0], dims="obs")
    found = inspect(model).rows.problems
    assert any("the number of rows is used as a value" in str(problem) for problem in found)


def evaluated(graph, found, parameters):
    inputs = dict(zip(found.stand_ins, parameters, strict=True))
    return graph.eval(inputs, mode="FAST_COMPILE", on_unused_input="ignore")


def scaled():
    s = pm.Normal("s")
    pm.Normal("y", pm.Normal("m", dims="level")[pm.Data("g", G)], s, observed=X[:, 0], dims=None)


def levels():
    pm.Categorical("y", pt.stack([p := pm.Normal("p"), 1 - p]), observed=Y)


@pytest.mark.parametrize(
    ("write", "valid", "invalid"),
    [(scaled, [2.0, np.arange(4.0)], [-2.0, np.arange(4.0)]), (levels, [0.3], [1.3])],
)
def test_parameter_checks_are_kept_beside_the_density(write, valid, invalid):
    found = inspect(build(write)).rows
    assert found.problems == ()
    (term,) = found.terms
    assert {column.leaf for column in found.columns} <= set(ancestors([term.checked])) & set(ancestors([term.logp]))
    np.testing.assert_array_equal(evaluated(term.checked, found, valid), evaluated(term.logp, found, valid))
    with pytest.raises(ParameterValueError):
        evaluated(term.checked, found, invalid)
    evaluated(term.logp, found, invalid)


def overdispersed_of(m):
    with pm.Model() as model:
        excess = pm.Normal("excess", 0, pm.HalfNormal("spread"), shape=m)
        pm.Poisson("y", pt.exp(pm.Normal("rate") + excess), observed=np.zeros(m, dtype=int))
    return integrate(model, "excess", nodes=5)


def mixture_of(m):
    with pm.Model() as model:
        share = pm.Beta("share", 1, 1)
        pm.NormalMixture("y", pt.stack([share, 1 - share]), pm.Normal("mu", shape=2), 1.0, observed=np.zeros(m))
    return model


def censored_of(m):
    with pm.Model() as model:
        pm.Censored("y", pm.Normal.dist(pm.Normal("mu"), 1.0), lower=None, upper=2.0, observed=np.zeros(m))
    return model


@pytest.mark.parametrize("build", [overdispersed_of, mixture_of, censored_of])
def test_a_table_of_one_row_is_read_as_one_of_two(build):
    """Numbers of one element that PyMC writes a density with counted as columns: one row was refused, and two not."""
    domain = Domain(bounds={"y": (0, 9)}, neighbours="add_remove", n_max=9)
    one, two = (inspect(build(m), domain).rows for m in (1, 2))
    assert one.problems == two.problems == ()
    assert [column.name for column in one.columns] == [column.name for column in two.columns] == ["y"]
    assert one.assumptions == two.assumptions


@pytest.mark.parametrize("index", [False, True])
def test_an_array_of_the_only_row_is_a_column_of_it_still(index):
    with pm.Model() as model:
        a, share = pm.Normal("a", shape=3), pm.Beta("share", 1, 1)
        mu = (a[np.array([1])] if index else a.sum() * np.array([0.3]))[:, None] + pm.Normal("b", shape=2)
        pm.NormalMixture("y", pt.stack([share, 1 - share]), mu, 1.0, observed=np.zeros(1))
    found = inspect(model, Domain(bounds={"y": (0, 9)})).rows
    assert len(found.columns) == 2 and not any(column.public for column in found.columns)


@pytest.mark.parametrize("held", ["density", "distribution"])
def test_the_only_row_within_a_function_is_a_column_still(held):
    """A function in Python holds it, and the graph of the variable does not show it."""

    def columns(x):
        with pm.Model() as model:
            mu = pm.Normal("mu")
            if held == "density":
                written = {"logp": lambda value, mean: -((value - mean - x) ** 2)}
            else:
                written = {"dist": lambda mean, size: pm.Normal.dist(mean + pt.constant(x) * 2, 1.0, size=size)}
            pm.CustomDist("y", mu, **written, observed=np.zeros(len(x)))
        found = inspect(model, Domain(bounds={"y": (-5, 5)}, neighbours="add_remove", n_max=9)).rows
        assert not found.problems
        return [float(np.ravel(column.leaf.data)[0]) for column in found.columns]

    for x in (np.array([0.3]), np.array([0.3, 0.4])):
        assert set(columns(x)) & {0.3, 0.6}
