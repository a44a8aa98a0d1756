"""What ``dp.sample`` releases where nobody says so: exact sums or noised gradients, and why.

What of a model would be released, exact sums or noised gradients, and how wide intervals would be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, sqrt

from pymc import Model

from pymc_dp._display import shorten
from pymc_dp.accounting import Budget
from pymc_dp.advice.prior_responses import expected_counts, expected_within
from pymc_dp.advice.releases import EXAMPLE_DELTA, TYPICAL_SD, noise_ratio, noise_sds
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError, first_of
from pymc_dp.families.gram import GramSums
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.gradients.choice import Gradients, Outlook
from pymc_dp.gradients.curvature import MOST_FULL
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.weights import PSEUDO, UNCLAIMED
from pymc_dp.release.plan import lay_out, table_problems
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleaseLayout, TablePlan
from pymc_dp.release.typical_noise import noise_sd, sampling_sd
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.stored import StoredRows
from pymc_dp.transforms.privatize import record_of


@dataclass(frozen=True, kw_only=True)
class Default:
    """A kind of release, chosen without a look at a row.

    Attributes
    ----------
    statistics : Statistics or Gradients
    delta : float
        What of the δ is spent: none by Laplace noise.
    why : str
        In words that follow "dp.sample releases".
    """

    statistics: Statistics | Gradients
    delta: float
    why: str

    @property
    def by_gradients(self) -> bool:
        """Whether gradients are released."""
        return isinstance(self.statistics, Gradients)


AT_ZERO = Default(statistics=Statistics(), delta=0.0, why="exact sums, the only kind of release at δ = 0")
PER_UNIT = Default(statistics=Statistics(), delta=0.0, why="exact sums with Laplace noise, which a metric asks for")


def default_release(
    model: Model,
    domain: Domain | None,
    budget: Budget,
    rows: StoredRows | None = None,
    *,
    n_rows: int | None = None,
) -> Default:
    """Choose for a model: exact sums where they serve it best or δ is 0, else noised gradients.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain or None
    budget : Budget
    rows : StoredRows, optional
        Beside the model, in the place of its own.
    n_rows : int, optional
        As if there were so many, where their number is public.

    Raises
    ------
    UnsupportedModelError
        Where, with a δ, neither can be released: with what to do for the one that needs less.

    Notes
    -----
    **Guarantee.** Depends on the model without its rows, their number and `domain`: reads no private value.
    """
    if budget.delta == 0 or record_of(model) is not None:
        return AT_ZERO
    found = inspect(model, domain, per_unit=True, per_person=True, weighted=True)
    inspection = found.sums if rows is None else with_stored(found.sums, rows)
    if inspection.problems != found.sums.problems:  # of the table beside the model, which no other release mends
        inspection.require()
    if n_rows is not None and inspection.domain.n_max is None:
        inspection = replace(inspection, n_rows=n_rows)
    outlook = Outlook.of(found, inspection.n_rows, rows)
    problems = sums_problems(inspection)
    if problems and not outlook.fits:
        raise UnsupportedModelError(first_of(problems, outlook.problems))
    return chosen(inspection, outlook, budget)


def chosen(inspection: Inspection, outlook: Outlook, budget: Budget) -> Default:
    """Choose between two kinds of release, one of which should fit. Reads no private value."""
    at = budget if budget.delta else Budget(budget.epsilon, EXAMPLE_DELTA)
    reason = (poor_sums(inspection) or wider_sums(inspection, outlook, at)) if outlook.fits else ""
    if budget.delta == 0:
        later = f"; with delta={at.delta:g} it would be noised gradients, because {reason}" * bool(reason)
        return Default(statistics=Statistics(), delta=0.0, why=f"{AT_ZERO.why}{later}")
    if reason:
        return Default(statistics=Gradients(), delta=budget.delta, why=f"noised gradients, because {reason}")
    if inspection.domain.metric is not None:
        return PER_UNIT
    if sums_problems(inspection):
        return AT_ZERO
    return _sums_chosen(inspection, budget)


def _sums_chosen(inspection: Inspection, budget: Budget) -> Default:
    """Choose the noise of exact sums: where Laplace noise is not the larger one, δ is left."""
    if any(one.by_polynomial for one in inspection.observed):
        return Default(statistics=Statistics(), delta=0.0, why="exact sums, because noised gradients do not fit")
    ratio = noise_ratio(noise_sds(inspection, budget.epsilon, budget.delta))
    few = "exact sums, because a few of them are sufficient statistics"
    if ratio > 1:
        why = f"{few}, with Gaussian noise, {ratio:.3g} times smaller than Laplace noise"
        return Default(statistics=Statistics("gaussian"), delta=budget.delta, why=why)
    why = f"{few}, with Laplace noise, which needs no δ (Gaussian noise would be {1 / ratio:.3g} times larger)"
    return Default(statistics=Statistics(), delta=0.0, why=why)


def sums_problems(inspection: Inspection) -> tuple[Problem, ...]:
    """Return what is in the way of a release of exact sums."""
    return (*inspection.problems, *table_problems(inspection))


def problems_or_layout(
    inspection: Inspection, stored: StoredRows | None
) -> tuple[tuple[Problem, ...], ReleaseLayout | None]:
    """Return what is in the way of a release, and its layout; never both."""
    problems = sums_problems(inspection)
    if problems:
        return problems, None
    try:
        layout = lay_out(inspection, Statistics())
    except UnsupportedModelError as error:  # under a metric
        return error.problems, None
    problems = () if stored is None else Passes.of(inspection, stored).check(layout.asked)
    return problems, None if problems else layout


def poor_sums(inspection: Inspection) -> str:
    """Say why noised gradients would serve a model better than exact sums; empty where they would not."""
    if problems := sums_problems(inspection):
        return f"there are no exact sums to release ({problems[0].where}: {problems[0].what})"
    if inspection.weights:
        return "of weighted rows these come with the variance of sampling, which exact sums leave out"
    poor = [one.name for one in inspection.observed if one.by_polynomial]
    return f"exact sums would need a polynomial in place of the likelihood of {poor[0]}" if poor else ""


def wider_sums(inspection: Inspection, outlook: Outlook, budget: Budget) -> str:
    """Say that intervals by exact sums would be far wider than by noised gradients, by formulas; empty where not."""
    uncertain = outlook.layered or outlook.size > MOST_FULL or inspection.domain.metric is not None
    if uncertain:
        return ""
    try:
        other = outlook.width_ratio(budget)
    except ArgumentError:  # a budget that buys next to nothing
        return ""
    squares = squares_ratio(inspection, budget) if other <= NEAR else 0.0
    if squares > other and _surely(inspection, outlook, far=other <= QUIET and squares >= FAR_WIDER * other):
        return (
            f"where residuals have standard deviations of {RESIDUAL:g} of half the bounds, intervals by noised sums of "
            f"squares would be about {squares:.3g} times as wide as without privacy, and by noised gradients about "
            f"{other:.3g} times (by formulas)"
        )
    layout = lay_out(inspection, Statistics())
    each = [ratio for _, ratio in _ratios(layout, budget.epsilon)]
    if len(each) < len(layout.tables) or min(each) < (WIDER if other <= QUIET else FAR_WIDER) * other:
        return ""
    return (
        f"intervals by exact sums would be about {min(each):.3g} times as wide as without privacy, and by noised "
        f"gradients about {other:.3g} times (by formulas)"
    )


def _surely(inspection: Inspection, outlook: Outlook, *, far: bool) -> bool:
    """Whether residual standard deviations by noised gradients are about where they should be: see `MOST_OFF`.

    With many means only if intervals by gradients are far narrower, and noise is little (`far`): those of sparse slopes
    are wider than their formula says, and with noise walks of so many parameters end farther off.
    """
    rows = 2 * inspection.most_rows
    if outlook.size**2 <= MOST_OFF**2 * rows:
        return True
    if not far or outlook.size**2 > LEFT_OFF * rows**1.5:
        return False
    return all(expected_within(table) >= WITHIN for table in lay_out(inspection, Statistics()).tables)


def squares_ratio(inspection: Inspection, budget: Budget) -> float:
    """Return the width of intervals of residual standard deviations by exact sums over that without privacy.

    Of several likelihoods, the least; 1 where one is not normal, or has a known standard deviation.

    Notes
    -----
    The sum of n squared residuals of variance v has the sampling variance 2 n v². It is what noised sums of products
    make of it, ``y'y - 2 b'X'y + b'X'X b``, whose noise is that of one sum times √6 where the response runs through its
    bounds as a predictor does; or a sum over cells, each with noise of its own. Residuals are taken to have a standard
    deviation of `RESIDUAL` half widths of the bounds: no row may be looked at, bounds that hold every row are wide, and
    the noise of gradients does not depend on them.
    """
    layout = lay_out(inspection, Statistics())
    if not all(_has_squares(table) for table in layout.tables):
        return 1.0
    noise = noise_sds(inspection, budget.epsilon, budget.delta)
    return min(
        sqrt(1 + _in_half_widths(table, min(noise[table.name])) ** 2 / (2 * inspection.most_rows * RESIDUAL**4))
        for table in layout.tables
    )


def _has_squares(table: TablePlan) -> bool:
    if table.observed.distribution != "normal":
        return False
    found = table.statistic
    return found.square if isinstance(found, GramSums) else isinstance(found, BoundedMoments) and 2 in found.powers


def _in_half_widths(table: TablePlan, noise: float) -> float:
    """Return the standard deviation of noise on a sum of squared residuals, in half widths of the response's bounds."""
    if isinstance(table.statistic, GramSums):
        return noise * SLOPED * sqrt(table.cells.count if table.statistic.apart else 1)
    assert isinstance(table.statistic, BoundedMoments)
    return noise / table.statistic.scales[0] * sqrt(table.cells.count)


