"""Under add_remove nothing that a model is told depends on how its lengths compare with the number of rows."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect

K = 4
LENGTHS = (1, 2, K - 1, K, K + 1, 2 * K)
OFFSETS = np.array([0.3, -1.2, 0.7, 2.9])
RNG = np.random.default_rng(3)
TABLE = RNG.normal(size=(2 * K, K + 1))
GROUPS = np.arange(2 * K) % K


def mean_of(write):
    """A normal likelihood whose mean is written from the group and a number of each row."""

    def build(n, data):
        g, x = data("g", GROUPS[:n]), data("x", TABLE[:n, 1])
        pm.Normal("y", write(g, x, n), 1.0, observed=TABLE[:n, 0])

    return build


def wide(n, data):
    pm.Normal("y", data("X", TABLE[:n, :K]) @ pm.Normal("b", shape=K), 1.0, observed=TABLE[:n, K])


def vectors(n, data, identity=pt.eye):
    pm.MvNormal("y", pm.Normal("mu", shape=K), identity(K), observed=data("Y", TABLE[:n, :K]))


def levels(n, data):
    p = pm.Dirichlet("p", pt.ones(K), dims=("level", "level"))
    pm.Categorical("y", p[data("g", GROUPS[:n])], observed=GROUPS[::-1][:n])


def mixed(n, data):
    centres = pm.Normal("c", OFFSETS, 1.0, shape=K)
    pm.NormalMixture("y", np.full(K, 1 / K), centres, 1.0, observed=data("Y", TABLE[:n, 0]))


def censored(n, data):
    rate = pm.Gamma("rate", 2, 1, dims="level")[data("g", GROUPS[:n])]
    pm.Censored("y", pm.Exponential.dist(rate), lower=None, upper=9.0, observed=np.abs(TABLE[:n, 0]))


def hidden_size(n, data):
    pm.Normal("y", pt.full((n,), pm.Normal("b")) + data("x", TABLE[:n, 1]), 1.0, observed=TABLE[:n, 0])


ACCEPTED = {
    "a column": mean_of(lambda g, x, n: pm.Normal("b") * x),
    "an index": mean_of(lambda g, x, n: pm.Normal("b", dims="level")[g] + x),
    "zero for the first": mean_of(
        lambda g, x, n: pt.concatenate([pt.zeros(1), pm.Normal("b", shape=K - 1) + pm.Normal("a", dims="level")[1:]])[g]
    ),
    "zeros, filled": mean_of(
        lambda g, x, n: (pt.set_subtensor(pt.zeros(K)[1:], pm.Normal("b", shape=K - 1)) + pm.Normal("a", dims="level"))[
            g
        ]
    ),
    "as many zeros": mean_of(
        lambda g, x, n: (pt.concatenate([pt.zeros(K), pm.Normal("b", shape=K)]) + pm.Normal("a", dims="twice"))[g]
    ),
    "of the length of rows": hidden_size,
    "marks of levels": mean_of(
        lambda g, x, n: pt.eq(g[:, None], pt.arange(K)[None]).astype("float64") @ pm.Normal("b", shape=K)
    ),
    "wide": wide,
    "vectors": vectors,
    "levels": levels,
}


def of_a_transform(n, data):
    def dist(mu, size):
        return pm.math.exp(pm.Normal.dist(mu, 1.0, size=size))

    pm.CustomDist("y", pm.Normal("b"), dist=dist, observed=data("Y", np.abs(TABLE[:n, 0]) + 0.1))


ACCEPTED |= {"censored": censored, "of a transform": of_a_transform}
REFUSED = {
    "numbers of groups": mean_of(lambda g, x, n: (pm.Normal("b") * OFFSETS)[g]),
    "a sum over rows": mean_of(lambda g, x, n: pm.Normal("b") * pt.full_like(x, 2.0).sum()),
    "a mean over rows": mean_of(lambda g, x, n: pm.Normal("b") + x.mean()),
    "numbers of the components": mixed,
    "an identity from elsewhere": lambda n, data: vectors(n, data, np.eye),
    "a whole array": mean_of(lambda g, x, n: pm.Normal("b") * pt.constant(np.ones(n)).sum()),
}


def told(build, n, *, data=pm.Data):
    """Everything that two inspections say of a table of `n` rows."""
    domain = dp.Domain(bounds={"y": (0, 9)}, neighbours="add_remove", n_max=100)
    with pm.Model(coords={"level": range(K), "other": range(K - 1), "twice": range(2 * K)}) as model:
        build(n, data)
    found = inspect(model, domain).rows
    columns = [(column.name, column.public) for column in found.columns]
    whole = inspect(model, domain).sums
    said = [(item.problems, item.private, item.public, item.dropped, item.assumptions) for item in (found, whole)]
    return said, columns


def constants(name, values):
    return values


@pytest.mark.few(1)
@pytest.mark.parametrize("data", [pm.Data, constants])
@pytest.mark.parametrize("kind", ACCEPTED)
def test_no_length_is_compared_with_the_number_of_rows(kind, data):
    # A number in a density by hand may be the one row that a function holds: of that table there is a column more. One
    # latent, of a table of one row, is a parameter.
    several = kind in ("of a transform", "of the length of rows")
    answers = [told(ACCEPTED[kind], n, data=data) for n in LENGTHS[several:]]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0][0][0] == (), "refused"


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_is_refused_at_every_length(kind):
    # One number without a name may be a number or the one row: of that table the text is another one.
    answers = [told(REFUSED[kind], n) for n in LENGTHS[kind == "a whole array" :]]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0][0][0] != (), "accepted"


def test_columns_of_another_length_are_refused_without_either_length():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("b") * pm.Data("x", TABLE[: K + 1, 1]), 1.0, observed=pm.Data("z", TABLE[:K, 0]))
    (problem,) = inspect(model, dp.Domain(neighbours="add_remove", n_max=100)).rows.problems
    assert "different numbers of rows" in str(problem) and str(K) not in str(problem)


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
        found = inspect(model, dp.Domain(bounds={"y": (-5, 5)}, neighbours="add_remove", n_max=9)).rows
        assert not found.problems
        return [float(np.ravel(column.leaf.data)[0]) for column in found.columns]

    for x in (np.array([0.3]), np.array([0.3, 0.4])):
        assert set(columns(x)) & {0.3, 0.6}
