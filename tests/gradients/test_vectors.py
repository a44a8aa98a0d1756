"""Continuous responses of several entries that depend on each other: what expectations over them are."""

import numpy as np
import pymc as pm
import pytest
from scipy import special

import pymc_dp as dp
from pymc_dp.gradients.in_turn import expected_responses
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_scores import RowScores

N_ROWS = 30
X = np.linspace(-1, 1, N_ROWS)
BOUNDS = {"x": (-1, 1), "Y": (-9, 9)}
FACTOR = np.array([[1.5, 0.0], [-0.6, 0.8]])


def domain_of(model):
    return dp.Domain(bounds={name: ends for name, ends in BOUNDS.items() if name in model.named_vars})


def outcomes():
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 1, shape=2), pm.Normal("b", 0, 1, shape=2)
        mean = a + b * pm.Data("x", X)[:, None]
        factor = pm.math.stack([pm.math.stack(list(line)) for line in FACTOR.tolist()])
        pm.MvNormal("Y", mean, chol=factor, observed=np.zeros((N_ROWS, 2)))
    return model


def spreads():
    with pm.Model() as model:
        sd = pm.LogNormal("sd", 0, 1, shape=2)
        pm.MvNormal(
            "Y", np.zeros(2), cov=pm.math.stack([[sd[0] ** 2, 0.0], [0.0, sd[1] ** 2]]), observed=np.zeros((9, 2))
        )
    return model


def shares():
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1, shape=3)
        pm.Dirichlet("Y", pm.math.exp(a), observed=np.full((9, 3), 1 / 3))
    return model


def visits(covariate=False):
    with pm.Model() as model:
        mean, between, within = pm.Normal("mean", 0, 1), pm.LogNormal("between", 0, 1), pm.LogNormal("within", 0, 1)
        middle = mean * pm.Data("x", X) if covariate else mean
        person = pm.Normal("person", middle, between, shape=N_ROWS)
        pm.Normal("Y", person[:, None], within, observed=np.zeros((N_ROWS, 3)))
    return dp.integrate(model, "person")


def information(model, position):
    """Expected information of a row about the parameters of the interface, its mean over rows."""
    interface = interface_of(model, domain_of(model))
    rows = RowScores.of(interface, mode="FAST_COMPILE")
    columns = [
        X if one.name == "x" else np.zeros((N_ROWS, *one.leaf.type.shape[1:])) for one in interface.inspection.columns
    ]
    predictors, jacobian = rows.predicted(np.asarray(position, dtype=float), *columns)
    some = slice(1 if rows.alike else None)
    taken = expected_responses(rows, predictors[some], [column[some] for column in columns])
    squares = np.einsum("nk,nka,nkb->nab", taken.weights, taken.scores, taken.scores)
    return np.einsum("nad,nab,nbe->de", jacobian[some], squares, jacobian[some]) / len(squares)


def test_means_of_a_normal_vector_have_the_inverse_of_its_covariance():
    found = information(outcomes(), [0.3, -0.2, 0.5, 0.1])[:2, :2]
    np.testing.assert_allclose(found, np.linalg.inv(FACTOR @ FACTOR.T), rtol=0.05, atol=0.01)


@pytest.mark.slow
def test_logarithms_of_standard_deviations_of_a_normal_vector():
    np.testing.assert_allclose(information(spreads(), np.log([0.7, 2.0])), 2 * np.eye(2), rtol=0.06, atol=0.08)


def test_shares_that_add_up_to_one():
    at = np.array([0.2, 1.0, -0.5])
    numbers = np.exp(at)
    exact = np.diag(special.polygamma(1, numbers)) - special.polygamma(1, numbers.sum())
    np.testing.assert_allclose(information(shares(), at), exact * np.outer(numbers, numbers), rtol=0.06, atol=0.03)


def test_entries_that_share_a_latent_of_their_row():
    """Together they are normal: the covariance is that of what they share, and their own."""
    between, within = 0.6, 1.1
    covariance = within**2 * np.eye(3) + between**2
    inverse = np.linalg.inv(covariance)
    slopes = [2 * between**2 * np.ones((3, 3)), 2 * within**2 * np.eye(3)]  # along logarithms
    exact = np.zeros((3, 3))
    exact[0, 0] = inverse.sum()
    exact[1:, 1:] = [[np.trace(inverse @ one @ inverse @ other) / 2 for other in slopes] for one in slopes]
    np.testing.assert_allclose(
        information(visits(), [0.4, np.log(between), np.log(within)]), exact, rtol=0.08, atol=0.05
    )