def with_gradients(
    error: UnsupportedModelError, model: Model, domain: Domain | None, rows: StoredRows | None = None
) -> UnsupportedModelError:
    """Return an error of exact sums at δ = 0 that names noised gradients as a way out, where these fit.

    They come first, but after what a trial showed.
    """
    if not Outlook.of(inspect(model, domain, per_person=True, weighted=True), 0, rows).fits:
        return error
    tried = any(problem.kind == "outcome" for problem in error.problems)
    return UnsupportedModelError([*error.problems, DELTA_LACKS] if tried else [DELTA_LACKS, *error.problems])


DELTA_LACKS = Problem(
    where="model",
    what="noised gradients fit it as it is, but have no guarantee at delta=0",
    remedy=f"Pass delta={EXAMPLE_DELTA:g}, far below 1 / number of rows: dp.sample then releases noised gradients.",
)


LAYERED = (
    "Parameters multiply functions of other parameters, as the layers of a neural net do: the log-likelihood is not "
    "concave. Take dp.Gradients(momentum_steps=150), which finds one of its modes. What it releases is local: it "
    "predicts, but no coverage of its intervals is claimed, and no formula says how wide they are."
)
NEEDS_DELTA = f"It needs a δ > 0, for example delta={EXAMPLE_DELTA:g}: Gaussian noise has no guarantee without one."
WITH_DELTA = "dp.sample(epsilon=..., delta=...)"
FAR_WIDER, WIDER = 1.5, 1.1
"""How many times wider intervals by exact sums would have to be for noised gradients to be taken in their place.

The second where noise is little (`QUIET`): formulas hold well there.
"""
NEAR = 1.5
"""Width by noised gradients, over that without privacy, up to which its formula holds well."""
QUIET = 1.2
"""The same width, up to which noise is small beside sampling; clipping alone makes it 1.14."""
MOST_OFF, LEFT_OFF = 1.0, 0.1
"""Posterior standard deviations by which k means may move a residual standard deviation, and that are left of it.

The degrees of freedom that they take make its mode too low by k / √(2 n). `gradients.centred` moves it back to first
order in k / n; what is left is about k² / (2 n)^1.5.
"""
WITHIN = 0.5
"""Share of responses that the prior has to expect within their bounds, where means move more than `MOST_OFF`.

Where nearly all responses are clamped under the prior, a walk of so many means does not arrive from the start.
"""
RESIDUAL = 0.1
"""Typical standard deviation of a residual, in half widths of bounds that hold every row."""
SLOPED = sqrt(6)
"""Noise of a sum of squared residuals, over that of one sum of products, where the slope is 1 in half widths."""
MOST_TIMES = 20
"""Ratio of widths from which no number is shown."""
NOTICED = 1.005
"""Ratio of widths from which a number is shown."""
MANY = (
    f"With more than {MOST_FULL} parameters that is not calibrated: intervals may be too narrow, above all for what "
    "all groups share. Rehearse with dp.plan."
)


