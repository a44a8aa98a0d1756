"""Before a release: what is chosen where nobody says so, what is cautioned of, and that what is said is true."""

import html
import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.advice.gradients import default_release, with_gradients
from pymc_dp.advice.releases import FRAME_COLUMNS, frame_rows, noise_advice, release_tables
from pymc_dp.advice.samplers import network_parts
from pymc_dp.advice.tightened import with_public
from pymc_dp.errors import PrivacyError, UnsupportedModelError
from pymc_dp.explain import Explanation
from pymc_dp.gradients.choice import Gradients, width_ratio
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.rows import UnreadColumn
from pymc_dp.release.plan import lay_out, plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.rows.gate import read
from tests.advice.conftest import logistic
from tests.gradients.models import bernoulli, negative_binomial, poisson, student_t, two
from tests.networks import COLLIDER, network_model


def _plan(n_rows: int, neighbours: str = "replace"):
    with pm.Model(coords={"level": range(4)}) as model:
        group = pm.Data("group", np.zeros(n_rows, dtype=int))
        p = pm.Beta("p", 1, 1, dims="level")
        pm.Bernoulli("y", p[group], observed=np.zeros(n_rows, dtype=int))
    n_max = {"n_max": n_rows} if neighbours == "add_remove" else {}
    return lay_out(inspect(model, dp.Domain(neighbours=neighbours, **n_max)).sums, Statistics())


def test_noise_falls_with_epsilon_and_is_even_with_sampling_where_it_says():
    plan = _plan(400)
    rows = [dict(zip(FRAME_COLUMNS, row, strict=True)) for row in frame_rows(plan)]
    assert [row["epsilon"] * row["noise_sd"] for row in rows] == pytest.approx([2 * np.sqrt(2)] * 4)
    assert {row["rows_per_cell"] for row in rows} == {100}
    even = float(release_tables(plan)[1].rows[0][-1].removeprefix("ε = "))
    assert 2 * np.sqrt(2) / even == pytest.approx(np.sqrt(100 / 4), rel=0.01)


def _counts(n_variables: int):
    with pm.Model() as model:
        for place in range(n_variables):
            pm.Bernoulli(f"y{place}", pm.Beta(f"p{place}", 1, 1), observed=np.zeros(100, dtype=int))
    return inspect(model, dp.Domain()).sums


def test_gaussian_noise_is_named_where_many_numbers_move_and_by_the_factor_it_has():
    inspection = _counts(40)
    (line,) = noise_advice(inspection, 1.0, 0.0)
    laplace = plan_release(inspection, Statistics(), 1.0).tables[0]
    gaussian = plan_release(inspection, Statistics("gaussian"), 1.0, 1e-6).tables[0]
    sds = 2**0.5 * laplace.scales[0], gaussian.scales[0]
    assert line.startswith(f"Gaussian noise would be {sds[0] / sds[1]:.2g} times smaller at delta=1e-06 ")
    assert f"y0 {sds[0]:.3g} and {sds[1]:.3g}; y1" in line
    assert line.endswith('Statistics(noise="gaussian") with delta=1e-06.')


@pytest.mark.parametrize(
    ("call", "mechanism"),
    [
        ("no mechanism", None),
        ("LaplaceUpdates()", dp.networks.LaplaceUpdates()),
        ("FourierUpdates()", dp.networks.FourierUpdates()),
    ],
)
def test_the_noise_of_a_count_is_what_is_told(call, mechanism):
    """Cells of tables that are made of coefficients have noise from all of them, by the weights that make them."""
    inspection = inspect(network_model(COLLIDER, 100, {"b": 3})).sums
    _, table = network_parts(inspection, 0.5)
    (told,) = [row[3] for row in table.rows if row[0] == call]
    plan = plan_release(inspection, Statistics(mechanism=mechanism), 0.5)
    if call != "FourierUpdates()":
        found = [np.sqrt(2) * scale for table in plan.tables for scale in table.scales]
    else:
        weights = np.concatenate([plan.tables[0].sums.table_weights(place)[0] for place in range(4)])
        found = np.sqrt(2) * plan.tables[0].scales * np.sqrt((weights**2).sum(axis=1))
    ends = [float(item) for item in told.split(" to ")]
    assert [min(found), max(found)] == pytest.approx([ends[0], ends[-1]], rel=0.01)


def test_a_column_taken_as_public_is_never_read():
    opened, names = with_public(inspect(*logistic()).rows)
    assert names == ("X",)
    column = next(column for column in opened.columns if column.name == "X")
    assert isinstance(column, UnreadColumn) and column.public and column.norm == 1.0
    with pytest.raises(PrivacyError, match="taken for public"):
        read(column)


