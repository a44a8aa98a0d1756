"""What explain says of noise, temperatures, priors and networks is true."""

from __future__ import annotations

import html
import re

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm

import pymc_dp as dp
from pymc_dp.accounting import Budget
from pymc_dp.advice.releases import FRAME_COLUMNS, frame_rows, noise_advice, release_tables
from pymc_dp.advice.samplers import network_parts, temperature_of
from pymc_dp.advice.saturated import saturated
from pymc_dp.advice.tightened import with_public
from pymc_dp.errors import PrivacyError
from pymc_dp.gradients.choice import width_ratio
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.rows import UnreadColumn
from pymc_dp.release.plan import lay_out, plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.rows.gate import read
from pymc_dp.step_methods.ops import OPS
from tests.advice.conftest import clamped_location, counts, logistic
from tests.gradients.models import bernoulli, student_t
from tests.networks import COLLIDER, network_model


def _plan(n_rows: int, neighbours: str = "replace"):
    with pm.Model(coords={"level": range(4)}) as model:
        group = pm.Data("group", np.zeros(n_rows, dtype=int))
        p = pm.Beta("p", 1, 1, dims="level")
        pm.Bernoulli("y", p[group], observed=np.zeros(n_rows, dtype=int))
    n_max = {"n_max": n_rows} if neighbours == "add_remove" else {}
    return lay_out(inspect(model, dp.Domain(neighbours=neighbours, **n_max)).sums, Statistics())


def test_noise_falls_with_epsilon_and_is_even_with_sampling_where_it_says():
    plan = _plan(400)
    rows = [dict(zip(FRAME_COLUMNS, row, strict=True)) for row in frame_rows(plan)]
    assert [row["epsilon"] * row["noise_sd"] for row in rows] == pytest.approx([2 * np.sqrt(2)] * 4)
    assert {row["rows_per_cell"] for row in rows} == {100}
    even = float(release_tables(plan)[1].rows[0][-1].removeprefix("ε = "))
    assert 2 * np.sqrt(2) / even == pytest.approx(np.sqrt(100 / 4), rel=0.01)


def _counts(n_variables: int):
    with pm.Model() as model:
        for place in range(n_variables):
            pm.Bernoulli(f"y{place}", pm.Beta(f"p{place}", 1, 1), observed=np.zeros(100, dtype=int))
    return inspect(model, dp.Domain()).sums


def test_gaussian_noise_is_named_where_many_numbers_move_and_by_the_factor_it_has():
    inspection = _counts(40)
    (line,) = noise_advice(inspection, 1.0, 0.0)
    laplace = plan_release(inspection, Statistics(), 1.0).tables[0]
    gaussian = plan_release(inspection, Statistics("gaussian"), 1.0, 1e-6).tables[0]
    sds = 2**0.5 * laplace.scales[0], gaussian.scales[0]
    assert line.startswith(f"Gaussian noise would be {sds[0] / sds[1]:.2g} times smaller at delta=1e-06 ")
    assert f"y0 {sds[0]:.3g} and {sds[1]:.3g}; y1" in line
    assert line.endswith('Statistics(noise="gaussian") with delta=1e-06.')


@pytest.mark.parametrize(
    ("call", "mechanism"),
    [
        ("no mechanism", None),
        ("LaplaceUpdates()", dp.networks.LaplaceUpdates()),
        ("FourierUpdates()", dp.networks.FourierUpdates()),
    ],
)
def test_the_noise_of_a_count_is_what_is_told(call, mechanism):
    """Cells of tables that are made of coefficients have noise from all of them, by the weights that make them."""
    inspection = inspect(network_model(COLLIDER, 100, {"b": 3})).sums
    _, table = network_parts(inspection, 0.5)
    (told,) = [row[3] for row in table.rows if row[0] == call]
    plan = plan_release(inspection, Statistics(mechanism=mechanism), 0.5)
    if call != "FourierUpdates()":
        found = [np.sqrt(2) * scale for table in plan.tables for scale in table.scales]
    else:
        weights = np.concatenate([plan.tables[0].sums.table_weights(place)[0] for place in range(4)])
        found = np.sqrt(2) * plan.tables[0].scales * np.sqrt((weights**2).sum(axis=1))
    ends = [float(item) for item in told.split(" to ")]
    assert [min(found), max(found)] == pytest.approx([ends[0], ends[-1]], rel=0.01)


TWO = Budget(1.0, 1e-6)


def _temperature(case, budget=TWO, step=None):
    preview = (step or OPS()).preview(*case, budget)
    assert preview.fits, preview.problem
    return temperature_of(preview.bound)


def _line(explanation, *phrases):
    found = [line for line in explanation.advice if all(phrase in line for phrase in phrases)]
    assert len(found) == 1, explanation.advice
    return found[0]