def release_lines(
    default: Default, outlook: Outlook, layout: ReleaseLayout | None, budget: Budget, *, sums: bool
) -> list[str]:
    """Say what would be released and why, and the widths that can be predicted without a simulation.

    Parameters
    ----------
    default : Default
    outlook : Outlook
    layout : ReleaseLayout or None
        Of exact sums, where their width can be predicted.
    budget : Budget
    sums : bool
        Whether exact sums can be released.
    """
    lines = []
    if sums or default.by_gradients:
        lines.append(f"dp.sample releases {default.why}.")
    if layout is not None and not outlook.weights:
        lines += _of_sums(layout, budget.epsilon)
    if sums and outlook.weights:
        lines.append(f"Exact sums of weighted rows: {UNCLAIMED}.")
    in_the_way = [f"Noised gradients do not fit: {' '.join(map(str, outlook.problems))}"]
    return [*lines, *(_of_gradients(outlook, budget) if outlook.fits else in_the_way)]


def widths_line(
    outlook: Outlook, layout: ReleaseLayout | None, budget: Budget, *, sums: bool, exact: bool = True
) -> str:
    """Say in one line how wide intervals would be by exact sums at δ = 0, and by noised gradients, by formulas.

    Parameters
    ----------
    outlook, layout, budget, sums
        As for `release_lines`.
    exact : bool
        Whether exact sums are what they are called: of weighted rows they leave out the variance of sampling.
    """
    parts = list[tuple[str, str, str]]()
    if layout is not None and exact:
        ratios = [*_ratios(layout, budget.epsilon), *_of_products(layout, budget.epsilon)]
        alike = len({_times(ratio) for _, ratio in ratios}) == 1
        named = [_times(ratios[0][1])] if alike else [f"{_times(ratio)} ({name})" for name, ratio in ratios]
        parts.append((_and(shorten(named, 3)), "exact sums", "δ = 0"))
    if outlook.fits and not outlook.weights:
        at = budget if budget.delta else Budget(budget.epsilon, EXAMPLE_DELTA)
        try:
            found = _times(outlook.width_ratio(at))
        except ArgumentError:  # a budget that buys next to nothing
            found = _times(inf)
        parts.append((found, "noised gradients", f"delta={at.delta:g}"))
    if not parts:
        return ""
    (first, one, δ), *rest = parts
    about = f"{'' if first.startswith('over') else 'about '}{first} times as wide as without privacy"
    at_ε = f"at ε = {budget.epsilon:g}"
    if rest:
        others = [f"{ratio} times by {other} ({delta})" for ratio, other, delta in rest]
        return f"{at_ε}, {about} by {one} ({δ}), {', '.join(others)}"
    lacks = f"; {'exact sums do' if not sums else 'noised gradients do'} not fit" if not (sums and outlook.fits) else ""
    return f"{about} {at_ε}, {δ}{lacks}"


