"""How far one row can move gradients and products together, the noise on both, and laws of the steps, exactly."""

import inspect
import math

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from pymc_dp.step_methods.langevin import fisher_kernels, kernels
from pymc_dp.step_methods.langevin.fisher import joint_multiplier
from pymc_dp.step_methods.langevin.fisher_kernels import Scoring, add_products, follow, release
from pymc_dp.step_methods.row_functions.clipping import clip_to

from . import scoring

SIZE, CLIP = scoring.WIDTH, 0.7
HELD = clip_to(CLIP, size=SIZE, n_rows=1000, products=True)
SCORING = Scoring(noise=2.0, population=100.0, weight=1.0, asked=4.0, papers=False)
HOSTILE = [0.0, 1e-310, 1e-170, 1.0, -1e9, 1e154, 1e200, -1e300, np.inf, -np.inf, np.nan, np.finfo(float).max]


def added(x, y):
    """Sums of clipped gradients y x and of their products, by the compiled loop."""
    x, y = np.atleast_2d(np.asarray(x, dtype=float)), np.atleast_1d(np.asarray(y, dtype=float))
    plan = kernels.Plan(1.0, 1.0, SCORING, HELD, True, 1, 1.0, 4)
    table = kernels.make_table((x, y), plan)
    total, products = np.zeros(SIZE), np.zeros((SIZE, SIZE))
    places, starts = np.arange(len(y)), np.zeros(1, dtype=np.int64)
    add_products(
        scoring.gradient,
        np.zeros(SIZE),
        table.rows,
        places,
        starts,
        HELD,
        table.buffers,
        table.squares,
        total,
        products,
    )
    return total * HELD.unit, (np.tril(products) + np.tril(products, -1).T) * HELD.product_unit


class Units:
    """Randomness that is one unit vector: shows what noise is made of."""

    def __init__(self, place):
        self.place, self.drawn = place, 0

    def standard_normal(self):
        self.drawn += 1
        return float(self.drawn - 1 == self.place)


def noise_on_products(code=release.py_func, settings=SCORING):
    """Covariance of the released entries, lower triangle with its diagonal, of a batch of one row."""
    lower = np.tril_indices(SIZE)
    columns = []
    for place in range(len(lower[0])):
        sum_of = np.zeros((SIZE, SIZE))
        code(np.zeros(SIZE), np.zeros((SIZE, SIZE)), 1.0, HELD, settings, Units(place), sum_of)
        assert (sum_of == sum_of.T).all()
        columns.append(sum_of[lower])
    return np.transpose(columns) @ columns


def whitened(noise, gradients):
    """Contributions of rows to gradients (noise 1 clip norm) and products, in units of the noise."""
    lower = np.tril_indices(SIZE)
    products = np.einsum("ni,nj->nij", gradients, gradients)[:, *lower]
    root = np.linalg.cholesky(noise)
    return np.hstack([gradients / CLIP, np.linalg.solve(root, products.T).T])


def corners(rng, count=400):
    """Gradients that rows can have after clipping: of full norm, along axes and diagonals and in between."""
    signs = np.array(np.meshgrid(*[[-1, 0, 1]] * SIZE)).reshape(SIZE, -1).T
    wild = rng.normal(size=(count, SIZE)) * 10.0 ** rng.uniform(-2, 6, size=(count, 1))
    return np.array([added(row, 1.0)[0] for row in [*(1e3 * signs), *wild]])


def test_a_row_adds_its_clipped_gradient_and_the_square_of_it(rng):
    x, y = rng.normal(size=(11, SIZE)), rng.normal(size=11)
    rows = x * y[:, None]
    rows *= np.minimum(1, CLIP / np.linalg.norm(rows, axis=1))[:, None]
    total, products = added(x, y)
    np.testing.assert_allclose(total, rows.sum(axis=0), rtol=1e-7)
    np.testing.assert_allclose(products, rows.T @ rows, rtol=1e-7, atol=1e-12)


def test_a_hostile_row_adds_at_most_the_clip_norm_and_its_square(rng):
    for _ in range(400):
        total, products = added(rng.choice(HOSTILE, size=SIZE), rng.choice(HOSTILE))
        assert np.isfinite(total).all() and np.isfinite(products).all()
        assert np.linalg.norm(total) <= CLIP and np.linalg.norm(products) <= CLIP**2