def _falls(line):
    return [float(number) for number in re.search(r"T falls from ([\d.]+) to ([\d.]+) with", line).groups()]


@pytest.mark.slow
def test_truncation_is_priced_as_the_truncated_model_is(explained):
    model, domain = logistic()
    truncated = dp.truncate(model, {"b": (-2, 2)})
    expected = [_temperature((model, domain)), _temperature((truncated, domain))]
    line = _line(explained("logistic"), "dp.truncate(model, {'b': (-2, 2)})")
    assert _falls(line) == pytest.approx(expected, rel=1e-3)


def test_the_cost_of_the_posterior_itself_is_enough_and_not_much_more(explained):
    line = _line(explained("counts", delta=0.0), "the posterior itself")
    needed = float(re.search(r"ε = ([\d.]+)\.", line).group(1))
    assert _temperature(counts(0.05, 0.95), Budget(needed)) == 1
    assert _temperature(counts(0.05, 0.95), Budget(needed - 0.02)) > 1


@pytest.mark.slow
def test_what_would_let_one_sample_fit_does(explained):
    line = _line(explained("logistic", delta=0.0), "it would fit")
    assert f"at T = {_temperature(logistic()):.4g}, with δ = 1e-06 instead of 0" in line
    line = _line(explained("clamped"), "it would fit")
    model, domain = clamped_location()
    truncated = dp.truncate(model, {"mu": (-20, 20)})
    assert f"T = {_temperature((truncated, domain)):.4g}, with dp.truncate(model, {{'mu': (-20, 20)}})." in line


ROWS = 120


def said(build, domain, values=0):
    with pm.Model() as model:
        build(np.full(ROWS, values))
    return saturated(inspect(model, domain).rows)


def intercept(sd):
    return lambda y: pm.Bernoulli("y", logit_p=pm.Normal("a", 0, sd), observed=y)


def slopes(y):
    x = pm.Data("x", np.zeros((ROWS, 2)))
    pm.Bernoulli("y", logit_p=pm.Normal("a", 0, 10) + x @ pm.Normal("b", 0, 10, shape=2), observed=y)


@pytest.mark.parametrize("sd", [1.0, 5.0, 20.0])
def test_the_share_of_saturated_rows_is_that_of_the_prior(sd):
    """With a logit of N(0, sd) it is 2 Φ(-logit(.99) / sd)."""
    share = 2 * norm.cdf(-np.log(99) / sd)
    lines = said(intercept(sd), dp.Domain())
    if share < 0.4:
        assert not lines
    else:
        assert (
            abs(int(lines[0].partition("%")[0].split()[-1]) / 100 - share) < 0.12 and "the priors of a are" in lines[0]
        )


def test_no_row_is_looked_at():
    domain = dp.Domain(bounds={"x": (-1, 1)}, neighbours="add_remove", n_max=500)
    assert said(slopes, domain) == said(slopes, domain, values=1) != []


def test_a_column_taken_as_public_is_never_read():
    opened, names = with_public(inspect(*logistic()).rows)
    assert names == ("X",)
    column = next(column for column in opened.columns if column.name == "X")
    assert isinstance(column, UnreadColumn) and column.public and column.norm == 1.0
    with pytest.raises(PrivacyError, match="taken for public"):
        read(column)


def lines(*args, **budget):
    (found,) = [part for part in dp.explain(*args, **budget)._listings() if part.title.startswith("What dp.sample")]
    return found.lines


def plain(explanation):
    return " ".join(html.unescape(str(explanation.full())).replace("│", " ").split())


@pytest.mark.slow
def test_without_a_delta_the_remedy_is_named():
    text = plain(dp.explain(*student_t()))
    assert "Yes, with a delta > 0: dp.sample(epsilon=..., delta=...) releases noised gradients" in text
    assert "It needs a δ > 0, for example delta=1e-06" in text
    first = lines(*bernoulli())[0]
    assert "the only kind of release at δ = 0; with delta=1e-06 it would be noised gradients, because" in first


def widths(found):
    """Numbers of the line of the page, by release."""
    text = " ".join(html.unescape(str(found)).replace("│", " ").split()).partition("intervals at ε = ")[2]
    number = r"([\d.]+)(?: \([^)]*\))? times (?:as wide as without privacy )?by "
    sums, gradients = (re.search(f"{number}{of}", text) for of in ("exact sums", "noised gradients"))
    return float(sums[1]), float(gradients[1])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_both_releases_are_shown_with_their_widths_whatever_the_delta(delta):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(400, dtype=int))
    sums, gradients = widths(dp.explain(model, epsilon=0.1, delta=delta))
    assert abs(sums - np.sqrt(1 + 2)) < 0.01
    assert gradients == pytest.approx(width_ratio(1, 400, Budget(0.1, 1e-6), "replace"), rel=0.01)