def _times(ratio: float) -> str:
    """A ratio as it is shown: far above 1 the prior decides, and formulas say no more than that."""
    return f"{ratio:.3g}" if ratio < MOST_TIMES else f"over {MOST_TIMES}"


def _and(texts: Sequence[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


def _of_sums(layout: ReleaseLayout, epsilon: float) -> list[str]:
    """Widths by sums, of a cell or of products of columns."""
    normal = f", and residuals {RESIDUAL:g} of half the bounds of a response" * any(map(_has_squares, layout.tables))
    lines = [f"Exact sums of {name}: {_wide(ratio)} at ε = {epsilon:g}." for name, ratio in _ratios(layout, epsilon)]
    return lines + [
        f"Exact sums, {name}: {_wide(ratio)} at ε = {epsilon:g}, where predictors have standard deviations of "
        f"{TYPICAL_SD:g} of half their bounds{normal}."
        for name, ratio in _of_products(layout, epsilon)
    ]


def _ratios(layout: ReleaseLayout, epsilon: float) -> list[tuple[str, float]]:
    """Return the names of tables without products of columns, and widths over those without privacy.

    By their noise beside the noise of sampling.
    """
    tables = [table for table in layout.tables if not isinstance(table.statistic, GramSums)]
    return [(table.name, hypot(1.0, _noise_over_sampling(layout, table, epsilon))) for table in tables]


def _of_products(layout: ReleaseLayout, epsilon: float) -> list[tuple[str, float]]:
    """Return widths of slopes, and of a residual standard deviation, over those without privacy, by their names.

    Of two numbers of half widths, a predictor of standard deviation s and a response whose residuals have r, n rows
    say as much of the slope as a sum of products with noise r s √n.
    """
    found = []
    for table in layout.tables:
        if isinstance(table.statistic, GramSums):
            rows, noise = max(table.rows_per_cell * table.cells.count, 1.0), noise_sd(layout, table, epsilon)
            ratio = hypot(1.0, noise / (sqrt(rows) * TYPICAL_SD * _residual(table)))
            found.append((f"slopes of {table.name}", ratio))
            if _has_squares(table):
                ratio = hypot(1.0, _in_half_widths(table, noise) / (sqrt(2 * rows) * RESIDUAL**2))
                found.append((f"residual sd of {table.name}", ratio))
    return found


def _residual(table: TablePlan) -> float:
    """Return a typical standard deviation of a response about its mean, in half widths of its bounds."""
    if table.observed.distribution == "bernoulli":
        return 1.0
    if table.observed.distribution == "poisson" and table.observed.bounds is not None:
        low, high = table.observed.bounds
        return sqrt(low + (high - low) / 4) / ((high - low) / 2)  # of a mean in the lower half
    return RESIDUAL


def _noise_over_sampling(layout: ReleaseLayout, table: TablePlan, epsilon: float) -> float:
    """Return noise of a cell over the noise of sampling: of counts by the prior, of others spread over their bounds.

    Where the noise leaves open how many rows a cell has, it leaves open as many times how far rows are from the centre.
    """
    noise, sampling, expected = noise_sd(layout, table, epsilon), sampling_sd(table), expected_counts(table)
    if expected is not None and isinstance(table.statistic, BoundedMoments):
        mean, deviation = expected
        away = 0.0 if table.sizes_known else abs(mean - table.statistic.centre) / table.statistic.scales[0]
        noise, sampling = noise * hypot(1.0, away), min(sampling, sqrt(table.rows_per_cell) * deviation)
    return noise / sampling


def _of_gradients(outlook: Outlook, budget: Budget) -> list[str]:
    names = [f"{name} ({size})" if size > 1 else name for name, size in outlook.parts]
    count = f"{outlook.size} parameter{'s' * (outlook.size != 1)}"
    at = budget if budget.delta else Budget(budget.epsilon, EXAMPLE_DELTA)
    if outlook.weights:
        return [f"Noised gradients: {count} enter{'s' * (outlook.size == 1)} the likelihood.", *_weighed(outlook)]
    try:
        wide = f"{_wide(outlook.width_ratio(at))} at ε = {at.epsilon:g}, δ = {at.delta:g}"
    except ArgumentError:  # a budget that buys next to nothing
        wide = f"at ε = {at.epsilon:g}, δ = {at.delta:g} they would be as wide as the prior"
    return [
        f"Noised gradients: {count} enter{'s' * (outlook.size == 1)} the likelihood: {', '.join(shorten(names, 6))}. "
        f"{wide[0].upper()}{wide[1:]}, by a formula in their number, the number of rows and the budget; "
        "dp.plan(statistics=dp.Gradients()) tries it on simulated tables.",
        *[LAYERED] * outlook.layered,
        *[MANY] * (outlook.size > MOST_FULL),
    ]


def _weighed(outlook: Outlook) -> Iterator[str]:
    for response, column in outlook.weights.items():
        yield (
            f"The result is a {PSEUDO.format(response=response, column=column)}. Intervals are those of sampling "
            f"(sandwich), by squares of weighted scores that are released too. The noise is that of the upper bound of "
            f"{column}, whatever weights there are."
        )


def pseudo_lines(outlook: Outlook | None) -> list[str]:
    """Say what the result is called where rows count by weights."""
    weights = outlook.weights if outlook is not None else {}
    return [f"the result is a {PSEUDO.format(response=one, column=by)}" for one, by in weights.items()]


def _wide(ratio: float) -> str:
    times = f"{_times(ratio)} times " if ratio >= NOTICED else ""
    return f"intervals would be {'' if ratio >= MOST_TIMES else 'about '}{times}as wide as without privacy"


__all__ = [
    "AT_ZERO",
    "DELTA_LACKS",
    "NEEDS_DELTA",
    "WITH_DELTA",
    "Default",
    "chosen",
    "default_release",
    "poor_sums",
    "problems_or_layout",
    "pseudo_lines",
    "release_lines",
    "squares_ratio",
    "sums_problems",
    "widths_line",
    "with_gradients",
]