def lines(*args, **budget):
    (found,) = [part for part in dp.explain(*args, **budget)._listings() if part.title.startswith("What dp.sample")]
    return found.lines


def plain(explanation):
    return " ".join(html.unescape(str(explanation.full())).replace("│", " ").split())


@pytest.mark.slow
def test_without_a_delta_the_remedy_is_named():
    text = plain(dp.explain(*student_t()))
    assert "Yes, with a delta > 0: dp.sample(epsilon=..., delta=...) releases noised gradients" in text
    assert "It needs a δ > 0, for example delta=1e-06" in text
    first = lines(*bernoulli())[0]
    assert "the only kind of release at δ = 0; with delta=1e-06 it would be noised gradients, because" in first


def widths(found):
    """Numbers of the line of the page, by release."""
    text = " ".join(html.unescape(str(found)).replace("│", " ").split()).partition("intervals at ε = ")[2]
    number = r"([\d.]+)(?: \([^)]*\))? times (?:as wide as without privacy )?by "
    sums, gradients = (re.search(f"{number}{of}", text) for of in ("exact sums", "noised gradients"))
    return float(sums[1]), float(gradients[1])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_releases_are_shown_with_their_widths_whatever_the_delta(delta):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(400, dtype=int))
    sums, gradients = widths(dp.explain(model, epsilon=0.1, delta=delta))
    assert abs(sums - np.sqrt(1 + 2)) < 0.01
    assert gradients == pytest.approx(width_ratio(1, 400, Budget(0.1, 1e-6), "replace"), rel=0.01)


WITH_DELTA = Budget(1.0, 1e-6)


def coin():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1, 0, 1]))
    return model, None


def linear(predictors, rows=50, sigma=None):
    names = [f"x{i}" for i in range(predictors)]
    with pm.Model() as model:
        b, sigma = pm.Normal("b", shape=predictors), pm.HalfNormal("sigma") if sigma is None else sigma
        mu = sum(b[i] * pm.Data(name, np.zeros(rows)) for i, name in enumerate(names))
        pm.Normal("y", mu, sigma, observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": (-5, 5), **dict.fromkeys(names, (-1, 1))})


@pytest.mark.parametrize("build", [coin, lambda: linear(4)], ids=["coin", "linear"])
def test_exact_sums_stay_where_they_are_best(build):
    found = default_release(*build(), WITH_DELTA)
    assert isinstance(found.statistics, Statistics) and "sufficient statistics" in found.why
    assert (found.delta > 0) == (found.statistics.noise == "gaussian")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("build", "why"),
    [
        (bernoulli, "polynomial in place of the likelihood of y"),
        (poisson, "polynomial in place of the likelihood of y"),
        (two, "polynomial in place of the likelihood of y1"),
        (lambda: linear(21), "21 private predictors"),
        (student_t, "no exact sums to release (y: "),
        (negative_binomial, "no exact sums to release (y: "),
    ],
)
def test_gradients_are_taken_elsewhere_given_a_delta(build, why):
    found = default_release(*build(), WITH_DELTA)
    assert found.statistics == Gradients() and found.delta == WITH_DELTA.delta and why in found.why


def cells(count, *, rate_each, most=10):
    """Poisson counts of few parameters, or of one in each cell."""
    with pm.Model() as model:
        group, kinds = pm.Data("group", np.arange(2000) % count), pt.arange(count)
        level = pm.Normal("level", 0, 1, shape=count) if rate_each else pm.Normal("slope", 0, 0.01) * kinds
        pm.Poisson("y", pm.math.exp(level[group]), observed=np.ones(2000, dtype=int))
    return model, dp.Domain(bounds={"y": (0, most)})


def test_gradients_are_taken_where_many_cells_have_few_parameters():
    found = default_release(*cells(500, rate_each=False), WITH_DELTA)
    assert found.statistics == Gradients() and "intervals by exact sums would be about" in found.why
    for build in (cells(4, rate_each=False, most=4), cells(500, rate_each=True)):
        assert isinstance(default_release(*build, WITH_DELTA).statistics, Statistics)


def groups(rows, *, levels, mean=1.0, sigma=1.0):
    with pm.Model() as model:
        means = pm.Normal("mean", 0, mean, shape=levels)[pm.Data("group", np.arange(rows) % levels)]
        pm.Normal("y", means, pm.HalfNormal("sigma", sigma), observed=np.zeros(rows))
    return model, dp.Domain(bounds={"y": (-5, 5)})


