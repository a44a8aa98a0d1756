"""Weighted rows: clamped, beside the model or in it, and refused where they are not weighed."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

CHOICE = dp.Gradients(steps=10)
pytestmark = [
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning"),
]


def table(n_rows=300):
    rng = np.random.default_rng(5)
    return {"x": rng.uniform(-2, 2, (n_rows, 2)), "y": rng.integers(0, 2, n_rows), "w": rng.uniform(1, 3, n_rows)}


def logistic(x, y, w=None):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 3), pm.Normal("b", 0, 3, shape=2)
        if w is not None:
            pm.Data("w", w)
        pm.Bernoulli("y", logit_p=a + pm.Data("x", x) @ b, observed=y)
    return model


def domain(**others):
    return dp.Domain(bounds={"x": (-2, 2), "w": (0, 4)}, **{"weights": {"y": "w"}, **others})


def numbers(model, **given):
    with dp.testing.insecure_randomness(4):
        private = dp.privatize(
            model, domain=domain(), epsilon=3.0, delta=1e-5, statistics=CHOICE, progressbar=False, **given
        )
    return dp.Release.of(private).tables["gradients"]


def test_weights_are_clamped_and_may_stand_beside_the_model():
    """One that is missing is the middle of the bounds, as for other numbers."""
    held, wild = table(), table()
    wild["w"][:4], held["w"][:4] = (-3.0, np.nan, 99.0, np.inf), (0.0, 2.0, 4.0, 4.0)
    inside = numbers(logistic(**held))
    for dummies in (logistic(held["x"][:3], held["y"][:3]), logistic(**{n: c[:3] for n, c in held.items()})):
        np.testing.assert_array_equal(numbers(dummies, rows=wild), inside)
    held["w"][:4] = 1.0
    assert (numbers(logistic(**held)) != inside).any()


def test_other_ways_refuse_before_any_charge():
    model, ledger = logistic(**table(50)), dp.Ledger(9.0, delta=1e-4)
    given = {"model": model, "domain": domain(), "epsilon": 1.0, "ledger": ledger}
    tried = [
        *(lambda step=step: dp.sample(step=step, **given) for step in (dp.OPS(), [dp.TemperedGibbs()], dp.SGLD())),
        lambda: dp.plan(model, domain=domain(), epsilon=1.0, delta=1e-5, statistics=CHOICE),
        lambda: dp.plan(model, domain=domain(), epsilon=1.0),
        lambda: dp.find_map(model=model, domain=domain(), epsilon=1.0, ledger=ledger),
        lambda: dp.sensitivity(model, domain()),
    ]
    for call in tried:
        with pytest.raises(dp.errors.UnsupportedModelError, match="(?s)Gradients.*does not weigh rows"):
            call()
    for choice in (dp.Gradients(momentum_steps=20), dp.Gradients(conservative=True)):
        with pytest.raises(dp.errors.ArgumentError, match="Leave them out"):
            dp.privatize(statistics=choice, delta=1e-5, **given)
    assert not ledger.history


def test_what_cannot_be_a_weight_is_refused():
    held = table(50)
    for bounds in ({}, {"w": (-1, 2)}, {"w": (0, 1e101)}):
        with pytest.raises(dp.errors.DomainError, match="needs bounds of at least 0"):
            dp.Domain(bounds=bounds, weights={"y": "w"})
    with pytest.raises(dp.errors.DomainError, match="do not go together"):
        domain(neighbours="add_remove", n_max=50, unit=dp.Unit("person", 2))
    with pytest.raises(dp.errors.DomainError, match="Leave it out of public"):
        domain(public=["w"])
    release = {"epsilon": 1.0, "delta": 1e-5, "statistics": CHOICE}
    with pytest.raises(dp.errors.DomainError, match="no pm.Data of the model"):
        dp.privatize(logistic(held["x"], held["y"]), domain=domain(), **release)
    with pytest.raises(dp.errors.DomainError, match="Did you mean 'y'"):
        dp.privatize(logistic(**held), domain=domain(weights={"yy": "w"}), **release)
    with pytest.raises(dp.errors.UnsupportedModelError, match="one number for each row"):
        dp.privatize(logistic(held["x"], held["y"], held["w"][:7]), domain=domain(), **release)
    with logistic(**held) as model:
        pm.Normal("z", model["a"], 1.0, observed=held["x"][:, 0])
    with pytest.raises(dp.errors.UnsupportedModelError, match="name every observed variable"):
        dp.privatize(model, domain=dp.Domain(bounds={**domain().bounds, "z": (-2, 2)}, weights={"y": "w"}), **release)
