"""Noised gradients rehearsed on tables from the prior: closed forms against NUTS, and what is said of coverage."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp import Budget
from pymc_dp._random import Insecure, insecure, use_insecure
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import OWN
from pymc_dp.plan.fits import gradient_methods
from pymc_dp.plan.misfit import Misfit, misfit_notes
from pymc_dp.plan.rehearsal import NARROW, Rehearsal, labels, privately, without_privacy
from pymc_dp.plan.result import Recorder
from pymc_dp.simulation.misfit import HEAVIER, OVERDISPERSED, SKEWED_COLUMNS

DELTA = 1e-5
ROWS = 600


def logistic(x=None, y=None, n=ROWS):
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b", shape=2)
        held = pm.Data("x", np.zeros((n, 2)) if x is None else x)
        pm.Bernoulli("y", logit_p=a + held @ b, observed=np.zeros(n, dtype=int) if y is None else y)
    return model


def domain(high=1.0, **more):
    return dp.Domain(bounds={"x": (-high, high)}, **more)


def plan(**given):
    settings = {"delta": DELTA, "statistics": dp.Gradients(steps=20), "repeats": 4, "random_seed": 2, "misfit": False}
    return dp.plan(given.pop("model", None) or logistic(), **{
        "epsilon": [1.0, 8.0], "domain": domain(), "progressbar": False, **settings, **given
    })  # fmt: skip


@pytest.fixture(scope="module")
def planned():
    return plan()


@pytest.fixture(scope="module")
def rehearsal():
    found = Rehearsal(logistic(), domain(), {"gradients": dp.Gradients(steps=20)}, None)
    budgets = found.budgets([8.0], DELTA)
    return found, budgets["gradients", 8.0], found._tables(2, np.random.default_rng(3))


@pytest.mark.slow
def test_budgets_and_narrow_columns_each_have_a_row(planned):
    frame = planned.to_frame()
    narrow = f"gradients, {NARROW}"
    assert frame["method"].tolist() == 2 * ["not private", "gradients", "gradients", narrow, narrow]
    assert frame["variable"].unique().tolist() == ["a", "b"]
    wide = frame[(frame["variable"] == "b") & (frame["epsilon"] == 8.0)].set_index("method")
    assert wide.loc[narrow, "width"] > 3 * wide.loc["gradients", "width"], "columns that hardly vary say less"
    assert (frame[frame["method"] == "gradients"]["width_ratio"] > 0.9).all()
    assert planned.methods == ("gradients",) and planned.suggest(width=10.0, var_name="b").method == "gradients"


@pytest.mark.slow
def test_what_covers_too_little_gets_no_calibrated_label(planned):
    text = " ".join(str(planned).replace("│", " ").split())
    assert text.count("calibrated label") + text.count(": calibrated, as") == 4 and "no row was read" in text
    outcomes = []
    for error, sd in ((0.0, 1.0), (5.0, 1.0), (0.0, 0.8)):
        one = Recorder(["a"], 0.9)
        for _ in range(3):
            one.add_normal({"a": np.array([error])}, {"a": np.array([sd])}, {"a": np.zeros(1)})
        outcomes.append(one.outcome("gradients", 1.0, DELTA))
    good, bad, narrow = labels([outcomes[0], *outcomes], 0.9)
    assert "no calibrated label. Intervals of a are narrower than those without privacy" in narrow
    assert "calibrated, as 90% intervals cover 100%" in good
    assert "no calibrated label. 90% intervals cover 0% in this rehearsal, less than 85%" in bad


@pytest.mark.slow
def test_the_same_seed_gives_the_same_plan_and_leaves_noise_secure(planned):
    assert plan().to_frame().equals(planned.to_frame()) and insecure() is None


@pytest.mark.slow
def test_no_row_is_read_and_values_do_not_matter(planned, monkeypatch):
    def touched(self):
        raise AssertionError("rows were read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    other = logistic(np.full((ROWS, 2), 0.7), np.ones(ROWS, dtype=int))
    assert plan(model=other).to_frame().equals(planned.to_frame())


@pytest.mark.slow
def test_the_private_posterior_is_that_of_the_private_model(rehearsal):
    """The model's own density, with its exact prior, has its mode and its curvature where the closed form says."""
    found, planned, tables = rehearsal
    exact = Prior(mean=np.zeros(3), precision=np.eye(3))
    mean, covariance = privately(planned, exact, tables[0])
    with use_insecure(Insecure(np.random.default_rng(tables[0].seed))):
        model = planned.private(planned.walk(tables[0].rows), "none")
    names = [part.name for part in found.interface.parts]
    assert names == [rv.name for rv in model.free_RVs]
    centre, axes, inverse, _ = (one.get_value() for one in model["b"].owner.inputs[-OWN:])
    point = {"a": np.asarray(mean[0]), "b_whitened__": inverse @ (mean[1:] - centre)}
    slope, bent = model.compile_dlogp()(point), model.compile_d2logp(negate_output=False)(point)
    np.testing.assert_allclose(slope, 0, atol=1e-6)
    turn = np.eye(3)
    turn[1:, 1:] = axes
    np.testing.assert_allclose(turn @ np.linalg.inv(-bent) @ turn.T, covariance, rtol=1e-6, atol=1e-12)


@pytest.mark.slow
def test_the_posterior_without_privacy_is_that_of_nuts(rehearsal):
    _, planned, tables = rehearsal
    exact = Prior(mean=np.zeros(3), precision=np.eye(3))
    mean, covariance = without_privacy(planned, exact, tables[0])
    held = {column.name: rows for column, rows in zip(
        planned.interface.inspection.columns, tables[0].rows, strict=True)}  # fmt: skip
    with logistic(held["x"], held["y"]):
        drawn = pm.sample(1500, chains=2, cores=1, random_seed=1, progressbar=False, quiet=True)["posterior"]
    draws = np.concatenate([drawn["a"].values[..., None], drawn["b"].values], axis=-1).reshape(-1, 3)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.15 * sd.max())
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1)


