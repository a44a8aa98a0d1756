"""What an inspection finds: columns and levels, and every reason to refuse, with a way out and without a value."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dp import Domain
from pymc_dp.errors import DomainError, UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics

N = 6
CANARY = 987654.25
Y = np.array([0, 1, 1, 0, 1, 1])
GROUP = np.array([0, 1, 2, 0, 1, 2])
VALUE = np.array([CANARY, 1.0, 2.0, 3.0, 4.0, 5.0])
ADD_REMOVE = Domain(neighbours="add_remove", n_max=100)


def problems_of(model, domain=None):
    """Every problem, as the user sees them."""
    with pytest.raises(UnsupportedModelError) as caught:
        plan_release(inspect(model, domain).sums, Statistics(), 1.0)
    text = str(caught.value)
    assert str(CANARY) not in text
    assert "987654" not in text + repr(inspect(model, domain).sums.problems)
    assert all(problem.where and problem.remedy.endswith(".") for problem in caught.value.problems)
    return text


def scalar(model):
    return pm.Normal("mu", model=model)


def latent_per_row(model):
    z = pm.Normal("z", shape=N)
    pm.Bernoulli("y", logit_p=z, observed=Y)


def latent_per_row_by_dim(model):
    z = pm.Normal("z", dims="row")
    pm.Bernoulli("y", logit_p=z, observed=Y, dims="row")


def minibatch(model):
    batch = pm.Minibatch(VALUE, batch_size=2)
    pm.Normal("y", pm.Normal("mu"), 1, observed=batch, total_size=N)


def total_size(model):
    pm.Normal("y", pm.Normal("mu"), 1, observed=VALUE, total_size=100)


def time_series(model):
    pm.GaussianRandomWalk("y", 0, pm.HalfNormal("s"), init_dist=pm.Normal.dist(), observed=VALUE)


def multivariate(model):
    pm.MvStudentT("y", nu=4, mu=pm.Normal("mu", shape=2), scale=np.eye(2), observed=np.zeros((N, 2)))


def centred_index(model):
    g = pm.Data("g", GROUP)
    pm.Normal("y", pm.Normal("b") * (g - g.mean()), 1, observed=VALUE)


def private_prior(model):
    x = pm.Data("x", VALUE, dims="row")
    pm.Normal("y", pm.Normal("mu", x.mean(), 1), 1, observed=VALUE, dims="row")


def private_prior_by_observed(model):
    x = pm.Data("x", VALUE)
    pm.Normal("y", pm.Normal("mu", x.mean(), 1), 1, observed=x)


def private_prior_by_array(model):
    pm.Normal("y", pm.Normal("mu", pt.as_tensor(VALUE).mean(), 1), 1, observed=VALUE)


def private_potential(model):
    mu = pm.Normal("mu")
    pm.Potential("extra", -((mu - VALUE[:3]) ** 2).sum())
    pm.Bernoulli("y", logit_p=mu, observed=Y)


def private_potential_by_data(model):
    mu, held = pm.Normal("mu"), pm.Data("held", Y)
    pm.Potential("extra", mu * held.sum())
    pm.Bernoulli("y", logit_p=mu, observed=held)


def private_shape(model):
    held = pm.Data("held", Y)
    pm.Normal("z", shape=held.sum())
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=held)


def private_initval(model):
    held = pm.Data("held", VALUE)
    mu = pm.Normal("mu", initval=held.mean())
    pm.Normal("y", mu, 1, observed=held)


def row_initval(model):
    pm.Normal("z", shape=N, initval=VALUE)
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=Y)


def continuous_covariate(model):
    x = pm.Data("x", VALUE)
    pm.Bernoulli("y", logit_p=pm.Normal("b") * x, observed=Y)


def unnamed_covariate(model):
    pm.Bernoulli("y", logit_p=pm.Normal("b") * VALUE, observed=Y)


def unbounded_discrete_covariate(model):
    x = pm.Data("x", GROUP)
    pm.Bernoulli("y", logit_p=pm.Normal("b") * x, observed=Y)


def array_without_rows(model):
    weights = pm.Data("weights", VALUE[:3])
    pm.Bernoulli("y", logit_p=pm.Normal("b") * weights[GROUP], observed=Y)


def matrix_of_columns(model):
    x = pm.Data("x", np.zeros((N, 2), dtype=int))
    pm.Bernoulli("y", logit_p=(pm.Normal("b", shape=2) * x).sum(axis=1), observed=Y)


def index_off_the_axis(model):
    g = pm.Data("g", GROUP)
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[g - 1], observed=Y)


def scalar_observation(model):
    pm.Normal("y", pm.Normal("mu"), 1, observed=CANARY)


def different_lengths(model):
    mu = pm.Normal("mu")
    pm.Normal("y", mu, 1, observed=VALUE)
    pm.Normal("w", mu, 1, observed=VALUE[:4])


def no_rows(model):
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(0, dtype=int))


def nothing_observed(model):
    pm.Normal("mu")


def unknown_likelihood(model):
    pm.StudentT("y", 3, mu=pm.Normal("mu"), sigma=1, observed=VALUE)


def mixture(model):
    pm.NormalMixture("y", w=pm.Dirichlet("w", np.ones(2)), mu=pm.Normal("mu", shape=2), sigma=1, observed=VALUE)


def censored(model):
    pm.Censored("y", pm.Normal.dist(pm.Normal("mu"), 1), lower=0, upper=9, observed=VALUE)


def look_alike(model):
    def logp(value, mu):
        return -((value - mu) ** 4)

    pm.CustomDist("y", pm.Normal("mu"), logp=logp, class_name="normal", observed=VALUE)


def unbounded_normal(model):
    pm.Normal("y", pm.Normal("mu"), 1, observed=VALUE)


def unbounded_count(model):
    pm.Poisson("y", pm.Gamma("rate", 1, 1), observed=Y)


def unregistered_draw(model):
    pm.Bernoulli("y", logit_p=pm.Normal.dist() + pm.Normal("mu"), observed=Y)


def hidden_in_a_custom_prior(model):
    pm.CustomDist(
        "mu", logp=lambda value: -((value - VALUE.mean()) ** 2) + 0 * pt.as_tensor(VALUE).sum(), signature="->()"
    )
    pm.Bernoulli("y", logit_p=model["mu"], observed=Y)


REFUSED = {
    latent_per_row: ["z", "one latent per row", "dp.integrate(model, 'z')"],
    latent_per_row_by_dim: ["z", "one latent per row", "dp.integrate(model, 'z')"],
    minibatch: ["y", "minibatch", "Pass the whole column"],
    total_size: ["y", "not a plain distribution"],
    time_series: ["y", "Time series of rows are not supported"],
    multivariate: ["y", "2 dimensions", "one observed variable per column"],
    centred_index: ["y", "runs over the rows", "numbers that anyone may know"],
    private_prior: ["mu", "'x'", "prior of 'mu'", "known beforehand"],
    private_prior_by_observed: ["mu", "private data ('x')", "prior of 'mu'", "known beforehand"],
    private_prior_by_array: ["mu", "may hold rows", "prior of 'mu'", "Domain(public=['x'])"],
    private_potential: ["extra", "Potential 'extra'", "Domain(public=['x'])"],
    private_potential_by_data: ["extra", "private data ('held')", "Potential 'extra'"],
    private_shape: ["z", "private data ('held')", "prior of 'z'"],
    private_initval: ["mu", "private data ('held')", "initial value of 'mu'"],
    row_initval: ["z", "initial value", "Leave initval out"],
    continuous_covariate: ["y", "'x' has no bounds", "public=['x']"],
    unnamed_covariate: ["y", "has no name", "x = pm.Data('x', x)", "bounds={'x': (low, high)}"],
    unbounded_discrete_covariate: ["y", "range of the private column 'x'", "Domain(bounds={'x': (low, high)})"],
    array_without_rows: ["y", "'weights'", "does not have the row axis", "Domain(public=['weights'])"],
    matrix_of_columns: ["y", "'x' has no bounds", "norms="],
    scalar_observation: ["y", "scalar", "one value per row"],
    different_lengths: ["{'y': 6, 'w': 4}", "np.repeat([0, 1], [len(y), len(w)])"],
    no_rows: ["0 rows", "nothing to release"],
    nothing_observed: ["no observed variable", "observed="],
    unknown_likelihood: ["y", "StudentT likelihood is released as a histogram", "Domain(bounds={'y': (low, high)})"],
    mixture: ["y", "Mixture likelihood is released as a histogram", "dp.Histogram([...])"],
    censored: ["y", "Censored likelihood is released as a histogram", "dp.Histogram([...])"],
    look_alike: ["y", "(CustomDist)", "not a plain distribution", "give logcdf"],
    unbounded_normal: ["y", "no bounds", "Domain(bounds={'y': (low, high)})"],
    unbounded_count: ["y", "no upper bound", "Domain(bounds={'y': (0, high)})"],
    unregistered_draw: ["y", "random draw", "Register"],
    hidden_in_a_custom_prior: ["mu", "cannot be followed", "Use a distribution"],
}


@pytest.mark.few(22)
@pytest.mark.parametrize("build", REFUSED, ids=lambda build: build.__name__)
def test_what_cannot_be_proved_is_refused_with_a_way_out(build):
    with pm.Model(coords={"row": range(N)}) as model:
        build(model)
    text = problems_of(model)
    for part in REFUSED[build]:
        assert part in text, text


def test_a_computed_index_must_stay_on_its_axis():
    with pm.Model() as model:
        index_off_the_axis(model)
    text = problems_of(model, Domain(bounds={"g": (0, 2)}))
    assert "runs over -1..1" in text
    assert "axis of length 3" in text
    assert inspect(model, Domain(bounds={"g": (1, 3)})).sums.problems == ()


@pytest.mark.parametrize("filled", ["masked", "nan"])
def test_missing_values_are_refused_before_anything_is_spent(filled):
    values = np.ma.masked_array(VALUE, mask=Y) if filled == "masked" else np.where(Y, np.nan, VALUE)
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        pm.Normal("y", pm.Normal("mu"), 1, observed=values)
    text = problems_of(model)
    assert "y: it has masked or NaN values" in text
    assert "leave rows without it out, if it is public which these are" in text and "dp.fill" not in text


@pytest.mark.filterwarnings("ignore")
def test_missing_covariates_with_a_prior_are_to_be_filled():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, observed=np.where(Y, np.nan, VALUE))
        pm.Normal("y", pm.Normal("mu") + x, 1, observed=VALUE)
    text = problems_of(model)
    assert "A missing covariate is dp.fill(model, {'x': 0.0})" in text and "outcome" not in text


@pytest.mark.parametrize(
    ("bounds", "texts"),
    [
        ({"g": (0, 5)}, ["(0, 5)", "axis of length 3", "within (0, 2)"]),
        ({"g": (-1, 2)}, ["(-1, 2)", "axis of length 3"]),
        ({"g": (0.5, 2)}, ["whole numbers"]),
        ({"g": (0, 10**12)}, ["1e+12", "levels", "Merge"]),
        ({"y": (0, 5)}, ["(0.0, 5.0)", "0..1", "Leave the bounds out"]),
    ],
)
def test_bounds_must_fit_the_model(bounds, texts):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[pm.Data("g", GROUP)], observed=Y)
    text = problems_of(model, Domain(bounds=bounds))
    for part in texts:
        assert part in text


@pytest.mark.parametrize("bounds", [(-1e200, 1e200), (-1e308, 1e308), (0, 1e-200), (5.0, np.nextafter(5.0, 6))])
def test_extreme_bounds_never_crash(bounds):
    with pm.Model() as model:
        mu, s = pm.Normal("mu"), pm.HalfNormal("s")
        pm.Normal("y", mu, s, observed=VALUE)
        pm.Normal("w", 0.3, s, observed=VALUE)
    inspection = inspect(model, Domain(bounds={"y": bounds, "w": bounds})).sums
    try:
        plan_release(inspection, Statistics(), 1.0)
    except UnsupportedModelError as error:
        assert "too wide or too narrow" in str(error)
        assert "another unit" in str(error)


@pytest.mark.parametrize("bounds", [(-1, 5), (0.5, 5), (0, 2**40)])
def test_bounds_of_counts_are_whole_and_not_negative(bounds):
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 1, 1), observed=Y)
    text = problems_of(model, Domain(bounds={"y": bounds}))
    assert "must be whole numbers, at least 0, at most 536870912" in text
    assert ("of at most 2**29 = 536870912: count in thousands" in text) == (bounds[1] > 2**29)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"bounds": {"agee": (0, 1)}}, ["'agee'", "known: 'y', 'age'", "Did you mean 'age'?"]),
        ({"public": ["agee"]}, ["public", "'agee'", "Did you mean 'age'?"]),
        ({"norms": {"age": 1.0}}, ["norms['age']", "Leave it out"]),
        ({"rows": "rwo"}, ["'rwo'", "Did you mean 'row'?"]),
        ({"public": ["y"]}, ["observed variable 'y'", "protected"]),
    ],
)
def test_unknown_names_come_with_the_nearest(arguments, texts):
    with pm.Model(coords={"row": range(N)}) as model:
        pm.Data("age", GROUP, dims="row")
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=Y, dims="row")
    with pytest.raises(DomainError) as caught:
        inspect(model, Domain(**arguments))
    for part in texts:
        assert part in str(caught.value)


def test_what_is_observed_cannot_be_public_under_another_name():
    with pm.Model() as model:
        held = pm.Data("held", Y)
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=held)
        pm.Bernoulli("w", pm.Beta("q", 1, 1, shape=2)[held], observed=Y)
    assert "'held' is declared public" in problems_of(model, Domain(public=["held"]))


def test_every_problem_is_reported_at_once():
    with pm.Model() as model:
        x = pm.Data("x", VALUE)
        mu = pm.Normal("mu", x.mean(), 1)
        pm.Bernoulli("a", logit_p=mu * x, observed=Y)
        pm.Normal("b", mu, 1, observed=VALUE)
        pm.StudentT("c", 3, mu=mu, sigma=1, observed=VALUE)
    with pytest.raises(UnsupportedModelError) as caught:
        plan_release(inspect(model).sums, Statistics(), 1.0)
    assert {"mu", "a", "b", "c"} <= {problem.where for problem in caught.value.problems}
    assert str(caught.value).endswith("more, in error.problems.")


def test_columns_of_different_length_are_refused():
    with pm.Model(coords={"row": range(N)}) as model:
        g = pm.Data("g", GROUP, dims="row")
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[g], observed=Y, dims="row")
    g.set_value(GROUP[:4].astype(g.type.dtype))
    text = problems_of(model)
    assert "'g' and the observed values have different numbers of rows" in text


def grouped(index, **arguments):
    with pm.Model(coords={"row": [f"person {i}" for i in range(N)], "level": list("abc")}) as model:
        p = pm.Beta("p", 1, 1, dims="level")
        pm.Bernoulli("y", p[index() if callable(index) else index], observed=Y, **arguments)
    return model


@pytest.mark.parametrize("index", [GROUP, lambda: pm.Data("g", GROUP)], ids=["array", "pm.Data"])
def test_an_index_is_a_private_column_over_the_levels_of_its_axis(index):
    inspection = inspect(grouped(index)).sums
    (column,) = inspection.observed[0].columns
    assert inspection.problems == ()
    assert column.levels.tolist() == [0, 1, 2]
    assert (column.public, column.outside, column.dim) == (False, "first", "level")


def test_public_columns_are_clamped_to_their_axis_too():
    inspection = inspect(grouped(lambda: pm.Data("g", GROUP + 5)), Domain(public=["g"])).sums
    assert inspection.observed[0].columns[0].levels.tolist() == [0, 1, 2]


def test_one_row_of_an_unnamed_index_is_private_still():
    """An array of one element is the whole column of a table of one row."""
    with pm.Model(coords={"level": list("abc")}) as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="level")[np.array([2])], observed=[1])
    inspection = inspect(model).sums
    assert [column.levels.tolist() for column in inspection.observed[0].columns] == [[0, 1, 2]]


@pytest.mark.parametrize("how", ["observed", "held", "domain"])
def test_the_dimension_of_rows_is_found_wherever_it_is_written(how):
    with pm.Model(coords={"row": [f"person {i}" for i in range(N)]}) as model:
        held = pm.Data("held", Y, dims=None if how == "observed" else "row")
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("y", p, observed=held, dims="row" if how == "observed" else None)
        pm.Deterministic("constant", pt.zeros(N) + p, dims="row")
    inspection = inspect(model, Domain(rows="row" if how == "domain" else None)).sums
    assert inspection.row_dims == {"row"}
    assert inspection.dropped == ("constant",)
    assert not any("person" in line for line in inspection.assumptions)


@pytest.mark.parametrize(
    "expression",
    [
        lambda p: p[GROUP],
        lambda p: p.sum() * VALUE,
        lambda p: p.sum() * VALUE[:2],
        lambda p: p[np.array([2, 0])],
    ],
)
def test_deterministics_that_hold_arrays_are_left_out(expression):
    """The array is another object than the one in the likelihood, and may be any part of the table."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=3)
        pm.Deterministic("kept", p.sum())
        pm.Deterministic("left out", expression(p))
        pm.Bernoulli("y", p[GROUP], observed=Y)
    assert inspect(model).sums.dropped == ("left out",)


