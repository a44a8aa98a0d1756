"""How far one row can move gradients and products together, and the noise on both, exactly."""

import math

import numpy as np
import pytest

from pymc_dp.step_methods.langevin import kernels
from pymc_dp.step_methods.langevin.fisher import joint_multiplier
from pymc_dp.step_methods.langevin.kernels import release_products
from pymc_dp.step_methods.row_functions.limits import clip_to

from . import scoring

SIZE, CLIP = scoring.WIDTH, 0.7
HELD = clip_to(CLIP, size=SIZE, n_rows=1000, products=True)
PLAN = kernels.Plan(
    scale=1.0, sigma=1.0, products=2.0, centred=False, constants=(), clip=HELD, poisson=True, batch_size=1, waiting=1.0,
    chunk=4,
)  # fmt: skip


def added(x, y):
    """Sums of clipped gradients y x and of their products, by the compiled loop."""
    x, y = np.atleast_2d(np.asarray(x, dtype=float)), np.atleast_1d(np.asarray(y, dtype=float))
    table = kernels.make_table((x, y), PLAN)._replace(places=np.arange(len(y)))
    total, starts = np.zeros(SIZE + SIZE**2), np.zeros(1, dtype=np.int64)
    kernels.add_clipped(scoring.gradient, np.zeros(SIZE), starts, HELD, table, len(y), total)
    seen = matrix(total)
    return total[:SIZE] * HELD.unit, (np.tril(seen) + np.tril(seen, -1).T) * HELD.product_unit


def matrix(total):
    return total[SIZE:].reshape(SIZE, SIZE)


class Units:
    """Randomness that is one unit vector: shows what noise is made of."""

    def __init__(self, place):
        self.place, self.drawn = place, 0

    def standard_normal(self):
        self.drawn += 1
        return float(self.drawn - 1 == self.place)


def noise_on_products(code=release_products.py_func, plan=PLAN):
    """Covariance of the released entries, lower triangle with its diagonal, of a batch of one row."""
    lower = np.tril_indices(SIZE)
    columns = []
    for place in range(len(lower[0])):
        slope = np.zeros(SIZE + SIZE**2)
        code(slope, SIZE, plan, Units(place))
        assert (matrix(slope) == matrix(slope).T).all()
        columns.append(matrix(slope)[lower])
    return np.transpose(columns) @ columns


def whitened(noise, gradients):
    """Contributions of rows to gradients (noise 1 clip norm) and products, in units of the noise."""
    lower = np.tril_indices(SIZE)
    squares = np.einsum("ni,nj->nij", gradients, gradients)[:, *lower]
    root = np.linalg.cholesky(noise)
    return np.hstack([gradients / CLIP, np.linalg.solve(root, squares.T).T])


def corners(rng, count=400):
    """Gradients that rows can have after clipping: of full norm, along axes and diagonals and in between."""
    signs = np.array(np.meshgrid(*[[-1, 0, 1]] * SIZE)).reshape(SIZE, -1).T
    wild = rng.normal(size=(count, SIZE)) * 10.0 ** rng.uniform(-2, 6, size=(count, 1))
    return np.array([added(row, 1.0)[0] for row in [*(1e3 * signs), *wild]])


@pytest.mark.few(1)
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_one_row_moves_both_releases_together_by_what_the_event_says(rng, share):
    """Added rows reach the claim; replaced ones stay below twice of it, since products do not know signs."""
    gradients, squares = 1 / math.sqrt(1 - share), 1 / math.sqrt(share)
    noise = noise_on_products(plan=PLAN._replace(products=squares * CLIP**2))
    points = whitened(noise, corners(rng)) * np.append(np.full(SIZE, 1 / gradients), np.ones(SIZE * (SIZE + 1) // 2))
    claim = 1 / joint_multiplier(gradients, squares)
    added_most = np.linalg.norm(points, axis=1).max()
    replaced_most = np.linalg.norm(points[:, None] - points, axis=2).max()
    assert claim == pytest.approx(1)
    assert claim * (1 - 1e-8) < added_most <= claim
    cosine = max(-1.0, -(1 - share) / (2 * share))
    exact = math.sqrt(2 * (1 - cosine) * (1 - share) + 2 * (1 - cosine**2) * share)
    assert 0.98 * exact < replaced_most <= exact <= 2 * claim
    # The largest sensitivity needs opposite gradients while products are cheap, and these move no product.
    assert (exact == pytest.approx(2 * math.sqrt(1 - share))) == (share < 1 / 3)
