"""A descent with momentum before the walk: what it books, what steers it, and what is said of what it releases."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from tests.gradients.models import bernoulli

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


LOCAL = dp.Gradients(steps=10, momentum_steps=20)
DOMAIN = dp.Domain(bounds={"x": (-1, 1)})


def net(x, y, units=2, spread=2.0):
    with pm.Model() as model:
        w, v = pm.Normal("w", 0, spread, shape=(x.shape[1], units)), pm.Normal("v", 0, spread, shape=units)
        pm.Bernoulli("y", logit_p=pt.tanh(pm.Data("x", x) @ w) @ v, observed=y)
    return model


def table(rng, n=400):
    x = rng.uniform(-1, 1, (n, 2))
    return x, (rng.random(n) < 1 / (1 + np.exp(-3 * np.tanh(2 * x[:, 0])))).astype(int)


@pytest.fixture(scope="module")
def released():
    ledger, model = dp.Ledger(10.0, 1e-5), net(*table(np.random.default_rng(1)))
    return dp.privatize(model, epsilon=2.0, delta=1e-5, domain=DOMAIN, statistics=LOCAL, ledger=ledger), ledger


@pytest.mark.slow
def test_what_is_released_is_labelled_local_and_stays_so(released, tmp_path):
    private, ledger = released
    assert len(ledger.history[0].event.events) == 35
    with private:
        drawn = pm.sample(10, tune=10, chains=1, cores=1, random_seed=3, progressbar=False, quiet=True)
        found = dp.scrub(drawn, private)
    texts = found.dp.approximations
    assert "local, not calibrated. This is one mode of several" in texts[2] and "20 steps" in texts[2]
    assert "χ²" in texts[3] and "once in a hundred" in texts[3]
    assert "local, not calibrated" in " ".join(str(found.dp.report()).replace("│", " ").split())
    release = dp.Release.load(dp.Release.of(private).save(tmp_path / "release.json"))
    table = release.record.tables[0]
    assert table.plan["momentum_steps"] == 20 and table.plan["chi_squared_limit"] > 1
    assert any("local, not calibrated" in text for text in table.approximations)
    dummies = net(np.zeros((3, 2)), np.zeros(3, dtype=int))
    point = private.initial_point(0)
    assert dp.condition(dummies, release).compile_logp()(point) == pytest.approx(private.compile_logp()(point))


@pytest.mark.slow
def test_nets_are_known_by_their_layers_and_explain_says_so(rng):
    text = " ".join(str(dp.explain(net(*table(rng, 40)), DOMAIN, delta=1e-5).full()).replace("│", " ").split())
    assert "dp.Gradients(momentum_steps=150)" in text and "local" in text
    assert "momentum" not in str(dp.explain(*bernoulli(), delta=1e-5).full())
