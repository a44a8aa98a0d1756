"""Tables simulated from a posterior and released again: what is counted, what is refused, and that no row is read."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.kernel.randomness import insecure
from tests.traced import traced

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
DELTA = 1e-6
ROWS = 1500
SEED = 5
DOMAIN = dp.Domain(bounds={"x": (-1, 1)})


def coin(rows=200, ones=0):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=(np.arange(rows) < ones).astype(int))
    return model


def logistic(x=None, y=None, rows=ROWS):
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=2)
        held = pm.Data("x", np.zeros((rows, 2)) if x is None else x)
        pm.Bernoulli("y", logit_p=a + held @ b, observed=np.zeros(rows, dtype=int) if y is None else y)
    return model


def of_coin(statistics=None, epsilon=1.0):
    """A trace of exact sums; beta draws are those of the table without noise, near enough."""
    with dp.testing.insecure_randomness(SEED):
        private = dp.privatize(coin(ones=60), epsilon=epsilon, statistics=statistics)
    return traced(private, {"p": np.random.default_rng(SEED).beta(61, 141, size=400)})


def rehearsed(idata, model, **given):
    return dp.rehearse(idata, model=model, **{"random_seed": SEED, "progressbar": False, **given})


@pytest.fixture(scope="module")
def gradients():
    """A trace of noised gradients whose posterior is normal, about the parameters that made its table."""
    rng = np.random.default_rng(SEED)
    x = rng.uniform(-1, 1, (ROWS, 2))
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-(0.3 + x @ [1.0, -0.5])))).astype(int)
    with dp.testing.insecure_randomness(SEED):
        private = dp.privatize(
            logistic(x, y), epsilon=1.0, delta=DELTA, domain=DOMAIN, statistics=dp.Gradients(steps=20)
        )
    a, b = rng.normal(0.3, 0.1, 400), rng.normal([1.0, -0.5], 0.15, (400, 2))
    return traced(private, {"a": a, "b": b}), logistic(x, y)


@pytest.fixture(scope="module")
def found(gradients):
    return rehearsed(gradients[0], logistic(), tables=12)


@pytest.mark.slow(cases="all")
def test_intervals_of_a_model_that_fits_hold_up(found):
    assert found.tables == 12 and found.parameters == ("a", "b[0]", "b[1]") and found.rows == f"{ROWS} rows"
    assert found.good and 0.75 < found.coverage <= 1
    frame = found.to_dataframe().set_index("parameter")
    assert frame.index.tolist() == ["a", "b[0]", "b[1]", "all"]
    assert frame["width_ratio"].between(0.8, 1.25).all(), "tables are as many rows of the same columns"
    assert frame.loc["all", "coverage"] == pytest.approx(frame["coverage"][:-1].mean())


@pytest.mark.slow(cases="all")
def test_the_number_of_rows_and_the_columns_may_be_given(gradients):
    idata, _ = gradients
    narrow = dp.Gradients(steps=20, columns={"x": pm.Normal.dist(0, 0.2, shape=2)})
    more = rehearsed(idata, logistic(rows=5), n_rows=6000, tables=4)
    assert more.rows == "6000 rows" and 0.3 < more.width_ratio < 0.8 and more.loose == ("x",)
    found = rehearsed(idata, logistic(), statistics=narrow, tables=4)
    frame = found.to_dataframe().set_index("parameter")
    assert found.loose == () and frame.loc["b[0]", "width_ratio"] > 1.5, "columns that hardly vary say less"


def test_exact_sums_that_account_for_their_noise_hold_up():
    found = rehearsed(of_coin(), coin(), tables=25)
    assert found.good and found.parameters == ("p",) and found.tables == 25
    assert 0.75 < found.coverage <= 1 and found.width_ratio == pytest.approx(1, abs=0.1)


def test_noise_that_is_left_out_of_the_likelihood_is_seen():
    found = rehearsed(of_coin(dp.Statistics(noise_aware=False), epsilon=0.1), coin(), tables=40)
    assert not found.good and found.coverage < 0.8 and found.factor > 1.2
    assert found.verdict.startswith("Released intervals are too narrow")


def test_a_seed_decides_and_rows_and_ledgers_do_not_matter(monkeypatch):
    def touched(*args, **kwargs):
        raise AssertionError("rows were read, or a ledger was charged")

    idata = of_coin()
    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    monkeypatch.setattr("pymc_dp.release.paid.noted_release", touched)
    one, two, other = (
        rehearsed(idata, coin(ones=ones), tables=5, random_seed=seed) for ones, seed in ((0, 1), (200, 1), (0, 2))
    )
    assert one.to_dataframe().equals(two.to_dataframe()) and not one.to_dataframe().equals(other.to_dataframe())
    assert insecure() is None


def test_what_sums_cannot_be_simulated_of_is_refused():
    idata = of_coin()
    for given, text in (
        ({"n_rows": 10}, "n_rows= is for noised gradients"),
        ({"statistics": dp.Gradients()}, "idata holds exact sums"),
        ({"domain": dp.Domain(neighbours="add_remove", n_max=300)}, "neighbours, n_max"),
        ({"tables": 1}, "tables must be"),
        ({"interval": 1.0}, "interval must be"),
    ):
        with pytest.raises(dp.errors.ArgumentError, match=text):
            rehearsed(idata, coin(), **given)
    with pytest.raises(dp.errors.ArgumentError, match="no posterior draws of q"), pm.Model() as other:
        pm.Bernoulli("y", pm.Beta("q", 1, 1), observed=np.zeros(3, dtype=int))
        dp.rehearse(idata, progressbar=False)
    with pytest.raises(dp.errors.TraceError, match="no /privacy group"):
        rehearsed(xr.DataTree(), other)


def test_a_regression_by_exact_sums_is_refused():
    x = np.linspace(-1, 1, 100)

    def line(y):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("b") * pm.Data("x", x), pm.HalfNormal("s"), observed=y)
        return model

    bounds = dp.Domain(bounds={"x": (-1, 1), "y": (-3, 3)})
    with dp.testing.insecure_randomness(SEED):
        private = dp.privatize(line(x), epsilon=5.0, domain=bounds, statistics=dp.Statistics())
    idata = traced(private, {"b": np.ones(5), "s": np.ones(5)})
    with pytest.raises(dp.errors.ArgumentError, match=r"sums of products of a regression \(y\)"):
        rehearsed(idata, line(0 * x))


def test_several_releases_and_weighted_rows_are_refused():
    with dp.testing.insecure_randomness(SEED):
        one, two = (dp.privatize(coin(), epsilon=1.0, ledger=dp.Ledger(1.0)) for _ in range(2))
    several = dp.condition(coin(), [dp.Release.of(one), dp.Release.of(two)])
    with pytest.raises(dp.errors.ArgumentError, match="several releases"):
        rehearsed(traced(several, {"p": np.full(5, 0.5)}), coin())
    with pm.Model() as weighed:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(50, dtype=int))
        pm.Data("w", np.ones(50))
    domain = dp.Domain(bounds={"w": (0, 2)}, weights={"y": "w"})
    with dp.testing.insecure_randomness(SEED):
        private = dp.privatize(weighed, epsilon=1.0, domain=domain)
    with pytest.raises(dp.errors.ArgumentError, match="weighted rows"):
        rehearsed(traced(private, {"p": np.full(5, 0.5)}), weighed)