@pytest.mark.parametrize(
    ("build", "epsilon"),
    [
        (lambda: linear(2, 500), 100.0),
        (lambda: linear(2, 5000), 1.0),
        (lambda: groups(5000, levels=10), 3.0),
        (lambda: groups(5000, levels=10, sigma=30.0), 3.0),  # a walk starts within bounds
    ],
)
def test_gradients_are_taken_where_the_noise_on_squares_would_hide_residuals(build, epsilon):
    found = default_release(*build(), Budget(epsilon, 1e-5))
    assert found.statistics == Gradients() and "intervals by noised sums of squares would be about" in found.why


@pytest.mark.parametrize(
    ("build", "epsilon"),
    [
        (lambda: linear(2, 100), 1.0),  # gradients would be wide too, and less sure to be right
        (lambda: linear(2, 500, sigma=1.0), 100.0),  # no squares are needed
        (lambda: groups(200, levels=70), 100.0),  # so many means that a quadratic is off
        (lambda: groups(800, levels=60, mean=50.0), 30.0),  # and a walk may not arrive
        (lambda: groups(800, levels=60), 30.0),  # so many means, and noise on gradients is much too
        (lambda: groups(5000, levels=1), 30.0),  # the noise is small even beside residuals
    ],
)
def test_sums_of_squares_stay_elsewhere(build, epsilon):
    assert isinstance(default_release(*build(), Budget(epsilon, 1e-5)).statistics, Statistics)


def test_how_many_rows_there_are_decides_nothing_where_that_is_private():
    reasons = set()
    for rows in (100, 500, 5000):
        model, domain = linear(2, rows)
        domain = dp.Domain(bounds=dict(domain.bounds), neighbours="add_remove", n_max=5000)
        reasons.add(default_release(model, domain, WITH_DELTA).why)
    assert len(reasons) == 1


@pytest.mark.parametrize("build", [coin, bernoulli, student_t, lambda: linear(21)])
def test_without_a_delta_it_is_exact_sums(build):
    found = default_release(*build(), Budget(1.0))
    assert found.statistics == Statistics() and found.delta == 0


def test_privatize_and_sample_choose_alike(monkeypatch):
    """The kind that is chosen is asked for with the same budget, and noted in the record."""
    asked, (model, domain) = [], bernoulli()

    def noted(self, model, domain, budget, **more):
        asked.append((self, budget))
        raise KeyError

    monkeypatch.setattr(Gradients, "make_private", noted)
    for call in (dp.privatize, dp.sample):
        with pytest.raises(KeyError):
            call(model=model, domain=domain, epsilon=1.0, delta=1e-6)
    assert asked == [(Gradients(), WITH_DELTA)] * 2
    private = dp.privatize(coin()[0], epsilon=1.0, delta=1e-6, ledger=dp.Ledger(1.0, 1e-6))
    record = dp.Release.of(private).record
    assert record.delta == 0 and record.chosen == default_release(*coin(), WITH_DELTA).why


def test_no_row_is_read(monkeypatch):
    def touched(*_):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    found = [default_release(*bernoulli(y=np.full(40, value)), WITH_DELTA) for value in (0, 1)]
    assert found[0] == found[1]


def test_an_error_at_delta_zero_names_gradients_only_where_they_fit():
    error = UnsupportedModelError([])
    (problem,) = with_gradients(error, *student_t()).problems
    assert "Pass delta=1e-06" in problem.remedy
    assert with_gradients(error, student_t()[0], dp.Domain()) is error


N_ROWS = 400
X = np.linspace(0, 10, N_ROWS)
BOTH = {"epsilon": 1.0, "delta": 1e-6}


def of_persons(dtype: str = "int64") -> pm.Model:
    with pm.Model() as model:
        pm.Data("pid", (np.arange(N_ROWS) + 3_000_000_000).astype(dtype))
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(N_ROWS, dtype=int))
    return model


PERSONS = dp.Domain(unit=dp.Unit("pid", max_rows=1), neighbours="add_remove", n_max=5000)


def test_ids_of_32_bits_have_a_line_in_the_explanation():
    found = dp.explain(of_persons(), PERSONS)
    (line,) = found.cautions
    assert line.startswith("pid: ids beyond ±2^31") and "pandas.factorize(ids)[0], or pass ids by rows=" in line
    assert "ids beyond ±2^31" in str(found) and line in " ".join(str(found.full()).replace("│", " ").split())


def by_patient(n_levels: int, *, labels: bool = True) -> pm.Model:
    coords = {"patient": [f"name {k}" for k in range(n_levels)]} if labels else {}
    with pm.Model(coords=coords) as model:
        index = pm.Data("patient_idx", np.arange(N_ROWS) % n_levels)
        z = pm.Normal("z", 0, 1, **({"dims": "patient"} if labels else {"shape": n_levels}))
        pm.Normal("y", 2 * z[index], 1.0, observed=np.zeros(N_ROWS))
    return model


