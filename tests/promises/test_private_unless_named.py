"""An array with a value per row is private unless ``Domain(public=...)`` names it; a constant is public as it is.

And how many rows there are is private where neighbours have a row more: no shape, label or number shows it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from tests.promises.observed import Plain, differences, held, ledger_of, shown_by_all, shown_by_gradients, shown_by_sums

DELTA = 1e-6
HIDDEN = dp.Domain(neighbours="add_remove", n_max=500)
RNG = np.random.default_rng(20_260_728)
YES = RNG.integers(0, 2, 61)
VALUES = RNG.uniform(-1, 1, 61)
NAMES = np.array([f"Zwentibold the {place}th" for place in range(61)])


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


def seen(model: pm.Model, domain: dp.Domain, delta: float = 0.0) -> Plain:
    return shown_by_all(model, lambda: domain, delta, ())


def texts_of(shown: Plain) -> str:
    """Return everything that is shown as one text."""
    if isinstance(shown, dict):
        return "\n".join(f"{key}: {texts_of(item)}" for key, item in shown.items())
    return "\n".join(map(texts_of, shown)) if isinstance(shown, list | tuple) else str(shown)


def accepts(model: pm.Model, domain: dp.Domain, delta: float = 0.0) -> bool:
    """Whether a release is made."""
    try:
        private(model, domain, delta)
    except dp.errors.UnsupportedModelError:
        return False
    return True


def private(model: pm.Model, domain: dp.Domain, delta: float = 0.0) -> pm.Model:
    ledger = ledger_of(domain, 1.0, delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.errors.PosteriorWarning)  # of what was released
        return dp.privatize(model, epsilon=1.0, delta=delta, domain=domain, ledger=ledger, progressbar=False)


# --- the box of a basis -----------------------------------------------------------------------------------------------


def basis(times: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        cov = pm.gp.cov.Matern52(1, ls=pm.InverseGamma("ell", 3, 1))
        f = pm.gp.HSGP(m=[5], c=1.5, cov_func=cov).prior("f", X=pm.Data("t", times)[:, None])
        pm.Normal("y", f, 1, observed=np.zeros(len(times)))
    return model


BOUNDED = dp.Domain(bounds={"t": (0, 100), "y": (-2, 2)})
TO_100 = np.arange(101.0)
TO_99 = np.minimum(TO_100, 99)
BEYOND = np.concatenate([[-10.0], np.arange(1.0, 100.0), [110.0]])


def test_whether_a_basis_is_accepted_does_not_depend_on_the_extremes_of_rows() -> None:
    assert accepts(basis(TO_100), BOUNDED, DELTA) == accepts(basis(TO_99), BOUNDED, DELTA)


@pytest.mark.parametrize("times", [TO_99, BEYOND], ids=["inside the bounds", "beyond the bounds"])
def test_a_basis_shows_no_extreme_of_rows(times: np.ndarray) -> None:
    shown = texts_of(seen(basis(times), BOUNDED, DELTA))
    assert re.findall(r"(?<![\w.])(?:99(?:\.0)?|-24\.75|123\.75|-40(?:\.0)?|140(?:\.0)?)(?![\w.])", shown) == []


def test_bases_of_all_rows_look_alike() -> None:
    assert differences(seen(basis(TO_100), BOUNDED, DELTA), seen(basis(TO_99), BOUNDED, DELTA)) == []
    assert differences(seen(basis(TO_100), BOUNDED, DELTA), seen(basis(BEYOND), BOUNDED, DELTA)) == []


def test_a_periodic_basis_shows_nothing_of_an_infinite_row() -> None:
    def periodic(last: float) -> pm.Model:
        with pm.Model() as model:
            cov = pm.gp.cov.Periodic(1, period=10, ls=pm.InverseGamma("ell", 3, 1))
            times = pm.Data("t", np.append(np.arange(40.0), last))
            f = pm.gp.HSGPPeriodic(m=3, scale=1.0, cov_func=cov).prior("f", X=times[:, None])
            pm.Normal("y", f, 1, observed=np.zeros(41))
        return model

    assert accepts(periodic(40.0), BOUNDED, DELTA) == accepts(periodic(np.inf), BOUNDED, DELTA)


# --- how many rows there are ------------------------------------------------------------------------------------------


def in_the_likelihood(n: int) -> None:
    mu = pm.Deterministic("mu", pm.Beta("p", 1, 1) * pt.ones(n), dims="person")
    pm.Bernoulli("yes", mu, observed=YES[:n], dims="person")


def beside_the_likelihood(n: int) -> None:
    p = pm.Beta("p", 1, 1)
    pm.Deterministic("mu", p * pt.ones(n), dims="person")
    pm.Bernoulli("yes", p, observed=YES[:n], dims="person")


def beside_without_dims(n: int) -> None:
    p = pm.Beta("p", 1, 1)
    pm.Deterministic("mu", p * pt.ones(n))
    pm.Bernoulli("yes", p, observed=YES[:n])


def a_latent_per_row(n: int) -> None:
    pm.Bernoulli("yes", pm.Beta("p", 1, 1, shape=n), observed=YES[:n])


def a_latent_per_row_beside(n: int) -> None:
    pm.Normal("a", shape=n)
    pm.Bernoulli("yes", pm.Beta("p", 1, 1), observed=YES[:n])


def tiled(n: int) -> None:
    pm.Bernoulli("yes", pt.tile(pm.Beta("p", 1, 1, shape=1), n), observed=YES[:n])


def repeated(n: int) -> None:
    pm.Bernoulli("yes", pt.repeat(pm.Beta("p", 1, 1, shape=1), n), observed=YES[:n])


def indexed_by_who(n: int) -> None:
    a = pm.Beta("a", 1, 1, shape=n)
    pm.Bernoulli("yes", a[pm.Data("who", np.arange(n))], observed=YES[:n])


LENGTHS = [
    in_the_likelihood,
    beside_the_likelihood,
    beside_without_dims,
    a_latent_per_row,
    a_latent_per_row_beside,
    tiled,
    repeated,
    indexed_by_who,
]


def of_length(build: Callable[[int], None], n: int, labels: Any = None) -> pm.Model:
    with pm.Model(coords={"person": np.arange(n) if labels is None else labels[:n]}) as model:
        build(n)
    return model


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("build", LENGTHS)
def test_nothing_shows_how_many_rows_there_are(build: Callable[[int], None], delta: float) -> None:
    one, other = (seen(of_length(build, n), HIDDEN, delta) for n in (60, 61))
    assert differences(one, other) == []


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("build", LENGTHS)
def test_no_array_of_a_private_model_has_the_length_of_the_rows(build: Callable[[int], None], delta: float) -> None:
    """A refusal holds none."""
    model = of_length(build, 61)
    if accepts(model, HIDDEN, delta):
        shapes = held(private(model, HIDDEN, delta), ())["shapes"]
        assert [shape for shape in shapes if re.search(r"\b61\b", shape[0])] == []


def a_labelled_latent_per_row(n: int) -> None:
    pm.Bernoulli("yes", pm.Beta("p", 1, 1, dims="person"), observed=YES[:n], dims="person")


def a_labelled_latent_beside(n: int) -> None:
    pm.Normal("a", dims="person")
    pm.Bernoulli("yes", pm.Beta("p", 1, 1), observed=YES[:n], dims="person")


def a_labelled_latent_with_a_prior(n: int) -> None:
    a = pm.Normal("a", 0, pm.HalfNormal("spread"), dims="person")
    pm.Bernoulli("yes", logit_p=a, observed=YES[:n], dims="person")


def a_labelled_column(n: int) -> None:
    x = pm.Data("x", VALUES[:n], dims="person")
    pm.Bernoulli("yes", logit_p=pm.Normal("a") + pm.Normal("b") * x, observed=YES[:n], dims="person")


LABELLED = [
    in_the_likelihood,
    beside_the_likelihood,
    a_labelled_latent_per_row,
    a_labelled_latent_beside,
    a_labelled_latent_with_a_prior,
    a_labelled_column,
]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("build", LABELLED)
def test_labels_of_rows_occur_nowhere(build: Callable[[int], None], delta: float, relation: Any) -> None:
    model = of_length(build, 61, NAMES)
    bounds = {"x": (-1, 1)} if build is a_labelled_column else {}
    domain = dp.Domain(bounds=bounds, neighbours=relation, n_max=500 if relation == "add_remove" else None)
    assert "Zwentibold" not in texts_of(seen(model, domain, delta))
    if accepts(model, domain, delta):
        assert held(private(model, domain, delta), [b"Zwentibold"])["canaries"] == 0


# --- rows in a prior --------------------------------------------------------------------------------------------------


def first_of_a_column(x: Any) -> Any:
    return pm.Normal("a", x[0], 1)


def mean_of_a_column(x: Any) -> Any:
    return pm.Normal("a", x.mean(), 1)


def around_a_column(x: Any) -> Any:
    return pm.Normal("a", x, 1, shape=(61,)).sum()


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("prior", [first_of_a_column, mean_of_a_column, around_a_column])
@pytest.mark.parametrize("dims", [(None, None), ("person", "person"), ("person", "obs"), ("person", None)])
def test_a_column_in_a_prior_is_refused_whatever_dims_are_called(
    prior: Callable[[Any], Any], dims: tuple[str | None, str | None], relation: Any
) -> None:
    of_x, of_y = dims
    with pm.Model(coords={name: range(61) for name in {of_x, of_y} if name}) as model:
        x = pm.Data("x", VALUES, dims=of_x)
        pm.Normal("y", prior(x), 1, observed=VALUES, dims=of_y)
    hidden = relation == "add_remove"
    domain = dp.Domain(bounds={"y": (-1, 1)}, neighbours=relation, n_max=500 if hidden else None)
    for delta in (0.0, DELTA):
        assert not accepts(model, domain, delta)
        assert not dp.explain(model, domain, delta=delta).ok


# --- constants without a name -----------------------------------------------------------------------------------------


def masked(mask: list[int], *, in_prior: bool) -> pm.Model:
    groups = np.arange(30) % 3
    with pm.Model() as model:
        g = pm.Data("g", groups)
        mu = pm.Normal("mu", np.array(mask), 1) if in_prior else pm.Normal("mu", shape=3) * np.array(mask)
        pm.Normal("y", mu[g], 1, observed=np.zeros(30))
    return model


IN_GROUPS = dp.Domain(bounds={"g": (0, 2), "y": (-1, 1)})


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("in_prior", [False, True], ids=["likelihood", "prior"])
@pytest.mark.parametrize("mask", [[0, 1, 0], [0, 1, 2], [1, 1, 1], [0, 3, 1]], ids=str)
def test_numbers_of_a_constant_do_not_decide(mask: list[int], in_prior: bool, delta: float) -> None:
    zeros, other = (masked(numbers, in_prior=in_prior) for numbers in ([0, 0, 0], mask))
    assert accepts(zeros, IN_GROUPS, delta) == accepts(other, IN_GROUPS, delta)


@pytest.mark.parametrize("look", [shown_by_sums, shown_by_gradients])
def test_releases_and_records_do_not_depend_on_the_numbers_of_a_constant(look: Callable[..., Plain]) -> None:
    models = [masked(numbers, in_prior=False) for numbers in ([0, 0, 0], [0, 1, 0])]
    one, other = (look(model, lambda: IN_GROUPS, DELTA, ()) for model in models)
    assert differences(one, other) == []


def test_the_list_of_assumptions_does_not_show_the_numbers_of_a_constant() -> None:
    """They may turn out to be made of rows. A range that is computed from them, as any public number, may show them."""
    models = [masked(numbers, in_prior=False) for numbers in ([0, 0, 0], [0, 1, 0])]
    one, other = (dp.explain(model, IN_GROUPS, delta=DELTA) for model in models)
    assert (one.assumptions, one.private, one.problems) == (other.assumptions, other.private, other.problems)
    assert any("an array of 3 numbers without a name" in line for line in one.assumptions)


# --- persons, and several releases ------------------------------------------------------------------------------------

IDS = np.repeat(np.arange(12), 2)


@pytest.mark.parametrize("levels", [True, False], ids=["levels", "n_max"])
def test_a_parameter_per_person_is_refused(levels: bool) -> None:
    """A second column with the ids of the unit makes a parameter, and a sum, of each person."""
    with pm.Model(coords={"row": range(24)}) as model:
        pm.Data("who", IDS, dims="row")
        person = pm.Data("person", IDS, dims="row")
        pm.Normal("y", pm.Normal("a", shape=12)[person], 1, observed=np.zeros(24), dims="row")
    declared: dict[str, Any] = {"levels": {"who": tuple(range(12))}} if levels else {}
    unit = dp.Unit("who", max_rows=2)
    bounds = {"y": (-1, 1), "person": (0, 11)}
    domain = dp.Domain(unit=unit, neighbours="add_remove", n_max=50 if levels else 12, bounds=bounds, **declared)
    assert not accepts(model, domain)


def test_two_releases_of_the_same_rows_cost_what_both_cost() -> None:
    with pm.Model() as model:
        pm.Bernoulli("yes", pm.Beta("p", 1, 1), observed=YES)
    ledger = dp.Ledger(2.0)
    releases = [dp.Release.of(dp.privatize(model, epsilon=1.0, ledger=ledger)) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.errors.RepeatedReleaseWarning)
        both = dp.condition(model, releases)
    assert dp.Release.of(both).epsilon == 2.0


# --- what a name does -------------------------------------------------------------------------------------------------

RELATIONS: list[dict[str, Any]] = [{}, {"neighbours": "add_remove", "n_max": 500}]
BORDERS = np.diag(np.ones(7), 1) + np.diag(np.ones(7), -1)


def with_borders() -> pm.Model:
    with pm.Model(coords={"area": range(8)}) as model:
        level = pm.ICAR("level", W=BORDERS, dims="area")
        pm.Normal("y", level[pm.Data("g", np.arange(40) % 8)], 1, observed=np.zeros(40))
    return model


def with_a_grid() -> pm.Model:
    with pm.Model(coords={"cell": range(40)}) as model:
        grid = pm.Data("grid", np.linspace(0, 1, 40))
        mean = pm.Normal("a", 0, 1, dims="cell") * grid
        pm.Normal("y", mean[pm.Data("g", np.arange(60) % 40)], 1, observed=np.zeros(60))
    return model


def with_a_number() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, pm.Data("spread", 2.5)), 1, observed=np.zeros(40))
    return model


@pytest.mark.parametrize("relation", RELATIONS, ids=["replace", "add_remove"])
@pytest.mark.parametrize(("build", "name"), [(with_borders, "level"), (with_a_grid, "grid"), (with_a_number, "spread")])
def test_the_line_to_paste_is_all_that_is_needed(
    build: Callable[[], pm.Model], name: str, relation: dict[str, Any]
) -> None:
    bounds = {"y": (-1, 1)}
    with pytest.raises(dp.errors.UnsupportedModelError) as refused:
        private(build(), dp.Domain(bounds=bounds, **relation))
    assert f"dp.Domain(public=[{name!r}])" in str(refused.value)
    assert accepts(build(), dp.Domain(bounds=bounds, public=[name], **relation))


def test_a_column_cannot_be_public_where_rows_come_and_go() -> None:
    with pm.Model() as model:
        x = pm.Data("x", VALUES)
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, 1, observed=VALUES)
    domain = dp.Domain(bounds={"y": (-1, 1)}, public=["x"], neighbours="add_remove", n_max=500)
    with pytest.raises(dp.errors.UnsupportedModelError, match="Leave 'x' out of Domain"):
        private(model, domain)


def test_the_rule_is_stated() -> None:
    shown = str(dp.explain(with_a_number(), dp.Domain(bounds={"y": (-1, 1)}, public=["spread"])).full())
    assert "Every pm.Data is private unless Domain(public=) names it." in " ".join(shown.replace("│", " ").split())


# --- found by hostile readers -----------------------------------------------------------------------------------------

WAITS = np.random.default_rng(0).weibull(2, 40)
NUMBERS = np.random.default_rng(0).normal(size=61)


@pytest.mark.parametrize("inner", [pm.Exponential, pm.Poisson])
def test_whether_anybody_is_censored_decides_nothing(inner: Any) -> None:
    """PyMC leaves an array of limits out where all of them are infinite."""

    def waits(censored: np.ndarray) -> pm.Model:
        values = np.rint(WAITS) if inner is pm.Poisson else WAITS
        with pm.Model() as model:
            upper = np.where(censored, values, np.inf)
            pm.Censored("w", inner.dist(pm.Gamma("rate", 2, 2)), lower=None, upper=upper, observed=values)
        return model

    domain = dp.Domain(bounds={"w": (0, 5)})
    nobody, somebody = (seen(waits(censored), domain, DELTA) for censored in (np.zeros(40, bool), np.arange(40) == 0))
    assert differences(nobody, somebody) == []


@pytest.mark.parametrize("dims", [None, "row"])
def test_lengths_of_two_samples_are_not_compared(dims: str | None) -> None:
    drug = np.arange(41) >= 20

    def samples(n: int) -> pm.Model:
        rows = np.arange(41) < n
        with pm.Model(coords={"row": range((rows & ~drug).sum())}) as model:
            pm.Normal("treated", pm.Normal("a"), 1, observed=NUMBERS[:41][rows & drug])
            pm.Normal("placebo", pm.Normal("b"), 1, observed=NUMBERS[:41][rows & ~drug], dims=dims)
        return model

    domain = dp.Domain(bounds={"treated": (-3, 3), "placebo": (-3, 3)}, neighbours="add_remove", n_max=500)
    assert differences(seen(samples(40), domain), seen(samples(41), domain)) == []


@pytest.mark.parametrize("tie", ["dims", "column", "parent"])
def test_observed_variables_are_tied_by_what_the_model_says(tie: str) -> None:
    with pm.Model(coords={"half": range(2), "row": range(61)}) as model:
        g, dims = pm.Data("g", YES), "row" if tie == "dims" else None
        a, b = (pm.Normal(name, dims="half") for name in "ab")
        parent = pm.Bernoulli("yes", 0.5 if tie != "column" else pm.math.invlogit(a[g]), observed=YES, dims=dims)
        pm.Normal(
            "y", b[parent] if tie == "parent" else b[g] if tie == "column" else 0.0, 1, observed=NUMBERS, dims=dims
        )
    domain = dp.Domain(bounds={"y": (-3, 3), "g": (0, 1)}, neighbours="add_remove", n_max=500)
    problems = dp.explain(model, domain, delta=DELTA).problems
    assert not any("have the same rows" in problem.what for problem in problems)


@pytest.mark.parametrize("where", ["Deterministic", "prior", "Potential"])
def test_the_length_of_a_dimension_is_no_value(where: str) -> None:
    def scaled(n: int) -> pm.Model:
        with pm.Model(coords={"obs": NAMES[:n]}) as model:
            root = pt.sqrt(model.dim_lengths["obs"])
            mu = pm.Normal("mu", 0, 1 / root if where == "prior" else 1.0)
            if where == "Deterministic":
                pm.Deterministic("se", mu / root)
            if where == "Potential":
                pm.Potential("pull", -(mu**2) * root)
            pm.Normal("y", mu, 1, observed=NUMBERS[:n])
        return model

    domain = dp.Domain(bounds={"y": (-3, 3)}, neighbours="add_remove", n_max=500)
    assert differences(seen(scaled(60), domain), seen(scaled(61), domain)) == []


def one_missing(n: int) -> None:
    x = NUMBERS[:n].copy()
    x[0] = np.nan
    pm.Normal("y", pm.Normal("b") * pm.Normal("x", 0, 1, observed=x), 1, observed=NUMBERS[:n])


def marginal_process(n: int) -> None:
    gp = pm.gp.Marginal(cov_func=pm.gp.cov.ExpQuad(1, ls=0.5))
    gp.marginal_likelihood("y", X=NUMBERS[:n, None], y=NUMBERS[:n], sigma=0.1)


def zero_sum_per_row(n: int) -> None:
    pm.Normal("y", pm.ZeroSumNormal("u", shape=n), 1, observed=NUMBERS[:n])


def one_long_row(n: int) -> None:
    pm.MvNormal("y", pt.zeros(n) + pm.Normal("m"), pt.eye(n), observed=NUMBERS[:n])


def evenly_spaced(n: int) -> None:
    pm.Normal("y", pm.Normal("b") * pt.linspace(0, 1, n), 1, observed=NUMBERS[:n])


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.parametrize("build", [one_missing, marginal_process, zero_sum_per_row, one_long_row, evenly_spaced])
def test_a_refusal_shows_no_length(build: Callable[[int], None]) -> None:
    domain = dp.Domain(bounds={"y": (-3, 3)}, neighbours="add_remove", n_max=500)
    one, other = (seen(of_length(build, n), domain, DELTA) for n in (60, 61))
    assert differences(one, other) == []


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_how_many_values_are_missing_is_not_shown() -> None:
    def missing(count: int) -> pm.Model:
        y = NUMBERS[:40].copy()
        y[:count] = np.nan
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("m"), 1, observed=y)
        return model

    domain = dp.Domain(bounds={"y": (-3, 3)})
    assert differences(seen(missing(1), domain), seen(missing(2), domain)) == []


def test_a_variable_that_is_named_names_its_constants_and_no_data() -> None:
    with pm.Model() as model:
        a = pm.Normal("a", pm.Data("x", np.arange(40.0))[:3], np.ones(3), shape=3)
        pm.Normal("y", a[pm.Data("g", np.arange(40) % 3)], 1.0, observed=np.zeros(40))
    domain = dp.Domain(bounds={"y": (-1, 1)}, public=["a", "g"])
    with pytest.raises(dp.errors.UnsupportedModelError, match="'x' reaches the prior of 'a' and is not named"):
        dp.privatize(model, epsilon=1.0, domain=domain)
