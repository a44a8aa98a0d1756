"""What rows add: within the limits, centred, of each row alone."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from pymc_dp.gradients import row_parts
from pymc_dp.gradients.clipping import clipped
from pymc_dp.gradients.integers import SCORE_UNITS, add_curvatures, add_scores
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.row_parts import RowParts, block_size, expected
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits
from pymc_dp.rows.gate import read
from tests.gradients import models

pytestmark = pytest.mark.usefixtures("paid")

HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e300)


def parts_of(build, limits=(1.0, 1.0), mode="FAST_COMPILE"):
    interface = interface_of(*build())
    rows = RowScores.of(interface, mode=mode)
    scale = np.linspace(0.5, 2, interface.size)
    held = Limits(scale=scale, clip_norm=limits[0], clip_curvature=limits[1])
    return Held(RowParts(rows=rows), held), [read(column) for column in interface.inspection.columns]


class Held:
    """Parts of rows at limits that stay."""

    def __init__(self, parts, limits):
        self.rows, self.limits = parts.rows, limits
        self.scores, self.factors = partial(parts.scores, limits=limits), partial(parts.factors, limits=limits)


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [models.poisson, models.normal, models.ordered, models.groups, models.two])
def test_no_row_is_left_out_and_none_is_too_long(build, rng):
    parts, chunk = parts_of(build, limits=(0.3, 50.0))
    at = rng.normal(0, 0.5, parts.rows.interface.size)
    scores, factors = parts.scores(chunk, at), parts_of(build)[0].factors(chunk, at)
    assert scores.shape == (models.ROWS, len(at)) and factors.shape == (models.ROWS, parts.rows.count, len(at))
    norms = np.linalg.norm(scores, axis=1)
    assert 0.999 < norms.max() < 1
    curvatures = np.linalg.norm(np.einsum("nqd,nqe->nde", factors, factors), axis=(1, 2))
    assert 0.5 < curvatures.max() < 1
    for place in range(models.ROWS):
        total, matrix = np.zeros(len(at), dtype=np.int64), np.zeros((len(at),) * 2, dtype=np.int64)
        add_scores(scores[place : place + 1], total)
        add_curvatures(factors[place : place + 1], matrix)
        np.testing.assert_allclose(total / SCORE_UNITS, scores[place], atol=2 / SCORE_UNITS)
        assert matrix.any()


@pytest.mark.slow
def test_wide_limits_leave_scores_and_information_as_they_are(rng):
    parts, chunk = parts_of(models.negative_binomial, limits=(1e6, 1e9))
    at = rng.normal(0, 0.3, parts.rows.interface.size)
    found = expected(parts.rows, chunk, at, parts.limits.scale)
    whole = np.einsum("nq,nqd->nd", found.observed, found.jacobian)[: models.ROWS]
    here = at / parts.limits.scale
    np.testing.assert_allclose(parts.scores(chunk, here) * 1e6, whole, rtol=1e-5, atol=1e-6)
    weights, scores = found.responses.weights, found.responses.scores
    information = np.einsum("nb,nbi,nbj,nid,nje->nde", weights, scores, scores, found.jacobian, found.jacobian)
    factors = parts.factors(chunk, here)
    np.testing.assert_allclose(
        np.einsum("nqd,nqe->nde", factors, factors) * 1e9, information[: models.ROWS], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("build", [models.normal, models.poisson, models.groups, models.two])
def test_clipped_scores_have_mean_zero_over_responses_that_the_model_draws(build, rng):
    """The mean over all values of the response of one row, where most of them are clipped."""
    parts, chunk = parts_of(build, limits=(0.7, 50.0))
    at = rng.normal(0, 0.5, parts.rows.interface.size)
    found = expected(parts.rows, [column[:32] for column in chunk], at, parts.limits.scale)
    mean = np.zeros((32, len(at)))
    size = 0.0
    for node in range(found.responses.weights.shape[1]):
        one = type(found)(
            jacobian=found.jacobian,
            gram=found.gram,
            responses=found.responses,
            observed=found.responses.scores[:, node],
        )
        own = np.einsum("nq,nqd->nd", one.clipped(parts.limits).scores, found.jacobian)
        mean += found.responses.weights[:, node, None] * own
        size = max(size, np.linalg.norm(own, axis=1).max())
    assert size > 0.69, "some are clipped"
    assert np.linalg.norm(mean, axis=1).max() < 0.02


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
def test_what_one_row_holds_changes_no_other(mode, rng):
    parts, chunk = parts_of(models.normal, mode=mode)
    at = rng.normal(0, 0.5, parts.rows.interface.size)
    plain = parts.scores(chunk, at), parts.factors(chunk, at)
    others = np.arange(models.ROWS) != 7
    for bad in HOSTILE:
        hostile = [column.copy() for column in chunk]
        for column in hostile:
            column[7] = bad
        found = parts.scores(hostile, at), parts.factors(hostile, at)
        for one, other in zip(plain, found, strict=True):
            np.testing.assert_array_equal(one[others], other[others])
        total = np.zeros(len(at), dtype=np.int64)
        add_scores(found[0], total)
        assert np.linalg.norm(total / SCORE_UNITS) < models.ROWS


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("build", [models.normal, models.groups, models.ordered])
def test_a_row_gives_the_same_wherever_it_stands_and_whatever_comes_after(build, rng):
    """With fast arithmetic every fourth row of an ordered regression differed in the last digit."""
    parts, chunk = parts_of(build, mode="NUMBA")
    at = rng.normal(0, 0.5, parts.rows.interface.size)
    whole = parts.scores(chunk, at)
    order = rng.permutation(models.ROWS)
    np.testing.assert_array_equal(parts.scores([column[order] for column in chunk], at), whole[order])
    for count in (1, 5, 31, 33):
        np.testing.assert_array_equal(parts.scores([column[:count] for column in chunk], at), whole[:count])
        np.testing.assert_array_equal(parts.scores([column[count:] for column in chunk], at), whole[count:])


def test_many_rows_are_taken_in_blocks(monkeypatch, rng):
    parts, chunk = parts_of(models.bernoulli)
    at = rng.normal(0, 0.5, parts.rows.interface.size)
    whole = parts.scores(chunk, at), parts.factors(chunk, at)
    monkeypatch.setattr("pymc_dp.gradients.row_parts.ENTRIES", 1)
    assert block_size(parts.rows) == 32 < models.ROWS
    np.testing.assert_array_equal(parts.scores(chunk, at), whole[0])
    np.testing.assert_array_equal(parts.factors(chunk, at), whole[1])


def test_no_rows_give_no_parts():
    parts, chunk = parts_of(models.bernoulli)
    none = [column[:0] for column in chunk]
    assert parts.scores(none, np.zeros(4)).shape == (0, 4) and parts.factors(none, np.zeros(4)).shape == (0, 1, 4)


def test_whitened_rows_are_within_limits_and_say_the_same(rng):
    """Sums in whitened coordinates, turned back, are those of the plain ones where nothing is clipped."""
    parts, chunk = parts_of(models.poisson, limits=(1e6, 1e9))
    at, plain = rng.normal(0, 0.3, parts.rows.interface.size), parts.limits
    rows = RowParts(rows=parts.rows)
    whole = np.einsum("nqd,nqe->de", *[rows.factors(chunk, at, plain)] * 2) * plain.clip_curvature
    near = plain.whitened(whole, models.ROWS)
    assert near.clip_norm**2 == pytest.approx(len(at)) and near.clip_curvature == pytest.approx(1.5 * len(at))
    wide = replace(near, clip_norm=1e6, clip_curvature=1e9)
    own = rows.factors(chunk, at, wide)
    turned = np.einsum("nqd,nqe->de", own, own) * wide.clip_curvature
    np.testing.assert_allclose(turned, models.ROWS * np.eye(len(at)), atol=1e-3)
    np.testing.assert_allclose(wide.curvature(turned), whole, rtol=1e-5)
    score = rows.scores(chunk, at, wide).sum(axis=0) * wide.clip_norm
    np.testing.assert_allclose(wide.score(score), parts.scores(chunk, at).sum(axis=0) * 1e6, rtol=1e-5)
    for found in (rows.scores(chunk, at, near), rows.factors(chunk, at, near)[:, 0]):
        assert (np.linalg.norm(found, axis=1) <= 1).all()


def test_no_row_depends_on_how_many_stand_before_it(rng):
    """With Numba's fast arithmetic a tenth of these rows gave other last digits at every fourth place."""
    rows = RowScores.of(interface_of(*models.ordered()), mode="NUMBA")
    limits = Limits(scale=np.linspace(0.5, 2, rows.interface.size), clip_norm=0.7, clip_curvature=0.9)
    drawn = {"x": rng.uniform(-1, 1, (3000, 3)), "y": rng.integers(0, 4, 3000)}
    chunk = [drawn[column.name] for column in rows.interface.inspection.columns]
    at, parts = rng.normal(size=rows.interface.size), RowParts(rows=rows)
    for part in (parts.scores, parts.factors):
        whole = part(chunk, at, limits)
        for count in (1, 2, 3, 31):
            np.testing.assert_array_equal(part([column[count:] for column in chunk], at, limits), whole[count:])


def test_twice_the_curvature_that_is_charged_is_left_out(monkeypatch):
    """A factor of two in C_F, made on purpose: what rows add is then nothing, and never twice as much."""
    parts, chunk = parts_of(models.poisson, limits=(0.3, 0.05))
    at = np.zeros(parts.rows.interface.size)
    monkeypatch.setattr(row_parts, "clipped", lambda *args, **kw: clipped(*args, **kw | {"clip_curvature": 0.1}))
    factors = parts.factors(chunk, at)
    norms = np.linalg.norm(np.einsum("nqd,nqe->nde", factors, factors), axis=(1, 2))
    assert norms.max() > 1.9
    whole, rest = np.zeros((2, len(at), len(at)), dtype=np.int64)
    add_curvatures(factors, whole)
    add_curvatures(factors[norms < 1], rest)
    np.testing.assert_array_equal(whole, rest)
