"""Published cells and sums of them: against sums over everything that the exact counts may be."""

from functools import partial

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dp as dp

STATED = {"made_by": "an office", "guarantee": "zCDP"}
VALUES, SCALES = np.array([12, -3, 45, 0, 7]), np.array([3.0, 4.0, 0.8, 15.0, 1.0])
RATES, TRIALS = np.array([11.0, 3.0, 44.0, 2.0, 8.0]), np.array([20, 10, 60, 5, 9])
MOST = 500
EXACT = {
    "poisson": (lambda r: pm.Poisson("count", r, dims="a", observed=np.zeros(5, int)), stats.poisson.logpmf),
    "binomial": (
        lambda r: pm.Binomial("count", n=TRIALS, p=r / 60, dims="a", observed=np.zeros(5, int)),
        lambda s, r: stats.binom.logpmf(s, TRIALS, r / 60),
    ),
    "negative binomial": (
        lambda r: pm.NegativeBinomial("count", mu=r, alpha=3.0, dims="a", observed=np.zeros(5, int)),
        lambda s, r: stats.nbinom.logpmf(s, 3.0, 3.0 / (3.0 + r)),
    ),
    "beta-binomial": (
        lambda r: pm.BetaBinomial("count", n=TRIALS, alpha=r, beta=5.0, dims="a", observed=np.zeros(5, int)),
        lambda s, r: stats.betabinom.logpmf(s, TRIALS, r, 5.0),
    ),
    "geometric": (
        lambda r: pm.Geometric("count", p=1 / (1 + r), dims="a", observed=np.ones(5, int)),
        lambda s, r: stats.geom.logpmf(s, 1 / (1 + r)),
    ),
    "bernoulli": (
        lambda r: pm.Bernoulli("count", p=r / 60, dims="a", observed=np.zeros(5, int)),
        lambda s, r: stats.bernoulli.logpmf(s, r / 60),
    ),
    "binomial with unknown trials": (
        lambda r: pm.Binomial("count", n=pm.DiscreteUniform("n", 1, 90), p=r / 60, dims="a", observed=np.zeros(5, int)),
        lambda s, r: stats.binom.logpmf(s, 60, r / 60),
    ),
}


def log_noise(distance, scale, kind):
    """Log probabilities of discrete noise, of which each cell has its scale."""
    near = np.arange(-1000, 1001)[:, None]

    def shape(z):
        return -np.abs(z) / scale if kind == "laplace" else -0.5 * (z / scale) ** 2

    return shape(distance) - logsumexp(shape(near), axis=0)


def noise(distance, scale, kind):
    return np.exp(log_noise(distance, np.array([scale]), kind))


def model_of(likelihood, **coords):
    with pm.Model(coords=coords) as model:
        likelihood(pm.Gamma("r", 2, 0.1, dims=tuple(coords)))
    return model


def terms(model, names, point):
    graphs = [model.logp(vars=[model[name]], sum=False)[0].sum() for name in names]
    return model.compile_fn(graphs, inputs=model.value_vars, on_unused_input="ignore")(point)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_counts_are_summed_out(name, kind):
    likelihood, logpmf = EXACT[name]
    release = dp.Release.of_counts({"count": VALUES}, SCALES, noise=f"discrete {kind}", dims="a", **STATED)
    private = dp.condition(model_of(likelihood, a=range(5)), release)
    point = {"r_log__": np.log(RATES), **({"n": np.array(60)} if "unknown" in name else {})}
    s = np.arange(MOST)[:, None]
    expected = logsumexp(logpmf(s, RATES) + log_noise(VALUES - s, SCALES, kind), axis=0).sum()
    # By its saddle point, a Poisson count under Gaussian noise of 12 and more is off by 1e-4 at most.
    assert terms(private, ["count"], point)[0] == pytest.approx(expected, abs=2e-4 if kind == "gaussian" else 1e-6)
    slopes = private.compile_fn(private.dlogp(vars=[private["r"]]), inputs=private.value_vars, on_unused_input="ignore")
    assert np.isfinite(slopes(point)).all()


TABLE = np.array([[3, 5, 1], [7, -2, 4]])


