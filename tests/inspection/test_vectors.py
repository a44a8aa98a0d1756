"""Likelihoods whose rows are vectors: three of them are released; whatever else has two axes is refused as before."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.schema import entries_of
from pymc_dp.release.plan import table_problems

N = 7
GROUP = np.arange(N) % 2
PAIRS = np.full((N, 2), 0.5)
COUNTS = np.full((N, 2), 2)
DOMAIN = dp.Domain(bounds={"y": (0.1, 0.9)})
MATRIX = np.array([[1.0, 0.2], [0.2, 1.0]])


def weights(*shape):
    return pm.Dirichlet("p", np.ones(2), shape=(*shape, 2))


def means(*shape):
    return pm.Normal("mu", shape=(*shape, 2))


def lkj():
    return pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0, shape=2))[0]


def covariance():
    sigma = pm.HalfNormal("sigma", shape=2)
    return pm.math.stack([pm.math.stack([sigma[0] ** 2, 0.0]), pm.math.stack([0.0, sigma[1] ** 2])])


ALLOWED = {
    "multinomial": lambda: pm.Multinomial("y", 4, weights(), observed=COUNTS),
    "multinomial by group": lambda: pm.Multinomial("y", 4, weights(2)[GROUP], observed=COUNTS),
    "normal": lambda: pm.MvNormal("y", means(), covariance(), observed=PAIRS),
    "normal by group": lambda: pm.MvNormal("y", means(2)[GROUP], covariance(), observed=PAIRS),
    "normal by Cholesky factor": lambda: pm.MvNormal("y", means(), chol=covariance(), observed=PAIRS),
    "normal by precision": lambda: pm.MvNormal("y", means(), tau=covariance(), observed=PAIRS),
    "normal by LKJ": lambda: pm.MvNormal("y", means(), chol=lkj(), observed=PAIRS),
    "dirichlet": lambda: pm.Dirichlet("y", pm.HalfNormal("a", 5, shape=2), observed=PAIRS),
    "dirichlet by group": lambda: pm.Dirichlet("y", pm.HalfNormal("a", 5, shape=(2, 2))[GROUP], observed=PAIRS),
}
REFUSED = {
    "Student's t": (lambda: pm.MvStudentT("y", nu=4, mu=means(), scale=covariance(), observed=PAIRS), "2 dimensions"),
    "mixture of multinomials": (
        lambda: pm.DirichletMultinomial("y", 4, pm.HalfNormal("a", shape=2), observed=COUNTS),
        "2 dimensions",
    ),
    "two columns of numbers": (lambda: pm.Normal("y", means(), 1, observed=PAIRS), "2 dimensions"),
    "rows of matrices": (
        lambda: pm.MvNormal("y", means(), covariance(), observed=np.full((N, 3, 2), 0.5)),
        "3 dimensions",
    ),
    "one row": (lambda: pm.MvNormal("y", means(), covariance(), observed=PAIRS[0]), "no axis that counts rows"),
    "a mean per row": (lambda: pm.MvNormal("y", means(N), covariance(), observed=PAIRS), "one latent per row"),
    "a weight per row": (lambda: pm.Multinomial("y", 4, weights(N), observed=COUNTS), "one latent per row"),
    "trials per row": (
        lambda: pm.Multinomial("y", np.full(N, 4), weights(), observed=COUNTS),
        "a private array of numbers has no name",
    ),
    "regression": (
        lambda: pm.MvNormal("y", np.ones((N, 2)) * means(), covariance(), observed=PAIRS),
        "2 dimensions",
    ),
    "unknown trials": (
        lambda: pm.Multinomial("y", pm.Poisson("n", 4), weights(), observed=COUNTS),
        "number of trials",
    ),
}


@pytest.mark.parametrize(
    "made",
    [np.eye(2), np.zeros((2, 2)), MATRIX],
    ids=["identity", "zeros", "others"],
)
def test_short_arrays_are_assumed_public_whatever_they_hold(made):
    with pm.Model() as model:
        pm.MvNormal("y", means(), covariance() + made, observed=PAIRS)
    found = inspect(model, DOMAIN).sums
    assert not any("row axis" in str(problem) for problem in found.problems)
    assert found.private == ("y",)


def test_an_identity_that_is_as_long_as_the_table_is_a_column():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu") * np.ones(N), 1, observed=np.zeros(N))
    assert "unnamed array in y" in inspect(model, DOMAIN).sums.private


@pytest.mark.slow
def test_the_identity_is_released_by_its_statistics():
    with pm.Model() as model:
        pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=PAIRS)
    private = dp.privatize(model, epsilon=1.0, domain=DOMAIN, ledger=dp.Ledger(1.0))
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))


def test_rows_that_are_refused_are_counted_all_the_same():
    with pm.Model() as model:
        pm.MvStudentT("y", nu=4, mu=means(), scale=covariance(), observed=PAIRS)
    assert f"number of rows: {N}" in inspect(model, DOMAIN).sums.assumptions


def problems_of(write, domain):
    with pm.Model() as model:
        write()
    found = inspect(model, domain).sums
    return [str(item) for item in (*found.problems, *table_problems(found))]


@pytest.mark.parametrize("name", ALLOWED)
def test_rows_that_are_vectors_are_a_table(name):
    domain = dp.Domain() if "multinomial" in name else DOMAIN
    assert problems_of(ALLOWED[name], domain) == []


@pytest.mark.parametrize("name", REFUSED)
def test_everything_else_of_two_axes_is_refused(name):
    write, words = REFUSED[name]
    found = problems_of(
        write,
        DOMAIN if "normal" in name or "mean" in name or "one row" in name else dp.Domain(),
    )
    assert any(words in text for text in found), found


def test_rows_along_the_second_axis_are_refused():
    with pm.Model(coords={"row": range(N), "part": range(2)}) as model:
        pm.Multinomial("y", 4, pm.Dirichlet("p", np.ones(N)), observed=COUNTS.T, dims=("part", "row"))
    assert any("counted by 'part'" in str(item) for item in inspect(model, dp.Domain(rows="row")).sums.problems)


def test_only_the_operations_themselves_have_rows_of_vectors():
    unit = [[1, 0], [0, 1]]
    with_vectors = (
        pm.Multinomial.dist(3, [0.5, 0.5]),
        pm.Dirichlet.dist([1, 1]),
        pm.MvNormal.dist([0, 0], unit),
        pm.MvNormal.dist([0, 0], tau=unit),
    )
    without = (
        pm.Normal.dist(),
        pm.MvStudentT.dist(nu=3, mu=[0, 0], scale=unit),
        pm.DirichletMultinomial.dist(3, [1, 1]),
    )
    assert [entries_of(rv) for rv in (*with_vectors, *without)] == [1, 1, 1, 1, 0, 0, 0]
