"""Arrays that PyMC makes of no rows are known by what they say; those that may be made of rows are not."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace

from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.made_by_pymc import form_of, without_arrays

pytestmark = pytest.mark.usefixtures("interpreted")
RNG = np.random.default_rng(20)
X, Y, GROUP = RNG.uniform(0.1, 0.7, (30, 2)), RNG.normal(size=30), RNG.integers(0, 6, 30)
BOUNDS = {"X": (0, 1), "y": (-4, 4)}
REPLACE = Domain(bounds=BOUNDS)
REPLACE_Y = Domain(bounds={"y": (-4, 4)})
ADD_REMOVE = Domain(bounds=BOUNDS, neighbours="add_remove", n_max=50)
MADE = {
    "zeros": np.zeros((2, 3)),
    "ones": np.ones(4, dtype=int),
    "an identity": np.eye(3),
    "a triangle of ones": np.tri(3).T,
    "whole numbers in order": np.arange(1, 7),
    "places in a triangle": np.tril_indices(3)[1],
    "frequencies of a basis": np.pi * np.arange(1, 5)[:, None],
    "nodes of a quadrature": np.polynomial.hermite.hermgauss(7)[0],
}
OF_ROWS = {
    "a mean per group": np.array([Y[group == GROUP].mean() for group in range(6)]),
    "rows per group": np.bincount(GROUP, minlength=6),
    "quantiles": np.quantile(Y, [0.25, 0.5, 0.75]),
    "groups that were seen": np.array([1, 0, 1, 1]),
    "years from the first that was seen": np.arange(1987, 1993),
    "places of some rows": np.array([2, 5, 6]),
    "distances": np.abs(np.subtract.outer(Y, Y))[:10, :10],
    "almost ones": np.array([1.0, 1.0, 1 + 1e-15]),
}


@pytest.mark.parametrize("name", MADE)
def test_what_code_makes_of_lengths_alone_is_known(name):
    assert form_of(MADE[name]) == name


def test_whole_numbers_in_order_may_lie_along_any_axis():
    for values in (np.arange(4)[None, :], np.arange(1, 5)[:, None]):
        assert form_of(values) == "whole numbers in order"
    assert form_of(np.arange(4).reshape(2, 2)) is None


@pytest.mark.parametrize("name", OF_ROWS)
def test_what_is_made_of_rows_is_not_known(name):
    assert form_of(OF_ROWS[name]) is None


def curve(*, public_first=False, dims=1, **box):
    with pm.Model() as model:
        cov = pm.gp.cov.Matern52(dims, ls=pm.Exponential("ell", 1))
        gp = pm.gp.HSGP(m=[4, 3][:dims], cov_func=cov, **box)
        if public_first:
            gp.prior_linearized(np.array([[0.0] * dims, [1.0] * dims]))
        f = gp.prior("f", X=pm.Data("X", X[:, :dims]))
        pm.Normal("y", f, pm.HalfNormal("sd", 1), observed=Y)
    return model


@pytest.mark.parametrize(("dims", "domain"), [(1, REPLACE), (2, ADD_REMOVE)], ids=["replace", "add_remove"])
def test_a_basis_is_placed_by_public_bounds(dims, domain):
    """PyMC computes the centre from the rows, as a number that no longer shows where it is from."""
    (problem,) = inspect(curve(c=1.5, dims=dims), domain).rows.problems
    assert problem.kind == "cause" and "gp.prior_linearized(np.array([[0.0], [1.0]]))" in problem.remedy
    found = inspect(curve(c=1.5, dims=dims, public_first=True), domain).rows
    assert not found.problems
    ends = f"from {[-0.25] * dims} to {[1.25] * dims}"
    assert any("basis of X" in line and ends in line for line in found.assumptions)


def test_a_basis_reaches_the_bounds():
    (problem,) = inspect(curve(public_first=True, L=[0.4]), REPLACE).rows.problems
    assert "less than that of its bounds" in problem.what and "L=[0.5]" in problem.remedy


def test_a_tile_is_written_anew_with_the_same_values():
    column = pt.matrix("column", shape=(None, 1))
    tile = pt.tile(column, 3) + 1.0
    (found,) = without_arrays([tile], [column])
    assert found is not tile
    graphs = [clone_replace([one], {column: pt.constant(X[:, :1])}, rebuild_strict=False)[0] for one in (tile, found)]
    np.testing.assert_array_equal(*(graph.eval(mode="FAST_COMPILE") for graph in graphs))


def effects(kind):
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        if kind != "LKJCholeskyCov":
            packed = pm.Normal("packed", shape=3)
            chol = pm.math.expand_packed_triangular(2, packed)
        if kind == "other places":
            chol = pt.set_subtensor(pt.zeros((2, 2))[np.array([0, 1, 1]), np.array([0, 1, 0])], packed)
        effect = pt.dot(chol, pm.Normal("z", shape=(6, 2)).T).T
        group = pm.Data("group", GROUP)
        pm.Normal("y", effect[group, 0], 1.0, observed=Y)
    return model


@pytest.mark.parametrize("kind", ["LKJCholeskyCov", "expand_packed_triangular"])
def test_effects_that_are_not_centred_are_no_arrays_of_rows(kind):
    assert not inspect(effects(kind), REPLACE_Y).sums.problems


def test_other_places_may_be_made_of_rows():
    (problem,) = inspect(effects("other places"), REPLACE_Y).sums.problems
    assert "does not have the row axis" in problem.what


def test_an_array_of_floats_without_rows_is_refused_with_the_line_to_paste():
    with pm.Model() as model:
        u = RNG.normal(size=6)
        pm.Normal("y", pm.Normal("a") * pt.constant(u)[pm.Data("group", GROUP)], 1.0, observed=Y)
    (problem,) = inspect(model, REPLACE_Y).sums.problems
    assert "x = pm.Data('x', x) in the model, dp.Domain(public=['x'])" in problem.remedy
    with pm.Model() as named:
        u = pm.Data("u", u)
        pm.Normal("y", pm.Normal("a") * u[pm.Data("group", GROUP)], 1.0, observed=Y)
    assert not inspect(named, Domain(bounds={"y": (-4, 4)}, public=["u"])).sums.problems
    (problem,) = inspect(model, Domain(bounds={"y": (-4, 4)}, neighbours="add_remove", n_max=50)).sums.problems
    assert "public=" not in problem.remedy and "pt.stack" in problem.remedy


def test_a_basis_of_some_columns_has_no_known_box():
    with pm.Model() as model:
        gp = pm.gp.HSGP(m=[3], c=1.5, cov_func=pm.gp.cov.Matern52(2, ls=1.0, active_dims=[1]))
        pm.Normal("y", gp.prior("f", X=pm.Data("X", X)), 1.0, observed=Y)
    (problem,) = inspect(model, REPLACE).rows.problems
    assert "active_dims" in problem.remedy


def test_a_basis_of_columns_side_by_side_has_the_bounds_of_each():
    """What the text tells to write, with numbers in it, works."""

    def places(first=None):
        with pm.Model() as model:
            gp = pm.gp.HSGP(m=[4, 3], L=[2, 3], cov_func=pm.gp.cov.Matern52(2, ls=pm.Exponential("ell", 1)))
            if first is not None:
                gp.prior_linearized(np.array(first))
            f = gp.prior("f", X=pt.stack([pm.Data("east", X[:, 0]), pm.Data("north", X[:, 1])], axis=1))
            pm.Normal("y", f, pm.HalfNormal("sd", 1), observed=Y)
        return model

    domain = Domain(bounds={"east": (0, 1), "north": (-1, 2), "y": (-4, 4)})
    (problem,) = inspect(places(), domain).rows.problems
    assert "gp.prior_linearized(np.array([[0.0, -1.0], [1.0, 2.0]]))" in problem.remedy
    assert not inspect(places([[0.0, -1.0], [1.0, 2.0]]), domain).rows.problems
    (unbounded,) = inspect(places([[0.0, -1.0], [1.0, 2.0]]), Domain(bounds={"east": (0, 1)})).rows.problems
    assert "np.array([[low, low], [high, high]])" in unbounded.remedy


@pytest.mark.parametrize(
    "joined",
    [
        lambda eta: pt.concatenate([pt.zeros((30, 1)), eta], axis=1),
        lambda eta: pt.concatenate([eta, pt.full((30, 2), 1.5)], axis=1),
        lambda eta: pt.stack([pt.zeros(30), eta[:, 0]], axis=1),
        lambda eta: pt.stack([eta[:, 0], pt.ones(30), eta[:, 1]]).T,
    ],
)
def test_a_number_beside_columns_is_as_long_as_they_are(joined):
    """A category that others are compared with; its length, which a graph has as a number, is of the table."""
    rows = pt.matrix("rows", shape=(None, 2))
    written = joined(rows)
    (same,) = without_arrays([written])
    np.testing.assert_array_equal(same.eval({rows: X}), written.eval({rows: X}))
    assert len(same.eval({rows: X[:7]})) == 7, "any number of rows"
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        pm.Categorical("y", logit_p=joined(b * pm.Data("X", X)), observed=GROUP % 2)
    assert not inspect(model, Domain(bounds=BOUNDS)).rows.problems
