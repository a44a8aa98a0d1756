"""What the papers' rule promises, what is charged by rejection, and what the texts say about it."""

import re
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

DOCS = Path(__file__).parents[3] / "docs"
EPSILON = 1.0
WORDS = {4: "four times", 2: "twice"}
TIMES = {"replace": 4, "add_remove": 2}


def logistic():
    """Three coefficients: no sums of its rows will do, and no grid."""
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        slopes = pm.TruncatedNormal("slopes", 0, 1, lower=-1, upper=1, shape=3)
        rows = pm.Data("x", rng.uniform(-1, 1, (60, 3)))
        pm.Bernoulli("y", logit_p=pm.math.dot(rows, slopes), observed=rng.integers(0, 2, 60))
    return model


def coin():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Truncated("p", pm.Beta.dist(1, 1), 0.1, 0.9), observed=np.repeat([0, 1], [70, 30]))
    return model


def found(model, neighbours, *, papers=True):
    """Return T by the rule with what is proved, T as it is charged, and what the report says that one row moves."""
    bounds, most = {"x": (-1, 1)} if "x" in model else {}, 100 if neighbours == "add_remove" else None
    domain = dp.Domain(bounds=bounds, neighbours=neighbours, n_max=most)
    proved = dp.sensitivity(model, domain)
    ledger = dp.Ledger(EPSILON, neighbours=neighbours)
    trace = dp.sample(
        1, epsilon=EPSILON, step=dp.OPS(papers=papers), model=model, domain=domain, ledger=ledger, progressbar=False
    )
    sampler = trace.dp.report().record["sampler"]
    rule = (2 * proved.log_likelihood.value if papers else proved.range.value) / EPSILON
    return rule, 1 / sampler["mechanism"]["power"], dict(sampler["facts"])["one row moves"]


@pytest.mark.parametrize("papers", [True, False])
@pytest.mark.parametrize("neighbours", TIMES)
def test_the_report_says_how_many_times_the_bound_is_charged(neighbours, papers):
    rule, charged, says = found(logistic(), neighbours, papers=papers)
    assert charged / rule == pytest.approx(TIMES[neighbours], rel=1e-5)
    bound = rule / 2 if papers else rule
    assert f"{TIMES[neighbours]} times the bound {bound:.6g}, proved" in says


def test_from_sums_the_rule_is_what_is_charged():
    rule, charged, says = found(coin(), "replace")
    assert charged == pytest.approx(rule, rel=1e-6) and "times" not in says


def test_the_docstring_and_the_page_say_so():
    page = " ".join((DOCS / "samplers.md").read_text().split())
    docstring = " ".join(dp.OPS.__doc__.split())
    rule, charged, _ = found(logistic(), "replace")
    words = WORDS[round(charged / rule)]
    numbers = f"T = {charged:.4g} at ε = 1, where the rule says {rule:.4g}"
    assert f"A logistic regression with three coefficients in [-1, 1] has {numbers}." in page
    assert f"by rejection are charged {words} as much under `replace`, and {WORDS[TIMES['add_remove']]} as much" in page
    assert (
        f"is {words} what is proved under ``replace``, and {WORDS[TIMES['add_remove']]} under ``add_remove``"
        in docstring
    )
    for name in ("foulds_2016", "wang_2015", "index"):
        text = " ".join((DOCS / "papers" / f"{name}.md").read_text().split())
        assert re.search(rf"by rejection\S* are .{{0,40}}charged \[?{words}", text, re.IGNORECASE), name
