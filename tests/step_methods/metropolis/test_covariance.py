"""Public shapes of proposals: arrays, released traces, and what is refused."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.metropolis.arguments import covariance_of, laid_out, shape_of_block
from pymc_dp.testing import insecure_randomness
from tests.step_methods.metropolis.models import QUIET, bernoulli, held, normal, sample

MATRIX = np.array([[0.5, 0.2], [0.2, 0.3]])


def begun(step, tune, draws):
    with insecure_randomness(1):
        step.setup_chain(np.random.default_rng(0), tune, draws)
    return step


def test_a_scale_multiplies_draws_of_the_covariance(rng):
    _, step = held("normal", [0.0, 1.0], covariance=MATRIX, scale=0.1)
    begun(step, 0, 5)
    np.testing.assert_allclose(step.proposals[0].factor @ step.proposals[0].factor.T, 0.01 * MATRIX)
    draws = np.array([step.proposals[0].draw(np.zeros(2), rng) for _ in range(4000)])
    np.testing.assert_allclose(np.cov(draws.T), 0.01 * MATRIX, rtol=0.15)


def test_the_shape_is_kept_while_the_scale_is_tuned():
    _, step = held("normal", [0.0, 1.0, 2.0], covariance=MATRIX, epsilon=1e3)
    begun(step, 100, 20)
    point, scales = step.prior_model.initial_point(), set()
    for _ in range(120):
        point, _ = step.step(point)
        scales.add(step.proposals[0].scale)
    np.testing.assert_allclose(step.proposals[0].factor, np.linalg.cholesky(MATRIX))
    assert len(scales) > 50
    assert "of a public covariance" in str(step.describe().facts)


def test_a_block_has_its_covariance_given_the_others():
    _, step = held("normal", [0.0, 1.0], covariance=MATRIX, blocks="each")
    factor = shape_of_block(MATRIX, step.blocks[0])
    np.testing.assert_allclose(factor @ factor.T, [[0.5 - 0.2**2 / 0.3]])


def test_the_covariance_of_a_released_trace_is_that_of_its_unconstrained_draws():
    with pm.Model() as model:
        sigma, q = pm.HalfNormal("sigma"), pm.Dirichlet("q", np.ones(3))
        mu = pm.Uniform("mu", 0, sigma)
        pm.Categorical("level", q, observed=np.array([0, 1, 2, 2]))
        pm.Normal("value", mu, sigma, observed=np.array([0.1, 0.5, 0.2, 1.0]))
    with insecure_randomness(3):
        step = BarkerMetropolis(scale=0.3)
        bounded = Domain(bounds={"value": (-3, 3)})
        tree = dp.sample(60, tune=0, model=model, step=step, epsilon=1e4, delta=1e-6, domain=bounded, **QUIET)
    held_draws = {name: tree["posterior"][name].values[0] for name in ("sigma", "q", "mu")}
    logs = np.log(held_draws["q"])
    centred = logs - logs.mean(axis=1, keepdims=True)
    share = held_draws["mu"] / held_draws["sigma"]
    values = np.column_stack([np.log(held_draws["sigma"]), centred[:, :2], np.log(share / (1 - share))])
    forget_releases()
    with model, insecure_randomness(3):
        bound = BarkerMetropolis(epsilon=1.0, domain=bounded, covariance=tree)
    found = laid_out(bound.settings["covariance"], bound.prior_model, bound.coefficients)
    assert bound.coefficients.names == ("sigma_log__", "q_simplex__", "mu_interval__")
    np.testing.assert_allclose(found, np.cov(values.T), rtol=1e-6)


def test_chains_are_run_with_a_matrix_and_with_a_trace():
    rows, budget = [0.0, 1.0, -1.0], {"epsilon": 1e4, "delta": 1e-6}
    tree = sample(normal(rows), 20, tune=5, **budget, step=BarkerMetropolis(covariance=MATRIX, scale=0.1))
    forget_releases()
    again = sample(normal(rows), 5, tune=5, chains=2, **budget, step=BarkerMetropolis(covariance=tree))
    assert again["posterior"].sizes["chain"] == 2
    assert covariance_of(MATRIX) == covariance_of(MATRIX) != covariance_of(2 * MATRIX)
    assert covariance_of(tree) == covariance_of(tree) != covariance_of(again)


def test_wrong_covariances_are_named():
    for wrong, words in (
        ([[1.0, 0.5], [0.4, 1.0]], "not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "not positive definite"),
        ([1.0, 2.0], "shape"),
        ([[np.nan]], "finite"),
        ("identity", r"\(d, d\) array"),
    ):
        with pytest.raises(ArgumentError, match=words):
            BarkerMetropolis(covariance=wrong)
    with pytest.raises(ArgumentError, match="scale must be one number"):
        BarkerMetropolis(covariance=MATRIX, scale={"mu": 1.0})
    with pytest.raises(ArgumentError, match="p_logodds__.*are 1"):
        sample(bernoulli([0, 1]), 5, epsilon=1.0, step=BarkerMetropolis(covariance=MATRIX))
    assert repr(BarkerMetropolis(covariance=MATRIX)) == "BarkerMetropolis(covariance=a (2, 2) array)"


@pytest.mark.slow
def test_traces_that_nothing_paid_for_are_refused():
    draws = xr.Dataset({"p": (("chain", "draw"), np.linspace(0.1, 0.9, 8)[None])})
    with pytest.raises(ArgumentError, match="nothing paid for"):
        covariance_of(xr.DataTree.from_dict({"posterior": draws}))
    seeded = xr.DataTree.from_dict({"posterior": draws, "privacy": xr.Dataset(attrs={"guarantee": "none"})})
    with pytest.raises(ArgumentError, match="seeded or left out"):
        covariance_of(seeded)
    with insecure_randomness(1):
        covariance_of(seeded)
    paid = xr.DataTree.from_dict({"posterior": draws, "privacy": xr.Dataset()})
    with pytest.raises(ArgumentError, match=r"without the free variables \['mu', 'sigma'\]"):
        sample(normal([0.0, 1.0]), 5, epsilon=1.0, step=BarkerMetropolis(covariance=paid))
    with pytest.raises(ArgumentError, match="not positive definite"):
        same = xr.DataTree.from_dict({"posterior": draws * 0 + 0.5, "privacy": xr.Dataset()})
        sample(bernoulli([0, 1]), 5, epsilon=1.0, step=BarkerMetropolis(covariance=same))
