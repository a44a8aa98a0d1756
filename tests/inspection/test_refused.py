"""What cannot be proved is refused before anything is spent, with a way out and without a value of a row."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import Interval
from pymc.logprob.transforms import Transform
from pytensor import wrap_py
from pytensor.compile.builders import OpFromGraph

import pymc_dp as dp

N, CANARY = 7, 987654.25
Y, GROUP, VALUE = np.resize([0, 1, 1], N), np.arange(N) % 3, np.array([CANARY, *np.linspace(1, 5, N - 1)])
MATRIX, PAIRS = np.column_stack([VALUE, VALUE, VALUE]), np.full((N, 2), 0.5)
WITHIN = {"bounds": {"y": (0, 9)}}
HIDDEN = {"neighbours": "add_remove", "n_max": 100}
DATA, RNG = pm.Data, np.random.default_rng(1)


def answers(logit, data=Y, **given):
    return pm.Bernoulli("y", logit_p=logit, observed=data, **given)


def values(mean, sd=1, **given):
    return pm.Normal("y", mean, sd, **{"observed": VALUE, **given})


def mu(*given, **more):
    return pm.Normal("mu", *given, **more)


def b(*shape):
    return pm.Normal("b", shape=shape)


def length():
    return pm.modelcontext(None).dim_lengths["row"]


def logistic(value, at):
    return pm.logp(pm.Logistic.dist(at, 1.0), value)


def below(value, at):
    return pm.logcdf(pm.Logistic.dist(at, 1.0), value)


def custom(logp=logistic, logcdf=below, **given):
    return pm.CustomDist("y", mu(), logp=logp, logcdf=logcdf, **{"observed": VALUE, **given})


def vectors(mean, covariance=None, observed=PAIRS):
    covariance = pm.math.stack([[pm.HalfNormal("s"), 0.0], [0.0, 1.0]]) if covariance is None else covariance
    return pm.MvNormal("y", mean, covariance, observed=observed)


class RowJacobian(Transform):
    name = "row_jacobian"

    def forward(self, value, *inputs):
        return value

    def backward(self, value, *inputs):
        return value

    def log_jac_det(self, value, *inputs):
        return -((pt.constant(VALUE) - value) ** 2).sum()


@wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])
def add_secret(at):
    return np.asarray(at + VALUE.mean())


def composite():
    s = pt.dscalar()
    values(OpFromGraph([s], [s + pt.constant(VALUE).mean()])(mu()))


def interval():
    rows = pt.constant(VALUE)
    values(mu(transform=Interval(bounds_fn=lambda *_: (rows.min() - 1, rows.max() + 1))))


def prior_of_draws():
    draws = {"random": lambda rng=None, size=None: VALUE.mean(), "support_point": lambda rv, *_: pt.constant(1.0)}
    values(pm.CustomDist("mu", **draws))


BY_SUMS = {
    "latent per row": (lambda: answers(pm.Normal("z", shape=N)), {}, "one latent per row", "dp.integrate(model, 'z')"),
    "latent by dims": (lambda: answers(pm.Normal("z", dims="row"), dims="row"), {}, "one latent per row"),
    "minibatch": (lambda: values(mu(), observed=pm.Minibatch(VALUE, batch_size=2), total_size=N), {}, "minibatch"),
    "total size": (lambda: values(mu(), total_size=100), {}, "not a plain distribution"),
    "series": (
        lambda: pm.GaussianRandomWalk("y", 0, pm.HalfNormal("s"), init_dist=pm.Normal.dist(), observed=VALUE), {},
        "Time series of rows are not supported",
    ),
    "centred inside": (lambda: (g := DATA("g", GROUP), values(b() * (g - g.mean()))), {}, "runs over the rows"),
    "prior of data": (
        lambda: values(mu(DATA("x", VALUE, dims="row").mean(), 1), dims="row"), {}, "'x'", "prior of 'mu'",
        "known beforehand",
    ),
    "prior of what is observed": (
        lambda: (x := DATA("x", VALUE), values(mu(x.mean(), 1), observed=x)), {}, "private data ('x')", "prior of 'mu'",
    ),
    "prior of an array": (
        lambda: values(mu(pt.as_tensor(VALUE).mean(), 1)), {}, "may hold rows", "prior of 'mu'",
    ),
    "potential of an array": (
        lambda: (a := mu(), pm.Potential("extra", -((a - VALUE[:3]) ** 2).sum()), answers(a)), {}, "Potential 'extra'",
    ),
    "potential of data": (
        lambda: (a := mu(), x := DATA("x", Y), pm.Potential("extra", a * x.sum()), answers(a, data=x)), {},
        "private data ('x')", "Potential 'extra'",
    ),
    "shape of data": (
        lambda: (x := DATA("x", Y), pm.Normal("z", shape=x.sum()), pm.Bernoulli("y", 0.5, observed=x)), {},
        "private data ('x')", "prior of 'z'",
    ),
    "start of data": (lambda: (x := DATA("x", VALUE), values(mu(initval=x.mean()), observed=x)), {}, "value of 'mu'"),
    "start of rows": (
        lambda: (pm.Normal("z", shape=N, initval=VALUE), answers(mu())), {}, "initial value", "Leave initval out",
    ),
    "column without bounds": (lambda: answers(b() * DATA("x", VALUE)), {}, "'x' has no bounds", "public=['x']"),
    "array without a name": (lambda: answers(b() * VALUE), {}, "has no name", "x = pm.Data('x', x)"),
    "levels without bounds": (lambda: answers(b() * DATA("x", GROUP)), {}, "range of the private column 'x'"),
    "array without rows": (
        lambda: answers(b() * DATA("w", VALUE[:3])[GROUP]), {}, "does not have the row axis", "Domain(public=['w'])",
    ),
    "matrix without bounds": (lambda: values(DATA("x", MATRIX) @ b(3)), WITHIN, "'x' has no bounds", "norms="),
    "bounds and a norm": (
        lambda: values(DATA("x", MATRIX) @ b(3)), {"bounds": {"x": (-1, 1), "y": (0, 9)}, "norms": {"x": 1}}, "one of",
    ),
    "a norm of nothing": (
        lambda: (DATA("x", MATRIX), values(mu())), {**WITHIN, "norms": {"x": 1.0}}, "its norm is not used",
    ),
    "a norm that 0 is far from": (
        lambda: values(DATA("x", MATRIX) @ b(3)), {"bounds": {"x": (0.5, 1), "y": (0, 9)}, "norms": {"x": 2}}, "'x'",
    ),
    "one value": (lambda: values(mu(), observed=CANARY), {}, "scalar", "one value per row"),
    "other lengths": (
        lambda: (a := mu(), values(a), pm.Normal("w", a, 1, observed=VALUE[:4])), {}, "{'y': 7, 'w': 4}", "np.repeat",
    ),
    "no rows": (lambda: pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=Y[:0]), {}, "0 rows", "nothing to release"),
    "nothing observed": (mu, {}, "no observed variable", "observed="),
    "no bins": (
        lambda: pm.StudentT("y", 3, mu=mu(), sigma=1, observed=VALUE), {}, "StudentT likelihood is released as a hist",
        "Domain(bounds={'y': (low, high)})", "dp.Histogram([...])",
    ),
    "called as another": (
        lambda: pm.CustomDist("y", mu(), logp=lambda v, m: -((v - m) ** 4), class_name="normal", observed=VALUE), {},
        "(CustomDist)", "not a plain distribution", "give logcdf",
    ),
    "real without bounds": (lambda: values(mu()), {}, "no bounds", "Domain(bounds={'y': (low, high)})"),
    "counts without bounds": (
        lambda: pm.Poisson("y", pm.Gamma("r", 1, 1), observed=Y), {}, "no upper bound", "bounds={'y': (0, high)}",
    ),
    "a draw": (lambda: answers(pm.Normal.dist() + mu()), {}, "random draw", "Register"),
    "a prior by hand": (
        lambda: answers(pm.CustomDist("mu", logp=lambda v: -((v - pt.as_tensor(VALUE).mean()) ** 2), signature="->()")),
        {}, "cannot be followed", "Use a distribution",
    ),
    "wide index": (
        lambda: values(b(3)[DATA("g", np.zeros((N, 2), int))].sum(axis=1)), WITHIN, "'g' has 2 dimensions",
    ),
    "index off its axis": (
        lambda: pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[DATA("g", GROUP) - 1], observed=Y),
        {"bounds": {"g": (0, 2)}}, "runs over -1..1", "axis of length 3",
    ),
    "computed index off its axis": (
        lambda: values(pm.Normal("a", shape=7)[pt.floor(DATA("x", VALUE) / 10).astype(int)]),
        {"bounds": {"x": (18, 79), "y": (0, 9)}}, "runs over 1..7",
    ),
    "computed index of no number": (
        lambda: values(pm.Normal("a", shape=7)[pt.floor(1 / (DATA("x", VALUE) - 20)).astype(int)]),
        {"bounds": {"x": (18, 79), "y": (0, 9)}}, "outside the axis of length 7",
    ),
    "computed index without bounds": (
        lambda: values(pm.Normal("a", shape=2)[(DATA("x", VALUE) > 40).astype(int)]), WITHIN, "'x' has no bounds",
    ),
    "bounds beyond the axis": (lambda: answers(b(3)[DATA("g", GROUP)]), {"bounds": {"g": (0, 5)}}, "within (0, 2)"),
    "bounds between": (lambda: answers(b(3)[DATA("g", GROUP)]), {"bounds": {"g": (0.5, 2)}}, "whole numbers"),
    "too many levels": (lambda: answers(b(3)[DATA("g", GROUP)]), {"bounds": {"g": (0, 10**12)}}, "levels", "Merge"),
    "bounds of answers": (lambda: answers(mu()), {"bounds": {"y": (0, 5)}}, "(0.0, 5.0)", "Leave the bounds out"),
    "negative counts": (
        lambda: pm.Poisson("y", pm.Gamma("r", 1, 1), observed=Y), {"bounds": {"y": (-1, 5)}}, "at least 0",
    ),
    "counts too high": (
        lambda: pm.Poisson("y", pm.Gamma("r", 1, 1), observed=Y), {"bounds": {"y": (0, 2**40)}}, "count in thousands",
    ),
    "public by another name": (
        lambda: (x := DATA("x", Y), answers(mu(), data=x), pm.Bernoulli("w", 0.2 + 0.1 * x, observed=Y)),
        {"public": ["x"]}, "'x' is declared public",
    ),
    "cast": (lambda: pm.Poisson("y", 1 + b() ** 2, observed=DATA("d", VALUE)), {"bounds": {"y": (0, 9)}}, "cast"),
    # Composites, by their distribution functions.
    "density of all rows": (
        lambda: custom(lambda v, m: logistic(v - v.mean(), m)), WITHIN, "Take numbers that anyone may know",
    ),
    "function of all rows": (lambda: custom(logcdf=lambda v, m: below(v, m) - pt.max(v)), WITHIN, "runs over the rows"),
    "no function": (lambda: custom(logcdf=None), WITHIN, "(CustomDist)", "give logcdf to pm.CustomDist"),
    "no function in PyMC": (
        lambda: pm.SkewNormal("y", mu=mu(), sigma=1, alpha=1.0, observed=VALUE), WITHIN, "PyMC has no distribution",
    ),
    "a sum of a million": (
        lambda: pm.BetaBinomial("y", 2.0, pm.HalfNormal("s"), 10**6, observed=GROUP), {"bounds": {"y": (0, 10**6)}},
        "reach beyond 2048", "Give lower bounds",
    ),
    "a latent inside": (
        lambda: pm.Censored("y", pm.Normal.dist(pm.Normal("z", shape=N), 1), lower=0, upper=9, observed=VALUE), WITHIN,
        "'z'", "one latent per row",
    ),
    "a column inside": (
        lambda: pm.Truncated("y", pm.StudentT.dist(3.0, mu=b() * DATA("x", VALUE), sigma=1), lower=0, observed=VALUE),
        WITHIN, "'x' is continuous", "public=['x']",
    ),
    "weights without rows": (
        lambda: pm.NormalMixture("y", np.full(40, 1 / 40), pm.Normal("mu", shape=40), 1.0, observed=VALUE), WITHIN,
        "does not have the row axis",
    ),
    "number of rows inside": (
        lambda: pm.Censored("y", pm.Normal.dist(mu() / length(), 1), lower=0, upper=9, observed=VALUE, dims="row"),
        WITHIN, "the number of rows is used as a value",
    ),
    "array in a closure": (
        lambda: (a := pt.as_tensor(np.resize(VALUE, 40)).sum(), custom(logcdf=lambda v, m: below(v, m + a))), WITHIN,
        "does not have the row axis",
    ),
    # Rows that are vectors.
    "Student vectors": (
        lambda: pm.MvStudentT("y", nu=4, mu=pm.Normal("mu", shape=2), scale=np.eye(2), observed=PAIRS), WITHIN,
        "2 dimensions", "one observed variable per column",
    ),
    "two numbers": (lambda: pm.Normal("y", pm.Normal("mu", shape=2), 1, observed=PAIRS), WITHIN, "2 dimensions"),
    "matrices": (lambda: vectors(pm.Normal("m", shape=2), observed=np.full((N, 3, 2), 0.5)), WITHIN, "3 dimensions"),
    "one vector": (lambda: vectors(pm.Normal("m", shape=2), observed=PAIRS[0]), WITHIN, "no axis that counts rows"),
    "a mean per row": (lambda: vectors(pm.Normal("m", shape=(N, 2))), WITHIN, "one latent per row"),
    "trials per row": (
        lambda: pm.Multinomial("y", np.full(N, 4), pm.Dirichlet("p", np.ones(2)), observed=np.full((N, 2), 2)), {},
        "a private array of numbers has no name",
    ),
    "unknown trials": (
        lambda: pm.Multinomial("y", pm.Poisson("n", 4), pm.Dirichlet("p", np.ones(2)), observed=np.full((N, 2), 2)), {},
        "number of trials",
    ),
    # Regressions.
    "kink": (lambda: values(abs(mu() * DATA("x", VALUE))), {"bounds": {"x": (0, 1), "y": (0, 9)}}, "affine"),
    "curve": (lambda: values(pt.exp(mu() * DATA("x", VALUE))), {"bounds": {"x": (0, 1), "y": (0, 9)}}, "affine"),
    "a link of its own": (
        lambda: pm.Bernoulli("y", pm.Beta("p", 1, 1) * pm.math.sigmoid(mu() * DATA("x", VALUE)), observed=Y),
        {"bounds": {"x": (0, 1)}}, "linear predictor",
    ),
    "a spread that varies": (
        lambda: (x := DATA("x", VALUE), values(mu() * x, pt.exp(x))), {"bounds": {"x": (0, 1), "y": (0, 9)}},
        "standard deviation",
    ),
    "no number": (
        lambda: values(mu() * pt.log(DATA("x", VALUE))), {"bounds": {"x": (-2, 2), "y": (0, 9)}},
        "log(x) may be infinite or no number", "'x' (-2, 2)",
    ),
    **{
        f"taken {name}": (
            lambda name=name: values(DATA("x", MATRIX) @ pm.Normal(name, shape=3)),
            {"bounds": {"x": (0, 1), "y": (0, 9)}}, f"'{name}' is taken",
        )
        for name in ("y_shares", "y_covariates", "y_noise_variance")
    },
    **{
        f"taken {name}": (lambda name=name: pm.Bernoulli("y", pm.Beta(name, 1, 1), observed=Y), {}, f"Rename '{name}'")
        for name in ("y_cell", "y_statistic", "y_noise_scale")
    },
    # Ways around the inspection that once worked.
    "prior of draws by hand": (prior_of_draws, WITHIN),
    "rows in a Jacobian": (lambda: values(mu(transform=RowJacobian())), WITHIN),
    "rows in an interval": (interval, WITHIN),
    "a function in Python": (lambda: values(add_secret(mu())), WITHIN),
    "a composite operation": (composite, WITHIN),
    "shared in a prior": (lambda: values(mu(pytensor.shared(VALUE[:5], name="h").sum(), 1)), WITHIN),
    "shared in a likelihood": (lambda: values(mu() + pytensor.shared(np.asarray(VALUE.mean()), name="h")), WITHIN),
    "count of a private column": (
        lambda: values(mu() / pt.sqrt(length()), observed=DATA("held", VALUE, dims="row"), dims="row"), WITHIN,
    ),
    "an asserted shape": (lambda: values(pt.specify_shape(b(3)[DATA("g", GROUP)], (N,))), WITHIN),
    "a name that is public": (
        lambda: values(b(3)[DATA("g", GROUP)] + pt.constant(VALUE, name="g")), {**WITHIN, "public": ["g"]},
    ),
    **{
        f"number of rows in a {where}": (build, HIDDEN)
        for where, build in {
            "prior": lambda: pm.Bernoulli("y", pm.Beta("p", 1, 1 + length()), observed=Y, dims="row"),
            "likelihood": lambda: pm.Bernoulli("y", pm.Beta("p", 1, 1) / pt.sqrt(length()), observed=Y, dims="row"),
            "potential": lambda: (pm.Potential("nudge", -1.0 * length()), answers(mu(), dims="row")),
        }.items()
    },
}  # fmt: skip
X = {"bounds": {"x": (-9, 9), "y": (-9, 9)}}
BY_ROWS = {
    "latents": (lambda: values(pm.Normal("z", shape=N)), WITHIN, "one latent per row"),
    "centred": (lambda: (x := DATA("x", MATRIX), values((x - x.mean(0)) @ b(3))), X, "runs over the rows"),
    "lagged": (lambda: values(b() * pt.concatenate([[0.0], DATA("x", VALUE)[:-1]])), X, "'"),
    "a walk": (
        lambda: pm.GaussianRandomWalk("y", sigma=1, init_dist=pm.Normal.dist(), observed=VALUE), WITHIN,
    ),
    "number of rows": (lambda: values(mu() / DATA("x", VALUE).shape[0]), X, "number of rows"),
    "a length": (lambda: values(mu() * pt.cos(np.pi * length()), dims="row"), WITHIN, "the number of rows is used as"),
    "a length in a density": (
        lambda: (n := length(), custom(lambda v, m: -((v - m * n) ** 2), None, dims="row")), WITHIN,
        "the number of rows is used as a value",
    ),
    "prior of rows": (lambda: values(mu(DATA("x", VALUE).mean(), 1)), X, "reach"),
    "a potential": (lambda: (pm.Potential("p", -DATA("x", VALUE).sum()), values(mu())), X, "reach"),
    "another length": (lambda: values(mu() + DATA("x", VALUE[:4]).sum()), X, "does not have the row axis"),
    "a sum of what is repeated": (lambda: values(DATA("x", VALUE) * pt.sum(b() * pt.ones(N))), X, "over the rows"),
    "a sum of an allocation": (lambda: values(DATA("x", VALUE) + pt.alloc(b(), N).sum()), X, "runs over the rows"),
    "a sum of ones": (lambda: values(DATA("x", VALUE) * pt.full((N,), 2.0).sum() * b()), X, "runs over the rows"),
}  # fmt: skip


def refused(build, domain, texts, **release):
    with pm.Model(coords={"row": [f"person {i}" for i in range(N)]}) as model:
        build()
    neighbours = domain.get("neighbours", "replace")
    ledger = dp.Ledger(1.0, 1e-5, neighbours=neighbours)
    with pytest.raises(dp.errors.UnsupportedModelError) as caught:
        dp.privatize(model, epsilon=1.0, domain=dp.Domain(**domain), ledger=ledger, **release)
    said = "\n".join([str(caught.value), *map(str, caught.value.problems)])
    assert all(text in said for text in texts), said
    assert "987654" not in said and "person 1" not in said
    assert all(problem.where and problem.remedy.endswith(".") for problem in caught.value.problems)
    assert not ledger.history


@pytest.mark.parametrize("name", BY_SUMS)
def test_what_has_no_sums_is_refused_with_a_way_out(name):
    build, domain, *texts = BY_SUMS[name]
    refused(build, domain, texts, statistics=dp.Statistics())


@pytest.mark.parametrize("name", BY_ROWS)
def test_rows_that_hang_together_have_no_gradients_of_their_own(name):
    build, domain, *texts = BY_ROWS[name]
    refused(build, domain, texts, statistics=dp.Gradients(), delta=1e-6)
