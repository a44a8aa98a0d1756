"""Rows held one by one: what they add up to, how they are counted, and draws against the density of the rows."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.gibbs.conjugate_draws import BetaChance
from pymc_dp.step_methods.gibbs.grid import Free, Grid
from pymc_dp.step_methods.row_functions import bounds
from tests.step_methods.gibbs.conftest import bound, scans
from tests.step_methods.gibbs.row_models import ROW_MODELS
from tests.step_methods.gibbs.test_conditionals import follows, update
from tests.step_methods.gibbs.test_tempered import check, marginal



def rows_and_step(name, rng, count=40, relation="replace", **settings):
    case = ROW_MODELS[name]
    rows = case.draw_rows(rng, count)
    step, _ = bound(case.build(rows), case.domain(relation), epsilon=1e9, **settings)
    return case, rows, step


def log_likelihood(case, rows, places):
    """Sum over rows at each place: parameters by name with a leading axis of places."""
    count, many = (len(next(iter(item.values()))) for item in (rows, places))
    all_rows = {name: np.concatenate([column] * many) for name, column in rows.items()}
    at = {name: np.repeat(np.asarray(value, dtype=float), count, axis=0) for name, value in places.items()}
    return case.density(all_rows, at).reshape(many, count).sum(axis=1)


def above_first(values):
    """What is the same at all places says nothing about a draw, and is left out."""
    return values - values[0]


LEAST = 1e-3
"""Share of what is charged for a row that no row is cut by, where rows are held about public rows."""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "relation"),
    [(name, "replace") for name in ROW_MODELS] + [(name, "add_remove") for name in ROW_MODELS if "public" not in name],
)
def test_scores_are_the_log_likelihood_of_the_rows(name, relation, rng):
    """At many values of one variable or element, the others held; chosen elements together."""
    case, rows, step = rows_and_step(name, rng, relation=relation, grid=7)
    held = {key: value[0] for key, value in case.draw_parameters(rng, 1).items()}
    for one in step.scan.updates:
        if isinstance(one, Free):
            continue
        (scores,) = one.held
        assert "proved from the graph of y" in one.reason and all(item > 0 for item in one.ranges)
        candidates, chosen = np.broadcast_to(held[one.name], (3, *one.shape)) + 0.0, case.draw_parameters(rng, 2)
        moving = ... if len(one.ranges) == 1 else (slice(None), *(0 for _ in one.shape))
        candidates[1:][moving] = chosen[one.name][moving]
        places = {key: candidates if key == one.name else [value] * 3 for key, value in held.items()}
        expected = log_likelihood(case, rows, places)
        about = relation == "replace" and any(bound.references.rows for bound in scores.bounds)
        room = LEAST * max(one.ranges) if about else 1e-9 + 40 * max(bound.limit.unit for bound in scores.bounds)
        assert above_first(scores(candidates, held).sum(axis=1)) == pytest.approx(above_first(expected), abs=room)
















def test_rows_are_clamped_and_those_without_a_density_count_for_nothing():
    def total(rows):
        with pm.Model() as model:
            data = pm.Data("d", np.ones(len(rows)))
            pm.Exponential("y", pm.Uniform("rate", 0.5, 1.0), observed=data)
        data.set_value(np.array(rows))
        step, _ = bound(model, Domain(bounds={"y": (-1.0, 2.0)}), grid=4)
        found = update(step, "rate")
        return above_first(found.held[0](found.points, {}).ravel()), found.points

    found, rates = total([0.5, 7.0, np.nan])
    assert found == pytest.approx(above_first(3 * np.log(rates) - (0.5 + 2.0 + 0.5) * rates), abs=1e-9)
    found, rates = total([0.5, -0.5])
    assert found == pytest.approx(above_first(np.log(rates) - 0.5 * rates), abs=1e-9)






# --- law --------------------------------------------------------------------------------------------------------------










def test_numbers_of_any_size_are_refused_though_what_a_row_moves_is_bounded():
    """A row of 1e300 would leave no digit to the others, and to the prior: they would be forgotten."""
    with pm.Model() as model:
        pm.Laplace("y", pm.TruncatedNormal("b", 0, 1, lower=-3, upper=3), 1.0, observed=np.zeros(4))
    with pytest.raises(UnsupportedModelError, match="leave floats no digits"):
        bound(model, None)
    step, _ = bound(model, Domain(bounds={"y": (-100, 100)}))
    assert step.scan.updates
