"""What persons add to gradients and curvatures: one score of all of their rows, within what is charged for one."""

from dataclasses import replace

import numpy as np
import pytest

from pymc_dp.gradients.integers import CURVATURE_UNITS, add_curvatures
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.persons import OUTCOMES, PersonParts, added
from pymc_dp.gradients.row_parts import RowParts
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import Limits
from pymc_dp.rows.gate import read
from pymc_dp.rows.persons import Grouped
from tests.gradients import models

pytestmark = pytest.mark.usefixtures("paid")


def parts_of(build, limits=(0.4, 0.6)):
    interface = interface_of(*build())
    rows = RowParts(rows=RowScores.of(interface, mode="FAST_COMPILE"))
    held = Limits(scale=np.linspace(0.5, 2, interface.size), clip_norm=limits[0], clip_curvature=limits[1])
    columns = [read(column) for column in interface.inspection.columns]
    return rows, PersonParts(parts=rows), columns, held


def taken(columns, rows):
    return [column[rows] for column in columns]


def curvatures(factors):
    return np.einsum("nkd,nke->nde", factors, factors)


BUILDS = [models.bernoulli, models.normal, models.poisson, models.groups, models.two, models.integrated]


@pytest.mark.few(1)
@pytest.mark.parametrize("build", BUILDS)
def test_the_worst_person_adds_what_is_charged_and_no_more(build, rng):
    """Searched for: the row with the longest score, a thousand times; and rows that together are longest, by turns."""
    plain, persons, columns, limits = parts_of(build)
    at = rng.normal(0, 0.5, plain.rows.interface.size)
    scores, factors = plain.scores(columns, at, limits), plain.factors(columns, at, limits)
    longest = np.linalg.norm(scores, axis=1).argmax()
    steepest = np.linalg.norm(curvatures(factors), axis=(1, 2)).argmax()
    tries, rows = [np.full(1000, longest), np.full(1000, steepest)], [longest]
    for _ in range(8):  # one row after another, each such that the sum is longest
        rows.append(int(np.linalg.norm(scores[rows].sum(axis=0) + scores, axis=1).argmax()))
        tries.append(np.array(rows))
    tries += [rng.integers(0, models.ROWS, count) for count in (4, 10, 100)]
    found = []
    for rows in tries:
        chunk = Grouped(taken(columns, rows), np.array([0, len(rows)]))
        (score,), (bent,) = persons.scores(chunk, at, limits), curvatures(persons.factors(chunk, at, limits))
        assert score.any() and bent.any()
        found.append((np.linalg.norm(score), np.linalg.norm(bent)))
    worst = np.max(found, axis=0)
    assert (worst <= 1).all()
    assert worst.max() > 0.9


@pytest.mark.few(1)
@pytest.mark.parametrize("build", [models.bernoulli, models.poisson, models.groups])
@pytest.mark.parametrize("lengths", [(2, 3, 5), (9, 31)])
def test_clipped_scores_of_persons_have_mean_zero_under_the_model(build, lengths, rng):
    """Over responses drawn from the model, given covariates; what clipping by the observed norm alone has is a bias."""
    plain, _, columns, limits = parts_of(build, limits=(0.25, 1e6))
    at = rng.normal(0, 0.5, plain.rows.interface.size)
    rows = rng.integers(0, models.ROWS, sum(lengths))
    (block,) = plain.turned(taken(columns, rows), at, limits)
    weights, scores = block.of_rows(block.responses.weights), block.of_rows(block.responses.scores)
    edges, total, cut, times = np.append(0, np.cumsum(lengths)), [], [], 4000
    sums = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    for _ in range(times):
        drawn = (rng.random((len(rows), 1)) > sums[:, :-1]).sum(axis=1)
        seen = replace(block, observed=scores[np.arange(len(rows)), drawn])
        total.append(added([seen], edges, limits).scores)
        whole = np.add.reduceat(np.einsum("nq,nqd->nd", seen.observed, seen.of_rows(seen.jacobian)), edges[:-1], axis=0)
        size = np.linalg.norm(whole, axis=1, keepdims=True)
        cut.append(whole * np.minimum(1, limits.clip_norm / size))
    off, biased = (np.abs(np.mean(one, axis=0)) / (np.std(one, axis=0) / times**0.5 + 1e-3) for one in (total, cut))
    assert np.mean(np.linalg.norm(total, axis=2) > 0.99 * limits.clip_norm) > 0.05, "some are clipped"
    assert off.max() < 6
    assert biased.max() > off.max() or lengths[0] > 5, "sums of many are about symmetric"