def test_a_prior_is_replaced_by_its_moments(rehearsal):
    _, planned, tables = rehearsal
    prior = planned.prior.divided(1 / planned.limits.scale)
    np.testing.assert_allclose(prior.mean, 0, atol=0.15)
    np.testing.assert_allclose(np.diag(np.linalg.inv(prior.precision)), 1, atol=0.2)
    assert tables[0].rows[0].shape[0] == ROWS and tables[0].truth.shape == (3,)


def test_columns_that_are_stated_or_public_are_not_narrowed():
    stated = dp.Gradients(steps=20, columns={"x": pm.Normal.dist(0, 0.3, shape=2)})
    assert Rehearsal(logistic(), domain(), {"one": stated}, None).passes == 1
    assert Rehearsal(logistic(), domain(), {"one": dp.Gradients()}, None).passes == 2
    assert Rehearsal(logistic(), dp.Domain(public=["x"]), {"one": dp.Gradients()}, None).passes == 1


@pytest.mark.slow
def test_other_numbers_of_rows_and_parts(planned):
    found = plan(n_rows=5000, var_names=["b"], epsilon=8.0, repeats=2, width=0.2)
    assert found.var_names == ("b",) and found.rows == "5000 rows" and set(found.wanted) == {"b"}
    widths = [one.outcomes[0].summary("b").width for one in (planned, found)]
    assert 2 < widths[0] / widths[1] < 4, "√(5000 / 600) = 2.9"


def test_wrong_calls_say_the_way_out():
    model, both = logistic(), [dp.Statistics(), dp.Gradients()]
    for given, text in (
        ({"delta": 0.0}, "Give delta > 0"),
        ({"statistics": both}, "once for each"),
        ({"noise": "laplace"}, "noise= is for exact sums"),
        ({"step": dp.OPS()}, "step= is for exact sums"),
        ({"var_names": ["c"]}, "var_names"),
        ({"covariates": {}}, r"dp.Gradients\(columns="),
    ):
        with pytest.raises(ArgumentError, match=text):
            plan(model=model, **given)
    with pytest.raises(ArgumentError, match="n_max=100"):
        plan(model=model, domain=domain(neighbours="add_remove", n_max=100), n_rows=200)


def test_methods_are_told_apart_by_name():
    short, wide = dp.Gradients(steps=20), dp.Gradients(conservative=True)
    assert gradient_methods(short) == {"gradients": short}
    assert gradient_methods({"a": short, "b": wide}) == {"a": short, "b": wide}
    assert list(gradient_methods([short, wide])) == [repr(short), repr(wide)]
    assert gradient_methods(dp.Statistics()) is None and gradient_methods("laplace") is None


def test_a_budget_is_that_of_the_release():
    found = Rehearsal(logistic(), domain(), {"g": dp.Gradients(steps=20)}, None).budgets([0.5], DELTA)
    assert found["g", 0.5].budget == Budget(0.5, DELTA)


@pytest.mark.slow
def test_without_a_method_gradients_are_rehearsed_where_sample_would_release_them():
    found = dp.plan(logistic(), 8.0, delta=DELTA, domain=domain(), repeats=2, progressbar=False, misfit=False)
    assert found.methods == ("gradients",)
    assert "dp.sample releases noised gradients, because exact sums would need a polynomial" in found.notes[0]


def counts(n):
    with pm.Model() as model:
        a, b, x = pm.Normal("a", 1, 0.5), pm.Normal("b", 0, 0.3), pm.Data("x", np.zeros(n))
        pm.Poisson("y", pm.math.exp(a + b * x), observed=np.zeros(n, dtype=int))
    return model, dp.Domain(bounds={"x": (-1, 1), "y": (0, 60)})


@pytest.mark.slow
def test_rows_that_do_not_fit_are_rehearsed_too():
    model, bounds = counts(600)
    found = plan(model=model, domain=bounds, epsilon=1.0, repeats=4, misfit=True)
    text = " ".join(str(found).replace("│", " ").split())
    assert [one.kind for one in found.misfit] == [HEAVIER, OVERDISPERSED, SKEWED_COLUMNS]
    assert [len(one.z) for one in found.misfit] == [2, 1, 1], "four tables in all"
    assert "Rows that do not fit the model, all variables together rows method" in text
    assert all(np.isfinite(one.z).all() and (one.ratios > 0.5).all() for one in found.misfit)
    assert not plan(model=model, domain=bounds, epsilon=1.0, repeats=2).misfit


def test_what_is_far_off_where_rows_do_not_fit_is_said():
    """Means two standard deviations of the noise apart, of variances 1 and 2; then less apart than widths can tell."""
    near, far = ((np.full(1, mean), 2 * np.eye(1), np.zeros(1), np.eye(1)) for mean in (1.0, 4.0))
    good, bad = (Misfit.of(OVERDISPERSED, "gradients", 1.0, [one, one]) for one in (near, far))
    assert (good.rms, bad.rms) == pytest.approx((1, 4)) and (good.beyond, bad.beyond) == (0, 1)
    np.testing.assert_allclose(bad.ratios, np.sqrt(2))
    same = Misfit.of(HEAVIER, "gradients", 1.0, [(np.full(1, 0.44), np.eye(1), np.zeros(1), np.eye(1))])
    assert same.rms == pytest.approx(2.0), "of equal widths .22 of the private one counts"
    said, line = misfit_notes([good, bad])
    assert "given the same rows" in said and "rows made up with overdispersed rows (z of 4)" in line
    assert misfit_notes([]) == ()