@pytest.mark.usefixtures("interpreted")
def test_sums_of_normal_cells_are_exact():
    """Cells, rows and a total, all with Gaussian noise, are one normal vector."""
    values = {"count": TABLE + 0.5, "rows": [8.3, 12.2], "total": 21.1}
    scales = {"count": 2.0, "rows": 1.5, "total": 0.8}
    dims = {"count": ("a", "b"), "rows": "a", "total": ()}
    release = dp.Release.of_counts(values, scales, noise="gaussian", dims=dims, **STATED)
    likelihood = partial(pm.Normal, "count", sigma=1.7, dims=("a", "b"), observed=np.zeros((2, 3)))
    private = dp.condition(model_of(lambda r: likelihood(mu=r), a=range(2), b=range(3)), release)
    mean = np.array([[4.0, 6, 2], [6, 1.5, 5]])
    found = sum(terms(private, ["count", "rows", "total"], {"r_log__": np.log(mean)}))
    adds = np.vstack([np.eye(6), np.kron(np.eye(2), np.ones(3)), np.ones(6)])
    covariance = 1.7**2 * adds @ adds.T + np.diag([4.0] * 6 + [2.25] * 2 + [0.64])
    seen = np.concatenate([(TABLE + 0.5).ravel(), [8.3, 12.2, 21.1]])
    assert found == pytest.approx(stats.multivariate_normal.logpdf(seen, adds @ mean.ravel(), covariance), abs=1e-8)
    assert all(not table.approximations for table in dp.Release.of(private).record.tables)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_sums_of_counts_are_nearly_normal_given_the_cells(kind):
    """Fifteen cells in a sum: against convolutions of what each of them is given its own release."""
    rng = np.random.default_rng(3)
    exact = rng.poisson(6, (2, 15))
    cells = exact + np.rint(rng.normal(0, 2, (2, 15)))
    values = {"count": cells, "rows": exact.sum(axis=1) + np.array([1, -2]), "total": exact.sum() + 1}
    scales = {"count": 2.0, "rows": 1.5, "total": 0.8}
    dims = {"count": ("a", "b"), "rows": "a", "total": ()}
    release = dp.Release.of_counts(values, scales, noise=f"discrete {kind}", dims=dims, **STATED)
    likelihood = partial(pm.Poisson, "count", dims=("a", "b"), observed=np.zeros((2, 15), int))
    private = dp.condition(model_of(lambda r: likelihood(r), a=range(2), b=range(15)), release)
    assert all("treated as normal" in table.approximations[0] for table in dp.Release.of(private).record.tables[1:])
    rates, s = rng.gamma(12, 0.5, (2, 15)), np.arange(60)
    rows = []
    for i in range(2):
        row = np.ones(1)
        for j in range(15):
            row = np.convolve(row, stats.poisson.pmf(s, rates[i, j]) * noise(cells[i, j] - s, 2.0, kind))
        rows.append(row)
    places = np.arange(len(rows[0]))
    seen = [row * noise(values["rows"][i] - places, 1.5, kind) for i, row in enumerate(rows)]
    both = np.convolve(*seen)
    whole = (both * noise(values["total"] - np.arange(len(both)), 0.8, kind)).sum()
    steps = np.log([rows[0].sum() * rows[1].sum(), seen[0].sum() * seen[1].sum(), whole])
    found = terms(private, ["count", "rows", "total"], {"r_log__": np.log(rates)})
    assert found[0] == pytest.approx(steps[0], abs=1e-6)
    assert np.allclose(found[1:], np.diff(steps), atol=0.02 if kind == "gaussian" else 0.1)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda r: pm.Gamma("count", r, 1, dims="a", observed=np.ones(5)), "cannot be summed out"),
        (lambda r: pm.Poisson("count", r, dims="a"), "has no observed="),
        (lambda r: pm.Poisson("counts", r, dims="a", observed=np.zeros(5, int)), "no table of this name"),
        (lambda r: pm.Poisson("count", r, observed=np.zeros(5, int)), "its dims are ()"),
    ],
)
def test_likelihoods_that_do_not_fit_are_refused_with_a_way_out(build, match):
    release = dp.Release.of_counts({"count": VALUES}, 4.0, noise="discrete laplace", dims="a", **STATED)
    with pytest.raises(dp.errors.UnsupportedModelError, match=match):
        dp.condition(model_of(build, a=range(5)), release)


def test_sums_that_would_take_too_long_are_refused():
    release = dp.Release.of_counts({"count": VALUES}, 1e4, noise="discrete laplace", dims="a", **STATED)
    with pytest.raises(dp.errors.UnsupportedModelError, match="(?s)Use a Poisson likelihood.*is too long"):
        dp.condition(model_of(EXACT["negative binomial"][0], a=range(5)), release)


def test_exact_sums_that_follow_from_others_are_refused():
    table, dims = np.array([[3, 5, 1], [7, -2, 4]]), {"count": ("a", "b"), "rows": "a", "total": ()}
    release = dp.Release.of_counts(
        {"count": table, "rows": [8, 12], "total": 20},
        {"count": 4.0, "rows": 0.0, "total": 0.0},
        noise="discrete laplace",
        dims=dims,
        **STATED,
    )
    likelihood = partial(pm.Poisson, "count", dims=("a", "b"), observed=np.zeros((2, 3), int))
    with pytest.raises(dp.errors.UnsupportedModelError, match=r"total: it is exact \(scale 0\), and follows from"):
        dp.condition(model_of(lambda r: likelihood(r), a=range(2), b=range(3)), release)
