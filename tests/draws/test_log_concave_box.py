"""Draws from log-concave densities in boxes: at faces, in corners, and where the box plays no part."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from pymc_dp.draws.log_concave import LogConcave, envelope_at
from pymc_dp.draws.log_concave_box import FaceEnvelope, draw_in_box, mode_in_box, worst_acceptance_in_box

STRONG = np.array([1.0, 0.25])


def logistic(pull, low, high, weight=40.0):
    """Rows along two directions, and a pull of all coordinates: the likelihood's curvature is at most weight / 2."""
    rows = np.array([[1.0, 0.5], [-0.5, 1.0]])

    def value(points):
        eta = points @ rows.T
        return weight * (pull * eta - np.logaddexp(0, eta)).sum(axis=1) - points**2 @ STRONG / 2

    def gradient(point):
        return weight * rows.T @ (pull - special.expit(rows @ point)) - STRONG * point

    def hessian(point):
        p = special.expit(rows @ point)
        return -weight * (rows.T * (p * (1 - p))) @ rows

    return LogConcave(
        dimension=2,
        value=value,
        gradient=gradient,
        hessian=hessian,
        strong=STRONG,
        self_concordance=1.2,
        low=np.array(low),
        high=np.array(high),
    )


BOXES = {
    "inside": ([-5.0, -5.0], [5.0, 5.0]),
    "corner": ([-1.0, -1.0], [0.05, 0.02]),
    "one face": ([-1.0, -np.inf], [0.1, np.inf]),
    "half": ([-np.inf, 0.0], [np.inf, np.inf]),
}


def faces_of(target, point):
    low, high = target.box
    gradient = target.gradient(point)
    return FaceEnvelope(gradient=gradient, strong=target.strong, low=low - point, high=high - point)


def on_grid(target, point):
    """Axes that are dense about the mode, the density over that of the mode, and the logarithm of its mass."""
    offsets = np.sinh(np.linspace(-12, 12, 601)) * 15 / np.sinh(12)
    axes = [
        np.unique(np.clip(np.append(offsets + t, [a, b]), max(a, t - 15), min(b, t + 15)))
        for a, b, t in zip(*target.box, point, strict=True)
    ]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    heights = np.exp(target.at(grid) - target.at(point[None])[0]).reshape(len(axes[0]), len(axes[1]))
    return axes, heights, np.log(integrate.trapezoid(integrate.trapezoid(heights, axes[1]), axes[0]))


@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("pull", [0.5, 3.0])
def test_draws_have_the_density_in_the_box(box, pull, rng):
    target = logistic(pull, *BOXES[box])
    start = np.clip([0.01, 0.01], *target.box)
    point = mode_in_box(target, start)
    axes, heights, _ = on_grid(target, point)
    sample = np.array([draw_in_box(rng, target, start) for _ in range(150)])
    low, high = target.box
    assert ((low <= sample) & (sample <= high)).all()
    for axis, other in ((0, 1), (1, 0)):
        marginal = integrate.trapezoid(heights, axes[other], axis=other)
        total = integrate.cumulative_trapezoid(marginal, axes[axis], initial=0)
        cdf = lambda at, x=axes[axis], y=total: np.interp(at, x, y / y[-1])  # noqa: E731
        assert stats.kstest(sample[:, axis], cdf).pvalue > 0.001


@pytest.mark.few(8)
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("pull", [0.5, 1.0, 3.0, 50.0])
def test_envelopes_lie_above_and_accept_what_is_promised(box, pull, rng):
    target = logistic(pull, *BOXES[box])
    point = mode_in_box(target, np.clip([0.01, 0.01], *target.box))
    top = target.at(point[None])[0]
    faces = faces_of(target, point)
    vectors = faces.propose(rng, 1000)
    rounding = 1e-9 + 8 * np.finfo(float).eps * abs(top)  # of the densities themselves, far out
    assert (target.at(point + vectors) - top <= faces.height(vectors) + rounding).all()
    *_, total = on_grid(target, point)
    promised = worst_acceptance_in_box(n_rows=40, inverse_temperature=1.0, curvature=0.625, strong=STRONG)
    best = min(faces.log_mass, envelope_at(target, point).log_mass) + np.log(2 * np.pi)
    assert promised <= total - best < 0.01