def test_a_slope_of_clipped_scores_is_the_curvature_that_is_released(rng):
    """By differences: how the mean of clipped scores, given where responses are drawn, changes with the parameters."""
    plain, _, columns, limits = parts_of(models.bernoulli, limits=(0.3, 1e6))
    size = plain.rows.interface.size
    at, rows, edges = rng.normal(0, 0.5, size), rng.integers(0, models.ROWS, 5), np.array([0, 5])
    (block,) = plain.turned(taken(columns, rows), at, limits)
    (bent,) = curvatures(added([block], edges, limits, curved=True).factors)
    chances, values = block.of_rows(block.responses.weights), block.of_rows(block.responses.scores)
    outcomes = np.stack(np.meshgrid(*[range(2)] * 5, indexing="ij"), axis=-1).reshape(-1, 5)
    each = np.arange(5)

    def mean(weights):
        total = np.zeros(size)
        for one in outcomes:
            (own,) = added([replace(block, observed=values[each, one])], edges, limits).scores
            total += np.prod(weights[each, one]) * own
        return total

    np.testing.assert_allclose(mean(chances), 0, atol=1e-5)
    step, slope = 1e-4, np.zeros((size, size))
    for place in range(size):
        moved = np.eye(size)[place] * step
        up, down = (next(iter(plain.turned(taken(columns, rows), at + s * moved, limits))) for s in (1, -1))
        ends = [mean(one.of_rows(one.responses.weights)) for one in (up, down)]
        slope[:, place] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(slope, bent, rtol=1e-3, atol=1e-4 * bent.max())


@pytest.mark.few(1)
@pytest.mark.parametrize("build", BUILDS)
def test_persons_add_the_same_in_whatever_chunk_they_are(build, rng):
    """To the last bit: what is rounded otherwise for others would count beside what is charged."""
    plain, persons, columns, limits = parts_of(build)
    at = rng.normal(0, 0.5, plain.rows.interface.size)
    rows = rng.integers(0, models.ROWS, 500)
    held = taken(columns, rows)
    edges = np.append(0, np.cumsum(rng.integers(1, 12, 60)))
    for of in (persons.scores, persons.factors):
        whole = of(Grouped([column[: edges[-1]] for column in held], edges), at, limits)
        for first, last in ((0, 1), (1, 3), (7, 28), (13, 60), (59, 60)):
            part = [column[edges[first] : edges[last]] for column in held]
            found = of(Grouped(part, edges[first : last + 1] - edges[first]), at, limits)
            np.testing.assert_array_equal(found, whole[first:last])


def test_curvatures_of_many_small_factors_are_held_exactly():
    """A sum of very many squares in floats loses the small ones: there is room for that."""
    small = np.zeros((1, OUTCOMES, 4))
    small[0, 0, 0] = 1 - 6e-9
    small[0, 1:, 1] = 2e-4
    total = np.zeros((4, 4), dtype=np.int64)
    add_curvatures(small, total)
    whole = [[int(one) for one in row] for row in total]
    assert (
        sum(one**2 * (1 if i == j else 2) for i, row in enumerate(whole) for j, one in enumerate(row))
        <= CURVATURE_UNITS**2
    )