def test_what_is_assumed_public_is_listed():
    with pm.Model(coords={"row": [f"person {i}" for i in range(N)], "level": list("abc")}) as model:
        mu = pm.Normal("mu", 0.125, 7.5, initval=0.25)
        p = pm.Normal("p", mu, 2.25, dims="level")
        pm.Normal("y", p[pm.Data("g", GROUP, dims="row")], 3.75, observed=VALUE, dims="row")
        pm.Potential("soft", -(mu**2))
    lines = inspect(model, Domain(bounds={"y": (0, 100)}, public=["g"])).sums.assumptions
    assert "number of rows: 6" in lines
    text = "\n".join(lines)
    for part in ("0.125", "7.5", "2.25", "3.75", "initial value of mu", "public column g", "bounds of y: (0, 100)"):
        assert part in text
    assert "dimension level: length 3 and its labels" in lines
    assert "the Potential soft" in lines
    assert "person" not in text
    assert "987654" not in text


def test_the_number_of_rows_is_hidden_under_add_remove():
    domain = Domain(bounds={"y": (0, 100)}, neighbours="add_remove", n_max=1000)

    def found(rows):
        with pm.Model(coords={"row": rows, "level": list("abc")}) as model:
            p = pm.Normal("p", dims="level")
            pm.Normal("y", p[pm.Data("g", GROUP[: len(rows)], dims="row")], 1, observed=VALUE[: len(rows)], dims="row")
        inspection = inspect(model, domain).sums
        plan = plan_release(inspection, Statistics(), 1.0)
        return inspection.assumptions, inspection.problems, plan.tables[0].cells.labels, plan.event

    assert found(range(6)) == found(range(5)) == found(range(1)) == found(range(0))


