"""What is released of a regression on continuous columns: one vector of sums of products."""

from __future__ import annotations

from typing import Any

from pymc_dp.accounting.noise_kinds import NOISE_KINDS
from pymc_dp.domain import MOST_ROWS
from pymc_dp.errors import PrivacyError, Problem
from pymc_dp.families.cells import Cells
from pymc_dp.families.gram import GramSums, Response, has_means
from pymc_dp.families.regression import gram_statistic
from pymc_dp.inspection.findings import Inspection, Observed
from pymc_dp.release.blocks import why
from pymc_dp.release.regression_reach import reach_of
from pymc_dp.release.sensitivity import SumSensitivity
from pymc_dp.release.tables import Block, TablePlan
from pymc_dp.rows.asked import tally_of
from pymc_dp.rows.sums import known_gram


def lay_out_regression(observed: Observed, inspection: Inspection, cells: Cells, noise: str) -> TablePlan | Problem:
    """Lay out the sums of products of a regression: one vector, with noise of one scale."""
    domain = inspection.domain
    assert observed.design is not None
    # Where the number of rows is private, nothing may depend on whether they fit.
    statistic = gram_statistic(observed, cells, inspection.n_rows if domain.n_max is None else MOST_ROWS, noise)
    if isinstance(statistic, Problem):
        return statistic
    steps = (statistic.step,) * statistic.count
    tally, reason = tally_of(statistic, cells), _reason(statistic, domain.neighbours)
    (move,) = tally.moves(domain.neighbours, domain.rows_of_one)
    sensitivity = SumSensitivity.of(move, why(reason, domain.rows_of_one))
    # Priors that are refused may hold rows: these are not drawn from.
    drawn = observed.by_polynomial and not inspection.problems
    block = Block(columns=tuple(range(statistic.count)), steps=steps, sensitivity=sensitivity, noise=NOISE_KINDS[noise])
    return TablePlan(
        variables=(observed,),
        family=None,
        statistic=statistic,
        cells=cells,
        labels=statistic.labels,
        blocks=(block,),
        gram=known_gram(statistic, observed.design, cells) if statistic.known else None,
        reach=reach_of(observed.design, statistic, cells) if drawn else 0.0,
    )


def _reason(statistic: GramSums, neighbours: str) -> str:
    """Say in a line how a row moves the sums of a regression."""
    if neighbours == "add_remove":
        if statistic.known:
            raise PrivacyError(
                "With neighbours='add_remove' a row brings its own predictors, which cannot be public. Leave them out "
                "of Domain(public=...), or use neighbours='replace'."
            )
        return "one row adds its products"
    if statistic.known:
        return "one row changes its response between the bounds"
    leaves = len(statistic.cells) > 1 and not statistic.sizes_known
    reason = "one row changes its numbers, in half widths of the bounds"
    return reason + ", or takes its products from one cell to another" if leaves else reason


def response_of(observed: Observed) -> Response:
    """Return the likelihood of the response of a regression."""
    assert observed.design is not None
    likelihood: Any = observed.distribution
    return Response(likelihood=likelihood, mean=observed.design.link)


def without_means(table: TablePlan) -> Problem | None:
    """Refuse the plug-in form, which relies on a polynomial in place of the likelihood, where none follows it."""
    observed, reach = table.observed, table.reach
    if not observed.by_polynomial or not reach or has_means(response_of(observed), reach):
        return None
    return Problem(
        where=observed.name,
        what=f"no polynomial follows its {observed.title} likelihood: some linear predictors η with |η| <= "
        f"{reach:.3g}, as far as the priors reach, are no {mean_of(observed)}",
        remedy="Leave out noise_aware=False: noise-aware inference does without the polynomial. Or write a link that "
        "takes any number, pm.math.exp for a rate, pm.math.sigmoid for a probability.",
    )


def mean_of(observed: Observed) -> str:
    """Return what the mean of the response is called."""
    return "probability" if observed.distribution == "bernoulli" else "rate"


__all__ = ["lay_out_regression", "mean_of", "response_of", "without_means"]
