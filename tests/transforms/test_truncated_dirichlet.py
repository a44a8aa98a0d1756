"""A distribution like PyMC's own: density, exact draws, transform, dims and sampling."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.util import get_untransformed_name
from scipy import stats

from pymc_dp.errors import ArgumentError
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet, TruncatedSimplexTransform

FAST = "FAST_COMPILE"


def test_density_is_the_dirichlet_inside_and_nothing_outside():
    a, lower = np.array([2.0, 0.5, 4.0]), np.array([0.1, 0.05, 0.2])
    rv = TruncatedDirichlet.dist(a, lower)
    inside = np.array([[0.3, 0.3, 0.4], [0.1, 0.05, 0.85], [0.5, 0.2, 0.3]])
    found = pm.logp(rv, inside).eval(mode=FAST)
    np.testing.assert_allclose(found, [stats.dirichlet(a).logpdf(p) for p in inside])
    outside = np.array([[0.09, 0.31, 0.6], [0.5, 0.04, 0.46], [0.6, 0.3, 0.1], [-0.1, 0.5, 0.6]])
    assert np.isneginf(pm.logp(rv, outside).eval(mode=FAST)).all()


def test_draws_are_exact_not_sequential(seed):
    draws = pm.draw(TruncatedDirichlet.dist(np.ones(3), 0.2), 4000, random_seed=seed, mode=FAST)
    assert draws.shape == (4000, 3)
    assert (draws >= 0.2).all()
    for place in range(3):  # 1 - F(p) = ((.6 - p) / .4)^2
        assert stats.kstest((0.6 - draws[:, place]) / 0.4, lambda x: np.asarray(x) ** 2).pvalue > 0.001


@pytest.fixture(scope="module")
def batched():
    with pm.Model(coords={"group": ["a", "b"], "level": range(3)}) as model:
        TruncatedDirichlet("p", np.ones(3), 0.1, dims=("group", "level"))
        TruncatedDirichlet("q", [[900.0, 50, 50], [1, 1, 1]], [0.2, 0.1, 0.1])
        TruncatedDirichlet("r", np.ones(4), 0.01, shape=(5, 4))
    return model


def test_start_lies_inside(batched):
    point = batched.initial_point()
    assert all(np.isfinite(value).all() for value in point.values())
    assert [get_untransformed_name(name) for name in point] == ["p", "q", "r"]
    assert np.isfinite(batched.compile_logp(mode=FAST)(point))


def test_transform_is_inverted_and_its_jacobian_right():
    transform, lower = TruncatedSimplexTransform(), np.array([0.1, 0.05, 0.2])
    inputs = TruncatedDirichlet.dist(np.ones(3), lower).owner.inputs
    places = np.array([0.3, -1.2])

    def backward(value):
        return transform.backward(np.asarray(value), *inputs).eval(mode=FAST)

    p = backward(places)
    assert (p >= lower).all()
    np.testing.assert_allclose(p.sum(), 1)
    np.testing.assert_allclose(transform.forward(p, *inputs).eval(mode=FAST), places)
    step = 1e-6
    slopes = [(backward(places + step * e) - backward(places - step * e))[:2] / (2 * step) for e in np.eye(2)]
    found = transform.log_jac_det(pt.as_tensor(places), *inputs).eval(mode=FAST)
    np.testing.assert_allclose(found, np.log(abs(np.linalg.det(slopes))), atol=1e-7)


def test_parameters_must_be_numbers():
    with pm.Model():
        scale = pm.Exponential("scale", 1.0)
        with pytest.raises(ArgumentError, match="normalising constant"):
            TruncatedDirichlet("p", scale * np.ones(3), 0.1)
        with pytest.raises(ArgumentError, match="lower of a truncated Dirichlet"):
            TruncatedDirichlet("p", np.ones(3), pm.Data("least", 0.1))


@pytest.mark.parametrize(
    ("a", "lower", "text"),
    [
        (1.0, 0.1, "one entry per category"),
        ([1.0, 0.0, 1.0], 0.1, "a must be finite and > 0"),
        ([1.0, 1.0, 1.0], 0.4, "Take less than 0.333"),
        ([1.0, 1.0, 1.0], -0.1, "lower must be >= 0"),
        ([1.0, 1.0, 1.0], [0.1, 0.1], "2 entries for 3"),
        ("many", 0.1, "a must be numbers"),
    ],
)
def test_what_is_no_truncated_dirichlet_is_refused(a, lower, text):
    with pytest.raises(ArgumentError, match=text):
        TruncatedDirichlet.dist(a, lower)