def test_nothing_that_is_said_depends_on_a_value():
    def said(values, group):
        with pm.Model(coords={"level": list("abc")}) as model:
            g = pm.Data("g", group)
            p, mu = pm.Beta("p", 1, 1, dims="level"), pm.Normal("mu", dims="level")
            pm.Bernoulli("y", p[g], observed=(values > 0).astype(int))
            pm.Normal("v", mu[group], 1, observed=values)
            pm.Deterministic("rows", p[g])
        inspection = inspect(model, Domain(bounds={"v": (0, 10)})).sums
        plan = plan_release(inspection, Statistics(), 1.0)
        return [
            inspection.assumptions, inspection.dropped, inspection.private, inspection.problems, repr(plan.event),
            [
                (t.labels, t.cells.labels, t.blocks[0].sensitivity, t.scales.tolist(), repr(t.observed.columns))
                for t in plan.tables
            ],
        ]  # fmt: skip

    assert said(VALUE, GROUP) == said(np.full(N, -np.inf), np.full(N, 2**30))
    assert "987654" not in repr(said(VALUE, GROUP))


def test_inspection_changes_nothing():
    model = grouped(lambda: pm.Data("g", GROUP))
    before = [var.name for var in model.basic_RVs], model.named_vars_to_dims.copy(), len(model.data_vars)
    assert inspect(model).sums.model is model
    assert before == ([var.name for var in model.basic_RVs], model.named_vars_to_dims, len(model.data_vars))


@pytest.mark.parametrize("shape", [{"dims": "g"}, {"shape": 3}, {"shape": (3,)}])
def test_a_truncated_prior_says_its_length_by_dims_or_by_shape(shape):
    with pm.Model(coords={"g": ["a", "b", "c"]}) as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.1, 0.9, **shape)
        group = pm.Data("group", np.array([0, 2, 1]))
        pm.Bernoulli("y", p[group], observed=np.array([0, 1, 1]))
    found = inspect(model).sums
    assert found.problems == ()
    assert found.observed[0].columns[0].levels.tolist() == [0, 1, 2]
