"""Coefficients of a normal regression in a ball: what a draw is charged, and from which distribution it comes."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.errors import BudgetExceeded, PrivacyError
from pymc_dp.testing import insecure_randomness

ROWS = 60
RNG = np.random.default_rng(1)
X = RNG.normal(size=(ROWS, 3))
X /= np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]
Z = RNG.uniform(-1, 1, ROWS)
Y = np.clip(X @ [0.9, -0.4, 0.2] + 0.3 * RNG.normal(size=ROWS), -1, 1)
DOMAIN = {"norms": {"x": 1.0}, "bounds": {"y": (-1, 1), "z": (-1, 1)}}
MEANS = {
    "plain": (3, lambda w, x, z: x @ w),
    "intercept": (4, lambda w, x, z: w[0] + x @ w[1:]),
    "another column": (4, lambda w, x, z: w[3] * z / 2 + x @ w[:3]),
    "one coefficient twice": (3, lambda w, x, z: w[0] * z + x @ w),
    "offset": (3, lambda w, x, z: 0.25 + z + x @ w),
    "twice": (3, lambda w, x, z: x @ (2 * w)),
}
REACH = {
    "plain": (1.0, 1.0),
    "intercept": (2**0.5, 1.0),
    "another column": (1.25**0.5, 1.0),
    "one coefficient twice": (2.0, 1.0),
    "offset": (1.0, 2.25),
    "twice": (2.0, 1.0),
}
"""The longest row, and the farthest response, less the offset."""


def model_of(kind, *, radius=1.5, sd=1.0, rows=(X, Z, Y), prior=0.8):
    size, mean = MEANS[kind]
    with pm.Model() as model:
        w = pm.Normal("w", 0, prior, shape=size)
        x, z = (
            pm.Data("x", rows[0]),
            pm.Data("z", rows[1]) if kind in ("another column", "one coefficient twice", "offset") else None,
        )
        pm.Normal("y", mean(w, x, z), sd, observed=rows[2])
    return dp.truncate(model, norms={"w": radius})


def domain_of(model, **given):
    bounds = {name: ends for name, ends in DOMAIN["bounds"].items() if name in model}
    return dp.Domain(**{"norms": DOMAIN["norms"], "bounds": bounds, **given})


def sampled(model, epsilon, domain, *, step=None, draws=1, chains=1, **given):
    return dp.sample(
        draws,
        chains=chains,
        epsilon=epsilon,
        step=step or dp.OPS(),
        model=model,
        domain=domain,
        ledger=dp.Ledger(epsilon, given.get("delta", 0.0), neighbours=domain.neighbours),
        progressbar=False,
        **given,
    )


def said(trace):
    """T, and what one row moves."""
    sampler = trace.dp.report().record["sampler"]
    return 1 / sampler["power"], dict(sampler["facts"])["one row moves"]


@pytest.mark.parametrize("b", [4.0, 100.0])
def test_a_draw_costs_what_the_paper_charges(b):
    """Zhang, Rubinstein, Dimitrakakis (2016): rows and responses within 1, noise of sd 1, |w| <= r = 10 / √b."""
    rng, radius = np.random.default_rng(2), 10 / b**0.5
    x = rng.normal(size=(50, 14))
    with pm.Model() as model:
        w = pm.Normal("w", 0, b**-0.5, shape=14)
        pm.Normal("y", pm.Data("x", x / np.linalg.norm(x, axis=1)[:, None]) @ w, 1.0, observed=rng.uniform(-1, 1, 50))
    model = dp.truncate(model, norms={"w": radius})
    domain, price = dp.Domain(norms={"x": 1.0}, bounds={"y": (-1, 1)}), (1 + radius) ** 2
    for epsilon, temperature in ((1.0, price), (price * 0.999, 1 / 0.999), (price * (1 + 1e-9), 1.0)):
        found = sampled(model, epsilon, domain)
        assert said(found)[0] == pytest.approx(temperature, rel=1e-9)
        assert np.linalg.norm(found["posterior"]["w"].values) < radius
    assert "in closed form, of a regression" in said(found)[1]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", MEANS)
def test_the_range_that_is_charged_is_no_less_than_that_of_any_two_rows(kind, relation):
    rng, radius, sd = np.random.default_rng(3), 1.5, 0.7
    longest, farthest = REACH[kind]
    model = model_of(kind, radius=radius, sd=sd)
    most = 100 if relation == "add_remove" else None
    temperature, says = said(sampled(model, 1.0, domain_of(model, neighbours=relation, n_max=most)))
    s = longest * radius
    one = ((farthest + s) ** 2 / 2 if s >= farthest else 2 * farthest * s) / sd**2
    assert temperature == pytest.approx(one * (2 if relation == "replace" else 1), rel=1e-9)
    assert f"rows no longer than {longest:.6g}" in says and f"|y| <= {farthest:.6g}" in says
    x = rng.normal(size=(300, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    z, y = rng.choice([-1.0, 1.0], 300), rng.choice([-1.0, 1.0], 300)
    size, mean = MEANS[kind]
    points = rng.normal(size=(500, size))
    points *= radius / np.linalg.norm(points, axis=1)[:, None] * rng.choice([1.0, 0.3, 0.7], 500)[:, None]
    logs = np.array([-((y - mean(point, x, z)) ** 2) / (2 * sd**2) for point in points]).T
    apart = np.concatenate([logs - row for row in logs[:40]]) if relation == "replace" else logs
    assert 0.4 < np.ptp(apart, axis=1).max() / temperature <= 1


@pytest.mark.parametrize("papers", [False, True])
def test_draws_come_from_the_tempered_posterior_in_the_ball(papers):
    model = model_of("intercept", radius=0.6, sd=0.5, prior=0.5)
    with insecure_randomness(4):
        trace = sampled(model, 2000.0, domain_of(model), draws=600, step=dp.OPS(papers=papers))
    beta, draws = 1 / said(trace)[0], trace["posterior"]["w"].values.reshape(-1, 4)
    assert 0.01 < beta < 0.9
    z = np.column_stack([np.ones(ROWS), X])
    precision = beta * z.T @ z / 0.25 + (beta if papers else 1.0) * np.eye(4) / 0.25
    mean, root = np.linalg.solve(precision, beta * z.T @ Y / 0.25), np.linalg.cholesky(np.linalg.inv(precision))
    others = mean + np.random.default_rng(5).normal(size=(200_000, 4)) @ root.T
    others = others[np.linalg.norm(others, axis=1) <= 0.6]
    assert 1000 < len(others) < 190_000
    for along in (*np.eye(4), mean):
        assert stats.ks_2samp(draws @ along, others @ along).pvalue > 1e-4
    assert stats.ks_2samp((draws**2).sum(axis=1), (others**2).sum(axis=1)).pvalue > 1e-4


def test_rows_of_any_numbers_lead_to_a_draw_in_the_ball():
    x, y = X.copy(), Y.copy()
    x[:5] = np.array([np.inf, -np.inf, 1e308, 5e-324, 0.0])[:, None]
    y[2:6] = np.inf, -np.inf, 1e308, -1e308
    model = model_of("plain", rows=(x, Z, y))
    found = sampled(model, 5.0, domain_of(model), draws=2, chains=2)
    assert (np.linalg.norm(found["posterior"]["w"].values, axis=-1) < 1.5).all()
    assert found.dp.report().record["arithmetic"] == "float64" and found.dp.report().record["guarantee"] == "exact"


def test_a_chain_draws_no_more_than_was_paid_for():
    model = model_of("plain")
    with model:
        step = dp.OPS(epsilon=3.0, domain=domain_of(model))
        with pytest.raises(PrivacyError, match="No chain has begun"):
            step.draw(np.random.default_rng(0))
        step.setup_chain(None, 0, 2)
    for _ in range(2):
        assert np.linalg.norm(step.draw(np.random.default_rng(0))["w"]) < 1.5
    with pytest.raises(BudgetExceeded):
        step.draw(np.random.default_rng(0))


def with_potential():
    with model_of("plain") as model:
        pm.Potential("more", -model["w"].sum())
    return model


def clamped():
    return dp.clamp(model_of("plain"), -2.0, 0.0)


def too_sharp():
    return model_of("plain", sd=1e-170)


@pytest.mark.parametrize("build", [with_potential, clamped, too_sharp])
def test_another_posterior_is_not_taken_for_one(build):
    model = build()
    try:
        found = sampled(model, 5.0, domain_of(model))
    except PrivacyError:
        return
    assert "of a regression" not in said(found)[1]


def test_explain_says_what_one_row_moves_and_how_it_is_known():
    model = model_of("plain", radius=2.0)
    text = str(dp.explain(model, domain_of(model), epsilon=1.0).full())
    assert "temperature 9," in text and "of a regression with |θ| <= 2" in " ".join(text.replace("│", " ").split())
