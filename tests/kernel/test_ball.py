"""Normal vectors in a ball: the range that is charged, what is added up, and the distribution of draws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import NormalInBall
from pymc_dp.kernel.ball import WITHIN, Proposals, _best, normal_in_ball
from tests.kernel.pairs import PAIRS, RELATIONS, Lookup, kernel, nasty, pair, table

UNIT = 2**15
WIDE = NormalInBall(width=2, radius=2.0, longest=0.75, farthest=1.0, precision=0.5)  # c < s
NARROW = NormalInBall(width=2, radius=0.5, longest=1.5, farthest=4.0, precision=2.0)  # c > s


def sums_of(monkeypatch):
    """A list of the sums that draws are made from, which are then no draws."""
    caught = []
    monkeypatch.setattr(NormalInBall, "_draw", lambda self, rng, sums, beta: caught.append(sums.copy()) or sums)
    return caught


def whole(vectors, responses):
    """What rows add, of whole numbers."""
    i, j = np.triu_indices(vectors.shape[1])
    return np.concatenate([vectors[:, i] * vectors[:, j], vectors * responses[:, None]], axis=1)


def log_likelihoods(family, points, moved):
    """Log-likelihoods at points, of sums of whole numbers."""
    d = family.width
    i, j = np.triu_indices(d)
    x, y = family.longest / UNIT, family.farthest / UNIT
    squares = -points[:, i] * points[:, j] * np.where(i == j, 0.5, 1.0) * x * x
    return family.precision * (squares @ moved[: len(i)] + x * y * (points @ moved[len(i) :]))


def points_of(family, count=20_000):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(count, family.width))
    points /= np.linalg.norm(points, axis=1)[:, None]
    lengths = np.where(rng.random(count) < 0.5, 1.0, rng.random(count) ** (1 / family.width))
    return points * lengths[:, None] * family.radius


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "family", [WIDE, NARROW, NormalInBall(width=3, radius=1.0, longest=1.0, farthest=1.0, precision=1.0)]
)
def test_neighbours_move_a_regression_by_the_range_that_is_charged_at_most(family, relation, monkeypatch, same_keys):
    caught, rng, worst, points = sums_of(monkeypatch), np.random.default_rng(1), 0.0, points_of(family)
    for trial in range(PAIRS):
        numbers = (
            nasty(rng, 400, family.width + 1) if trial % 2 else rng.choice([-50.0, 0.0, 50.0], (400, family.width + 1))
        )
        for made in pair(rng, relation):
            k = kernel(made)
            k.draw(Lookup(numbers), [], family, beta=0.25)
        used = 0.25 * np.ptp(log_likelihoods(family, points, caught[-1] - caught[-2]))
        charged = k.made[-1][1].eta
        assert used <= charged
        worst = max(worst, used / charged)
    assert worst > 0.3


def test_rows_add_products_of_whole_numbers_within_a_ball_and_an_interval(monkeypatch):
    caught, rng = sums_of(monkeypatch), np.random.default_rng(2)
    rows = np.concatenate([nasty(rng, 300, 4), rng.normal(size=(300, 4)), np.full((1, 4), np.nan)])
    family = NormalInBall(width=3, radius=1.0, longest=1.0, farthest=1.0, precision=1.0)
    for row in rows:
        kernel(table([0], "replace")).draw(Lookup([row]), [], family)
        found = [int(value) for value in caught[-1]]
        squares = found[0] + found[3] + found[5]
        assert squares <= UNIT**2
        # Of one row: (k_i m)² = m² k_i², m no larger than the unit.
        assert all(
            item**2 <= UNIT**2 * square for item, square in zip(found[6:], (found[0], found[3], found[5]), strict=True)
        )
        assert found[1] ** 2 == found[0] * found[3] and found[2] ** 2 == found[0] * found[5]
        inside = np.isfinite(row).all() and np.abs(row).max() <= 1 and np.linalg.norm(row[:3]) < 0.999
        if inside:
            k = np.rint(row * UNIT).astype(np.int64)
            assert found == whole(k[None, :3], k[3:])[0].tolist()


@pytest.mark.parametrize("family", [WIDE, NARROW])
def test_the_range_of_a_regression_is_reached(family):
    """With the rows and coefficients of the docstring, in fractions."""
    r, c, s = family.radius, family.farthest, family.longest * family.radius
    cosine = -c / s if c <= s else -1.0
    one = np.array([family.longest, 0.0])
    two = family.longest * np.array([cosine, math.sqrt(1 - cosine**2)])
    points = points_of(family) if c > s else np.concatenate([-r * one[None], -r * two[None]]) / family.longest
    ends = np.array([one, -one]) * r / family.longest
    points = np.concatenate([points, ends])
    logs = [-family.precision * (c - points @ x) ** 2 / 2 for x in (one, two)]
    assert np.ptp(logs[0] - logs[1]) == pytest.approx(float(family.range("replace")), rel=1e-12)
    alone = points @ one if c > s else np.linspace(-s, s, 10_001)
    assert np.ptp(-family.precision * (c - alone) ** 2 / 2) == pytest.approx(
        float(family.range("add_remove")), rel=1e-6
    )


@pytest.mark.parametrize("radius", [1.0, 2.5, 10 / 3])
def test_the_range_is_the_price_of_the_paper(radius):
    """Zhang, Rubinstein, Dimitrakakis (2016): |x| <= 1, |y| <= 1, noise of sd 1, coefficients no longer than r."""
    family = NormalInBall(width=14, radius=radius, longest=1.0, farthest=1.0, precision=1.0)
    assert family.range("replace") == (1 + Fraction(radius)) ** 2
    assert family.range("add_remove") == (1 + Fraction(radius)) ** 2 / 2


REGRESSIONS = {
    "uniform": (np.zeros((2, 2)), np.zeros(2)),
    "inside": (np.array([[90.0, 30.0], [30.0, 60.0]]), np.array([9.0, 21.0])),
    "on the surface": (np.array([[40.0, 10.0], [10.0, 30.0]]), np.array([20.0, 20.0])),
    "outside": (np.array([[400.0, 100.0], [100.0, 300.0]]), np.array([700.0, 2000.0])),
    "on a line": (np.array([[0.0, 0.0], [0.0, 50.0]]), np.array([0.0, 60.0])),
}
SHOWN = {
    "first": lambda v: v[:, 0],
    "second": lambda v: v[:, 1],
    "both": lambda v: v[:, 0] - v[:, 1],
    "length": lambda v: (v**2).sum(axis=1),
    "angle": lambda v: np.arctan2(v[:, 1], v[:, 0]),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_draws_in_two_dimensions_have_the_distribution_that_quadrature_gives(name):
    (curved, linear), radius = REGRESSIONS[name], 0.8
    rng = np.random.default_rng(list(REGRESSIONS).index(name))
    draws = np.array([normal_in_ball(rng, curved, linear, radius) for _ in range(2000)])
    assert (np.linalg.norm(draws, axis=1) <= radius).all()
    edges, angles = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 300)]), (np.arange(2400) + 0.5) * math.pi / 1200
    lengths = radius * WITHIN * (1 - (edges[1:] + edges[:-1]) / 2)
    r, t = np.meshgrid(lengths, angles - math.pi, indexing="ij")
    points = np.stack([r * np.cos(t), r * np.sin(t)], axis=-1).reshape(-1, 2)
    logs = points @ linear - np.einsum("ij,jk,ik->i", points, curved, points) / 2
    masses = np.exp(logs - logs.max()) * np.repeat(np.diff(edges) * lengths, len(angles))
    masses /= masses.sum()
    for shown in SHOWN.values():
        values = shown(points)
        order = np.argsort(values, kind="stable")
        below = np.cumsum(masses[order]) - masses[order] / 2
        uniform = np.interp(shown(draws), values[order], below)
        assert stats.kstest(uniform, "uniform").pvalue > 1e-4


def by_rejection(rng, curved, linear, count):
    """Normal vectors that happen to lie within the unit ball."""
    found, root = np.zeros((0, len(linear))), np.linalg.cholesky(np.linalg.inv(curved))
    while len(found) < count:
        proposed = np.linalg.solve(curved, linear) + rng.normal(size=(10**5, len(linear))) @ root.T
        found = np.concatenate([found, proposed[np.linalg.norm(proposed, axis=1) <= 1]])
    return found[:count]


@pytest.mark.parametrize("size", [3, 8])
@pytest.mark.parametrize("reach", [0.5, 1.1])
def test_draws_in_several_dimensions_have_the_distribution_of_rejected_ones(size, reach):
    rng = np.random.default_rng(size)
    turned = np.linalg.qr(rng.normal(size=(size, size)))[0]
    curved = (turned * np.linspace(4.0, 60.0, size)) @ turned.T
    linear = curved @ (turned @ np.full(size, reach / math.sqrt(size)))
    draws = np.array([normal_in_ball(rng, curved, linear, 1.0) for _ in range(1500)])
    others = by_rejection(rng, curved, linear, 25_000)
    for along in (np.eye(size)[0], turned[:, 0], turned[:, -1], linear):
        assert stats.ks_2samp(draws @ along, others @ along).pvalue > 1e-4
    assert stats.ks_2samp((draws**2).sum(axis=1), (others**2).sum(axis=1)).pvalue > 1e-4


HARD = {
    "uniform": lambda d: (np.zeros(d), np.zeros(d)),
    "deep inside": lambda d: (np.full(d, 1e4), np.full(d, 1e3 / math.sqrt(d))),
    "on the surface": lambda d: (np.full(d, 1e4), np.full(d, 1e4 / math.sqrt(d))),
    "outside": lambda d: (np.full(d, 1e4), np.full(d, 2e4 / math.sqrt(d))),
    "far outside": lambda d: (np.full(d, 1e2), np.full(d, 1e6 / math.sqrt(d))),
    "pressed by one entry": lambda d: (np.full(d, 1e2), 1e6 * np.eye(d)[0]),
    "a wide prior": lambda d: (np.full(d, 0.5), np.zeros(d)),
    "of many scales": lambda d: (np.geomspace(1, 1e5, d), 10 * np.geomspace(1, 1e3, d)),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("size", [2, 10, 14, 30])
def test_few_proposals_are_rejected_wherever_the_mode_lies(name, size):
    curved, linear = HARD[name](size)
    proposals = Proposals.of(np.maximum(curved, 1e-30), linear)
    with np.errstate(all="ignore"):
        logs = proposals.log_chances(proposals.propose(np.random.default_rng(size), 4000))
    assert logs.max() <= 1e-9
    assert 1 / np.exp(logs).mean() <= 1.6 * math.sqrt(size)


def test_which_entry_is_left_and_how_proposals_are_tilted_changes_no_distribution():
    rng, size = np.random.default_rng(5), 4
    curved, linear = np.geomspace(3.0, 30.0, size), np.array([4.0, 6.0, 9.0, 20.0])
    chosen = Proposals.of(curved, linear)
    others = by_rejection(rng, np.diag(curved), linear, 20_000)
    for left in range(size):
        for tilt in (0.5 * chosen.tilt, 3 * chosen.tilt):
            best = _best(curved[left], linear[left], tilt)
            one = Proposals(curved=curved, linear=linear, tilt=tilt, left=left, best=best)
            with np.errstate(all="ignore"):
                proposed = one.propose(rng, 20_000)
                logs = one.log_chances(proposed)
            assert logs.max() <= 1e-9
            kept = proposed[logs > -rng.standard_exponential(len(logs))]
            for place in range(size - 1):
                of = np.delete(others, left, axis=1)[:, place]
                assert stats.ks_2samp(kept[:, place], of).pvalue > 1e-5


def test_a_regression_is_drawn_from_its_posterior():
    rng, n = np.random.default_rng(7), 40
    x, y = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, n)
    family = NormalInBall(width=2, radius=0.6, longest=1.5, farthest=2.0, precision=4.0, prior=3.0)
    k = kernel(table(np.arange(n), "replace"))
    rows = Lookup(np.column_stack([x / 1.5, y / 2.0]))
    draws = np.array([k.draw(rows, [], family, beta=0.5) for _ in range(1500)])
    others = by_rejection(rng, 0.36 * (2 * x.T @ x + 3 * np.eye(2)), 0.6 * 2 * x.T @ y, 20_000) * 0.6
    for along in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]):
        assert stats.ks_2samp(draws @ along, others @ along).pvalue > 1e-4
    assert k.arithmetic == "float64"


def test_no_rows_and_one_row_lead_to_a_draw_alike():
    family = NormalInBall(width=2, radius=1.0, longest=1.0, farthest=1.0, precision=1.0)
    for rows in ([], [0]):
        k = kernel(table(rows, "add_remove"))
        assert k.draw(Lookup([[0.1, 0.2, 0.3]]), [], family).shape == (2,)


def test_sums_of_any_size_lead_to_a_vector_of_the_ball():
    rng = np.random.default_rng(0)
    for curved, linear in (
        (1e308, 1e308),
        (np.inf, np.inf),
        (np.nan, np.nan),
        (0.0, np.inf),
        (1e300, 0.0),
        (0.0, 1e-300),
    ):
        with np.errstate(all="ignore"):
            found = normal_in_ball(rng, curved * np.eye(3), linear * np.ones(3), 2.0)
        assert np.linalg.norm(found) <= 2.0
    for _ in range(60):
        turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        curved = (turned * 10.0 ** rng.uniform(-30, 60, 3)) @ turned.T
        assert np.linalg.norm(normal_in_ball(rng, curved, 10.0 ** rng.uniform(-30, 60, 3), 2.0)) <= 2.0


@pytest.mark.parametrize(
    "given",
    [
        {"precision": 1e150},
        {"longest": 1e160, "radius": 1e-150},
        {"farthest": 1e200},
        {"prior": 1e60, "radius": 1e5},
    ],
)
def test_what_floats_do_not_hold_of_some_table_is_refused_before_the_charge(given):
    family = NormalInBall(**{"width": 2, "radius": 1e3, "longest": 1e3, "farthest": 1e3, "precision": 1.0, **given})
    k = kernel(table([0, 1], "replace"))
    with pytest.raises(ArgumentError, match="too large for floats"):
        k.draw(Lookup([[0.6, 0.8, 1.0], [1.0, 0.0, -1.0]]), [], family)
    assert not k.made


def test_long_rows_in_a_small_ball_count_as_their_products_say():
    """Of a row of length 1e200 in a ball of 1e-200 only the product of both matters; it was infinite as a float."""
    of_map = Lookup([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    family = NormalInBall(width=2, radius=1e-200, longest=1e200, farthest=1.0, precision=1.0)
    k = kernel(table([0] * 2 + [1] * 48, "add_remove"))
    draws = np.array([k.draw(of_map, [], family, beta=0.01)[0] for _ in range(400)]) * 1e200
    assert 0.3 < draws.std() < 0.7


@pytest.mark.parametrize(
    "given",
    [
        {"width": 1},
        {"width": 2.0},
        {"radius": 0.0},
        {"radius": math.inf},
        {"longest": -1.0},
        {"farthest": 0.0},
        {"precision": math.nan},
        {"prior": -1.0},
    ],
)
def test_balls_without_a_finite_range_are_refused(given):
    plain = {"width": 2, "radius": 1.0, "longest": 1.0, "farthest": 1.0, "precision": 1.0}
    with pytest.raises(ArgumentError):
        NormalInBall(**plain | given)