@pytest.mark.few(1)
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_one_row_moves_both_releases_together_by_what_the_event_says(rng, share):
    """Added rows reach the claim; replaced ones stay below twice of it, since products do not know signs."""
    gradients, products = 1 / math.sqrt(1 - share), 1 / math.sqrt(share)
    noise = noise_on_products(settings=SCORING._replace(noise=products * CLIP**2))
    points = whitened(noise, corners(rng)) * np.append(np.full(SIZE, 1 / gradients), np.ones(SIZE * (SIZE + 1) // 2))
    claim = 1 / joint_multiplier(gradients, products)
    added_most = np.linalg.norm(points, axis=1).max()
    replaced_most = np.linalg.norm(points[:, None] - points, axis=2).max()
    assert claim == pytest.approx(1)
    assert claim * (1 - 1e-8) < added_most <= claim
    cosine = max(-1.0, -(1 - share) / (2 * share))
    exact = math.sqrt(2 * (1 - cosine) * (1 - share) + 2 * (1 - cosine**2) * share)
    assert 0.98 * exact < replaced_most <= exact <= 2 * claim
    # The largest sensitivity needs opposite gradients while products are cheap, and these move no product.
    assert (exact == pytest.approx(2 * math.sqrt(1 - share))) == (share < 1 / 3)


MUTANTS = {
    "noise on products forgotten": ("seen + (", "seen + 1e-9 * ("),
    "root of two taken twice": ("np.sqrt(0.5)", "0.5"),
    "factor of two": ("on if i == j", "on / 2 if i == j"),
    "noise of the diagonal copied": ("if i == j else off", "if i == j else 0.1 * off"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_of_the_noise_die(rng, name):
    source = inspect.getsource(release.py_func).split("\n", 1)[1]
    right, wrong = MUTANTS[name]
    assert source.count(right) == 1
    space = vars(fisher_kernels).copy()
    exec(compile(source.replace(right, wrong), "mutant", "exec", dont_inherit=False), space)
    points = corners(rng, 50)
    settings = SCORING._replace(noise=CLIP**2)
    allowed = 1 / joint_multiplier(1.0, 1.0)
    assert np.linalg.norm(whitened(noise_on_products(settings=settings), points), axis=1).max() <= allowed
    mutant = noise_on_products(space["release"], settings)
    assert np.linalg.norm(whitened(mutant, points), axis=1).max() > 1.1 * allowed


def covariance_sensitivity(points, x, y):
    return np.linalg.norm(np.cov(np.vstack([points, x]).T) - np.cov(np.vstack([points, y]).T))


@pytest.mark.parametrize("batch", [2, 3, 5, 20])
def test_the_covariance_of_a_batch_moves_by_four_over_its_size(rng, batch):
    """Lemma 19 says 7 / (b - 1); the exact worst case is 4 / b, far points from a mean that all others are at."""
    found = 0.0
    others = rng.normal(size=(400, batch - 1, SIZE))
    others[::2] = others[::2, :1]
    others /= np.maximum(1, np.linalg.norm(others, axis=2, keepdims=True))
    for points in others:
        x, y = rng.normal(size=(2, SIZE)) * 10
        if rng.random() < 0.5:
            x, y = -points.mean(axis=0) * 10, points.mean(axis=0) + 0.1 * rng.normal(size=SIZE)
        x, y = (point / max(1.0, np.linalg.norm(point)) for point in (x, y))
        found = max(found, covariance_sensitivity(points, x, y))
    worst = np.tile([1.0, 0.0, 0.0], (batch - 1, 1))
    reached = covariance_sensitivity(worst, -worst[0], worst[0])
    assert reached == pytest.approx(4 / batch)
    assert 0.8 * reached < found <= reached < 7 / (batch - 1)


def test_a_covariance_and_a_mean_move_together_by_what_is_charged():
    """The same pair of rows is the worst for both."""
    batch, gradients, covariances = 6, 3.0, 11.0
    worst = np.tile([1.0, 0.0, 0.0], (batch - 1, 1))
    of_covariance = covariance_sensitivity(worst, -worst[0], worst[0]) * batch / covariances
    whole = math.hypot(2 / gradients, of_covariance)
    assert whole == pytest.approx(2 / joint_multiplier(gradients, covariances, covariances=True))


@pytest.mark.parametrize("papers", [False, True])
def test_what_is_released_is_the_information_per_row(rng, papers):
    x = rng.normal(size=(7, SIZE))
    settings, sum_of = SCORING._replace(papers=papers), np.ones((SIZE, SIZE))
    products = np.tril(x.T @ x) / HELD.product_unit
    release.py_func(x.sum(axis=0) / HELD.unit, products, 7.0, HELD, settings, Units(-1), sum_of)
    np.testing.assert_allclose(sum_of - 1, np.cov(x.T) if papers else x.T @ x / 7, rtol=1e-12)


# Laws of the steps: linear, so that stationary covariances are exact.


def stationary(stiffness, sigma, eta, batch_noise=0.0, known=None, settings=SCORING):
    """Covariance of θ where the log-density is -θᵀ stiffness θ / 2; `known` is what the chain believes of it.

    Batches add noise of covariance batch_noise * stiffness, which G knows.
    """
    size = len(stiffness)
    bends, axes = np.linalg.eigh((1 + batch_noise) * (stiffness if known is None else known))
    root = (
        np.linalg.cholesky(batch_noise * stiffness + 1e-300 * np.eye(size)) if batch_noise else np.zeros((size, size))
    )

    def moved(position, slope, place):
        position = position.copy()
        follow.py_func(position, axes, bends, eta, sigma, settings, slope, Units(place))
        return position

    still, units = np.zeros(size), np.eye(size)
    carried = np.transpose([moved(unit, -stiffness @ unit, -1) for unit in units])
    kicks = [moved(still, sigma * unit, -1) for unit in units]
    kicks += [moved(still, column, -1) for column in root.T]
    kicks += [moved(still, np.zeros(size), place) for place in range(size)]
    return solve_discrete_lyapunov(carried, np.transpose(kicks) @ kicks)


BENT = np.array([[5.0, 2.0, 0.3], [2.0, 4.0, -1.0], [0.3, -1.0, 0.8]])


@pytest.mark.parametrize("sigma", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("batch_noise", [0.0, 9.0])
@pytest.mark.parametrize("eta", [1e9, 0.1])
def test_a_normal_target_is_met_exactly_at_any_noise(sigma, batch_noise, eta):
    """Variances and covariances, whatever part of the noise protects rows, is injected, or comes from batches."""
    np.testing.assert_allclose(stationary(BENT, sigma, eta, batch_noise), np.linalg.inv(BENT), rtol=1e-9, atol=1e-12)


def test_steps_of_the_same_length_without_the_information_are_hot():
    """Langevin steps η = 2 / σ² have noise 2 η as they should, and still twice the variance where η bends = 1."""
    sigma = math.sqrt(2.0)
    exact = stationary(np.eye(2), sigma, 1e9)
    without = stationary(np.eye(2), sigma, 1e9, known=np.zeros((2, 2)))
    np.testing.assert_allclose(exact, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(without, 2 * np.eye(2), rtol=1e-9)


@pytest.mark.parametrize("bend", [0.5, 1.0, 1.9, 2.5])
def test_wrong_information_shows_less_the_more_noise_there_is(bend):
    """Q / (Q + A - a): the noise is known even where the bends are not."""
    for sigma in (1.3, 10.0):
        found = stationary(np.eye(1) * bend, sigma, 1e9, known=np.eye(1))[0, 0]
        assert found == pytest.approx(sigma**2 / (sigma**2 + 1 - bend) / bend)


def test_mutant_that_forgets_nine_tenths_of_the_noise_is_hot():
    sigma = 3.0
    hot = stationary(BENT, sigma, 1e9, known=BENT - 0.9 * sigma**2 * np.eye(3))
    assert np.trace(hot) > 2 * np.trace(np.linalg.inv(BENT))


def test_the_papers_form_has_a_quarter_of_the_variance_where_its_ridge_is_most_of_it():
    """Its noise is C² / η beside a ridge of 4 C² / η."""
    papers = SCORING._replace(asked=1.0, papers=True)
    for eta in (1e-4, 1e-6):
        found = stationary(np.eye(1), 1 / math.sqrt(eta), eta, settings=papers)[0, 0]
        assert found == pytest.approx(0.25, rel=1e-3)


@pytest.mark.slow
def test_small_steps_meet_a_skewed_posterior(rng):
    """Six waiting times with a Gamma prior of their rate, whose logarithm is sampled."""
    import numba
    from scipy import stats

    from pymc_dp.step_methods.langevin.information import learn, nothing_known, views

    @numba.njit
    def of_row(position, y):
        return 1 - np.exp(position[0]) * y, np.ones((y.size, 1))

    @numba.njit
    def of_prior(position):
        return (2 - np.exp(position),)

    y = np.array([0.2, 0.9, 1.7, 0.4, 2.3, 0.1])
    n, thin, eta = y.size, 50, 0.004
    settings = Scoring(noise=0.01, population=float(n), weight=1 + 6 / 3 * 0.5 * 6 / 5, asked=4.0, papers=False)
    clip = clip_to(60.0, size=1, n_rows=3, products=True)
    plan = kernels.Plan(2.0, 1.0, settings, clip, False, 3, 0.0, 32)
    table = kernels.make_table((y,), plan)
    known, position, draws = views(nothing_known(np.eye(1)), 1), np.zeros(1), np.empty(60_000)
    for i in range(draws.size):
        fisher_kernels.scoring_walk(
            of_row,
            of_prior,
            position,
            known.sum_of,
            known.axes,
            known.bends,
            np.full(thin, eta),
            rng,
            plan,
            np.zeros(1, dtype=np.int64),
            table,
        )
        known.steps[1] += thin
        if i < 1000:
            learn(known, weight=settings.weight * n, ahead=2.0, each_positive=False)
        draws[i] = position[0]
    import arviz as az

    rate = np.exp(draws[200:])
    shape, beta = 2 + n, 1 + y.sum()
    ess = float(az.ess(rate[None]))
    assert ess > 2000
    assert abs(rate.mean() - shape / beta) < 5 * rate.std() / math.sqrt(ess)
    assert stats.skew(rate) == pytest.approx(2 / math.sqrt(shape), rel=0.15)
    assert stats.kstest(rate[::30], stats.gamma(shape, scale=1 / beta).cdf).pvalue > 0.001
