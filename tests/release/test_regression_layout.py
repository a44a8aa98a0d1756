"""Sums of regressions whose likelihood no polynomial follows: what is said, and what is refused."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.approximations import approximations_of
from pymc_dp.release.plan import lay_out

DOMAIN = dp.Domain(bounds={"x": (-1, 1), "k": (0, 20)})
PLUG_IN = dp.Statistics(noise_aware=False)


def counts(link, centre=6.0):
    with pm.Model() as model:
        a, b = pm.Normal("a", centre, 1), pm.Normal("b", 0, 1)
        x = pm.Data("x", np.linspace(-1, 1, 50))
        pm.Poisson("k", link(a + b * x), observed=np.ones(50, dtype=int))
    return model


def answers(link):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0.5, 0.1), pm.Normal("b", 0, 0.1)
        x = pm.Data("x", np.linspace(-1, 1, 50))
        pm.Bernoulli("k", link(a + b * x), observed=np.zeros(50, dtype=int))
    return model


def itself(eta):
    return eta


NO_LINK = {"rate": lambda: counts(itself), "probability": lambda: answers(itself)}
LINKS = {"exp": lambda: counts(pm.math.exp, 1.0), "sigmoid": lambda: answers(pm.math.sigmoid)}


def table_of(model, statistics=None):
    (table,) = lay_out(inspect(model, DOMAIN).sums, statistics or dp.Statistics()).tables
    return table


@pytest.mark.parametrize("mean", NO_LINK)
def test_a_mean_without_a_link_has_no_polynomial_and_no_number_says_how_far_one_is_off(mean):
    table = table_of(NO_LINK[mean]())
    (text,) = approximations_of(table)
    assert (
        f"No quadratic in the linear predictor η follows a row's log-likelihood, as some η are no {mean}, for" in text
    )
    assert f"|η| <= {table.reach:.3g}, where the priors put 99%" in text
    assert "nan" not in text and "nats" not in text


def test_the_priors_say_how_far_linear_predictors_without_a_link_reach():
    """η = a + b x with a ~ N(6, 1) and b x of variance 1/3: its 99% quantile is near 6 + 2.33 sqrt(4/3)."""
    assert abs(table_of(counts(itself)).reach - (6 + 2.33 * np.sqrt(4 / 3))) < 0.4


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_that_takes_any_number_has_a_polynomial_that_is_off_by_a_number(kind):
    (text,) = approximations_of(table_of(LINKS[kind](), PLUG_IN))
    assert "A quadratic in the linear predictor η is off by " in text and "nan" not in text


@pytest.mark.parametrize("mean", NO_LINK)
def test_the_form_that_relies_on_a_polynomial_is_refused_before_anything_is_charged(mean):
    ledger = dp.Ledger(1.0)
    with pytest.raises(UnsupportedModelError, match=rf"no polynomial follows its .* are no {mean}") as caught:
        dp.privatize(NO_LINK[mean](), epsilon=1.0, domain=DOMAIN, statistics=PLUG_IN, ledger=ledger)
    assert "Leave out noise_aware=False" in str(caught.value) and ledger.history == []


NEAR = [("truth", 0, 0), ("lower", -0.5, 0), ("higher", 0.5, 0), ("flatter", 0, -0.7), ("steeper", 0, 0.7)]


@pytest.mark.slow
def test_noise_aware_inference_does_without_the_polynomial(rng):
    """Its density is finite, and largest near the rates that the counts have."""
    x = np.linspace(-1, 1, 4000)
    with pm.Model() as model:
        a, b = pm.Normal("a", 6, 3), pm.Normal("b", 0, 3)
        pm.Poisson("k", a + b * pm.Data("x", x), observed=rng.poisson(6 + 2 * x))
    known = dp.Domain(bounds={"k": (0, 20)}, public=["x"])
    with dp.testing.insecure_randomness(1):
        private = dp.privatize(model, epsilon=5.0, domain=known, ledger=dp.Ledger(5.0))
    logp, start = private.compile_logp(), private.initial_point()
    at = {name: logp(start | {"a": np.array(6.0 + da), "b": np.array(2.0 + db)}) for name, da, db in NEAR}
    assert np.isfinite(list(at.values())).all() and max(at, key=at.get) == "truth"