@pytest.mark.few(1)
@pytest.mark.parametrize("budget", [{}, BOTH])
def test_levels_that_are_nearly_as_many_as_rows_may_be_persons(budget):
    found = dp.explain(by_patient(200), dp.Domain(bounds={"y": (-5, 5)}), **budget)
    (line,) = found.cautions
    assert line.startswith("200 levels of patient for 400 rows: their labels and number") and "dp.Unit" in line
    assert "200 levels of patient" in str(found) and "name 7" not in str(found.full())


def curve(mean, **domain) -> Explanation:
    with pm.Model() as model:
        x, a, b, tau = pm.Data("x", X), pm.Normal("a"), pm.Normal("b"), pm.Uniform("tau", 0, 10)
        pm.Normal("y", mean(x, a, b, tau), pm.HalfNormal("s", 1), observed=np.zeros(N_ROWS))
    return dp.explain(model, dp.Domain(bounds={"x": (0, 10), "y": (-5, 5)}, **domain), **BOTH)


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize(
    "mean",
    [
        lambda x, a, b, tau: pm.math.switch(x > tau, a + b * (x - tau), a),
        lambda x, a, b, tau: a + b * pt.maximum(x - tau, 0),
        lambda x, a, b, tau: a + pt.exp(b) * pt.clip(x - tau, 0, 1),
        lambda x, a, b, tau: a + pt.exp(b) * pt.sign(x - tau),
        lambda x, a, b, tau: a + pt.exp(b) * pt.floor(x - tau),
        lambda x, a, b, tau: a + pt.exp(b) * pt.cast(x <= tau, "float64"),
    ],
)
def test_a_change_point_is_to_be_rehearsed(mean):
    found = curve(mean)
    (line,) = found.cautions
    assert line.startswith("the likelihood of y is not smooth in tau: rehearse with dp.plan(...) first")
    assert "not smooth in tau: rehearse with dp.plan(...) first" in str(found)


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize(
    "mean",
    [
        lambda x, a, b, tau: a + pt.exp(b) * pt.maximum(x - 3, 0) + tau,
        lambda x, a, b, tau: pm.math.switch(x > 3, a, pt.exp(b)) + tau,
        lambda x, a, b, tau: a + pt.exp(b) * pt.clip(pt.abs(x), 1, 5) + tau,
        lambda x, a, b, tau: a * pt.clip(pt.sigmoid(b * (x - tau)), 1e-6, 1 - 1e-6),
        lambda x, a, b, tau: a + pt.log(pt.maximum(pt.exp(b * x), 1e-9)) + tau,
        lambda x, a, b, tau: a + pm.math.log1mexp(-pt.exp(b * x)) + tau,
        lambda x, a, b, tau: pt.log(pt.abs(a + b * x)) + tau,
    ],
)
def test_branches_of_columns_and_ends_for_floats_are_smooth_in_parameters(mean):
    assert curve(mean).cautions == ()


def densities():
    yield "censored", lambda m: pm.Censored("y", pm.Normal.dist(m, 1), -2, 2, observed=np.zeros(N_ROWS))
    yield "zero-inflated", lambda m: pm.ZeroInflatedPoisson("y", 0.5, pt.exp(m), observed=np.zeros(N_ROWS, dtype=int))
    yield "hurdle", lambda m: pm.HurdlePoisson("y", 0.5, pt.exp(m), observed=np.zeros(N_ROWS, dtype=int))
    yield "gamma", lambda m: pm.Gamma("y", mu=pt.exp(m), sigma=pt.exp(m / 2), observed=np.ones(N_ROWS))
    yield "laplace", lambda m: pm.Laplace("y", m, 1, observed=np.zeros(N_ROWS))
    yield (
        "own",
        lambda m: pm.CustomDist("y", m, logp=lambda y, m: pm.logp(pm.Normal.dist(m, 1), y), observed=np.zeros(N_ROWS)),
    )
    yield "ordered", lambda m: pm.OrderedLogistic("y", m, [-1.0, 1.0], observed=np.zeros(N_ROWS, dtype=int))


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize(("name", "likelihood"), [*densities()])
def test_guards_of_pymc_are_no_kinks(name, likelihood):
    with pm.Model() as model:
        x = pm.Data("x", X)
        likelihood(pm.Normal("a") + pt.exp(pm.Normal("b")) * x)
    found = dp.explain(model, dp.Domain(bounds={"x": (0, 10), "y": (0, 20)}), **BOTH)
    assert found.gradients.fits and found.cautions == ()
