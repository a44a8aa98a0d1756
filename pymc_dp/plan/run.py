"""``dp.plan``: simulate from the prior what each budget would buy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from pymc import Model

from pymc_dp import _validate
from pymc_dp._compiling import says_when_it_compiles
from pymc_dp._progress import Advance, progress
from pymc_dp._random import public_generator
from pymc_dp.accounting import Budget
from pymc_dp.accounting.noise_kinds import NOISE_KINDS
from pymc_dp.advice.gradients import default_release
from pymc_dp.advice.releases import EPSILONS
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.families.histogram import Bins
from pymc_dp.gradients.choice import Gradients
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.inspect import inspect
from pymc_dp.plan.fits import Fit, OneDraw, bound_steps, gradient_methods, named_methods, open_model, outputs_of
from pymc_dp.plan.result import NOT_PRIVATE, Outcome, Plan, Recorder
from pymc_dp.plan.sampler import SamplerPlan, plan_sampler
from pymc_dp.plan.truths import Truths, draw_truths, exact_sums, noised, row_count
from pymc_dp.release.plan import plan_release, table_problems
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.ops import OPS
from pymc_dp.transforms.privatize import record_of

if TYPE_CHECKING:
    from pymc_dp.plan.rehearsal import Rehearsal

Method = Statistics | Gradients


@says_when_it_compiles
def plan(
    model: Model | None = None,
    epsilon: float | Sequence[float] = EPSILONS,
    *,
    delta: float = 0.0,
    noise: str | Sequence[str] | None = None,
    statistics: Method | Sequence[Method] | Mapping[str, Method] | None = None,
    step: OPS | StochasticGradient | None = None,
    covariates: Mapping[str, Any] | None = None,
    var_names: Sequence[str] | None = None,
    n_rows: int | None = None,
    repeats: int | None = None,
    interval: float = 0.9,
    domain: Domain | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
    width: float | Mapping[str, float] | None = None,
    misfit: bool = True,
) -> Plan | SamplerPlan:
    """Simulate what each ε would buy, before spending any: interval width, coverage and error, from the prior alone.

    What is simulated is the release that ``dp.sample`` would take for the same model, ε and δ: exact sums, with the
    smaller noise, or noised gradients. `noise`, `statistics` and `step` ask for others.

    Parameters from the prior, exact statistics of rows given them, noise, fit: `repeats` times at every budget, with
    the same parameters, statistics and noise but for its scale, so that differences between budgets are not by chance.

    Parameters
    ----------
    model : pymc.Model or bambi.Model, optional
        Defaults to the model of the context. Its rows may be dummies.
    epsilon : float or sequence of float
        Budgets to simulate.
    delta : float
        Failure probability, of Gaussian noise; Laplace noise uses none.
    noise : str or sequence of str, optional
        Kinds of noise of exact sums to compare, as ``["laplace", "gaussian"]``. Default: as ``dp.sample`` chooses.
    statistics : Statistics or Gradients, or a sequence or mapping of one kind of them, optional
        Methods to compare, instead of `noise`: a mapping gives them names. ``dp.Gradients()`` is rehearsed on made-up
        tables, see Notes.
    step : OPS, SGLD, SGHMC, SGNHT or SGFS, optional
        ``dp.OPS()`` compares one posterior draw too: it has no interval, its error is that of the draw. The model needs
        bounded parameters, as for ``dp.sample(step=dp.OPS())``. A stochastic-gradient sampler is tried out by itself:
        short chains on simulated tables say which clip norm and step size to give it.
    covariates : mapping of str to array or distribution, optional
        With a stochastic-gradient sampler: how private columns that no likelihood observes are distributed, as made-up
        rows or as ``pm.Normal.dist(0, 1, shape=3)``. Columns with bounds, norms or levels need none: they are drawn
        uniformly. Public columns are taken as they are.
    var_names : sequence of str, optional
        Free variables and Deterministics to look at. Default: all free variables.
    n_rows : int, optional
        What if there were so many rows. Default: the number of rows, or ``n_max`` where that number is private.
    repeats : int, optional
        Simulations for every budget, >= 2. Default: 100; 20 tables for noised gradients, 3 for a stochastic-gradient
        sampler.
    interval : float
        Probability of the central intervals, in (0, 1).
    domain : Domain, optional
        What is public about a row.
    random_seed : int, Generator or None
        The same seed gives the same plan.
    progressbar : bool
    width : float or mapping of str to float, optional
        Wanted mean width of the interval, of the variable or by variable: the plan's headline is then the ε for it.
    misfit : bool
        Of noised gradients: rehearse rows too that do not fit the model, `repeats` tables of them, see Notes.

    Returns
    -------
    Plan or SamplerPlan
        Prints as a table, renders in notebooks; ``.to_frame()``. A Plan has ``.suggest(width=...)`` and
        ``dp.plots.tradeoff(plan)``; a SamplerPlan, of a stochastic-gradient sampler, ``.best().call``.

    Raises
    ------
    UnsupportedModelError
        Where statistics of the model cannot be released, or its prior cannot be drawn from, with every problem; where
        `step` does not fit.
    ArgumentError, DomainError
        For arguments out of range.

    Notes
    -----
    Posteriors are found on grids, without a random number, where the model falls apart into parts of one or two
    unknowns (one per group, say), in milliseconds; else by one NUTS chain each, in about a second: take fewer
    `repeats` to begin with. Sizes of private groups are drawn as a uniform split of the rows, sums of bounded numbers
    from their normal approximation.

    **Noised gradients.** ``statistics=dp.Gradients()`` goes through the whole release for tables drawn from the prior,
    with columns as `Gradients` has them (evenly between their bounds, or as ``columns=`` says), and once more with
    columns ten times narrower than their bounds: bounds that are much too wide cost width, and may cost coverage.
    Variables are the parameters of the likelihood, on the scale of their transform. Posteriors are normal: the
    private likelihood is, and the prior is replaced by a normal distribution with its mean and covariance. Where 90%
    intervals cover less than 85% of these parameters, the plan gives the budget no calibrated label.

    **Misfit.** No model fits quite. Noised gradients are rehearsed once more on tables with heavier tails (one row in
    twenty is of other parameters, or four times as far from its mean), with overdispersed rows (each of one of several
    parameters), and with skewed columns. What counts is whether the private posterior is that of the same rows without
    privacy: z, the distance of their means in standard deviations of the noise, should have a root mean square of
    about 1. Exact sums need no such rehearsal: with and without privacy the same sums decide.

    **Guarantee.** Reads no private value and spends nothing: the plan is a function of the model without its rows, of
    their number (of ``n_max``, where it is private) and of the columns declared public.

    References
    ----------
    Bernstein, Sheldon (2018), doi 10.48550/arXiv.1809.02188, section 5 (coverage over draws from the prior).

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=np.zeros(100, dtype=int))
    >>> found = plan(model, epsilon=[0.1, 1.0], repeats=5, random_seed=1, progressbar=False)
    >>> found.to_frame()["method"].tolist()
    ['not private', 'laplace', 'laplace']
    >>> found.suggest(width=0.01)
    p: none of the budgets that were simulated reaches a width of 0.01; without privacy it is 0.1...
    """
    losses = _losses(epsilon)
    n_rows = None if n_rows is None else _validate.many("n_rows", n_rows)
    if isinstance(step, StochasticGradient):
        covariates = _validate.mapping("covariates", {} if covariates is None else covariates)
        unused = "{} means nothing to a plan for a stochastic-gradient sampler"
        _refuse(unused, noise=noise, statistics=statistics, var_names=var_names, width=width)
        return plan_sampler(
            model, losses, delta=delta, step=step, covariates=covariates, n_rows=n_rows, repeats=repeats,
            domain=domain, random_seed=random_seed, progressbar=progressbar,
        )  # fmt: skip
    if covariates is not None:
        raise ArgumentError(
            "covariates are for step=dp.SGLD(...) and its like: statistics need none, and dp.Gradients(columns=...) "
            "has its own. Leave them out."
        )
    budget, source = Budget(losses[0], delta), None
    chosen = tuple[str, ...]()
    _validate.flag("misfit", misfit)
    if noise is None and statistics is None and step is None and budget.delta:
        source, domain = given_model(model, domain)
        statistics, chosen = _chosen(source, domain, losses, budget.delta, n_rows)
    given = given_model(model, domain) if source is None else (source, domain)
    if (gradients := gradient_methods(statistics)) is not None:
        from pymc_dp.plan.rehearsal import Rehearsal  # Numba, which most users of plans never need

        _refuse("{}= is for exact sums, and dp.Gradients releases none", noise=noise, step=step)
        return _plan_gradients(
            Rehearsal(*given, gradients, n_rows), losses, budget.delta, var_names=var_names,
            repeats=repeats, interval=interval, random_seed=random_seed, progressbar=progressbar, width=width,
            misfit=misfit, notes=chosen,
        )  # fmt: skip
    methods = named_methods(noise, statistics, budget.delta)
    probability, repeats = _probability(interval), _validate.many("repeats", 100 if repeats is None else repeats, 2)
    inspection, total, rows = _rows(_inspected(*given), n_rows)
    plans = {
        (name, loss): plan_release(inspection, method, loss, _delta(method, budget.delta))
        for name, method in methods.items()
        for loss in losses
    }
    steps = bound_steps(step, inspection, losses, budget.delta)
    names = _names(inspection, var_names)
    wanted = _wanted(width, names)
    seeds = public_generator(random_seed)
    of_sums = _of_sums(plans, inspection) if steps else None
    released = [*plans.values(), *([] if of_sums is None else [of_sums])]
    truths = draw_truths(inspection, [table for one in released for table in one.tables], names, repeats, seeds)
    sums_seed, noise_seed = (int(seed) for seed in seeds.integers(2**31, size=2))
    with progress(progressbar, "plan", (len(plans) + len(steps) + 1) * repeats) as advance:
        simulation = _Simulation(inspection, truths, names, probability, total, (sums_seed, noise_seed), advance)
        outcomes = [simulation.run(NOT_PRIVATE, _finest(plans), exact=True)]
        outcomes += [simulation.run(name, released) for (name, _), released in plans.items()]
        if of_sums is not None:
            outcomes += [simulation.run_step(bound, of_sums, loss) for loss, bound in steps.items()]
    return Plan(
        outcomes=tuple(outcomes),
        repeats=repeats,
        interval=probability,
        rows=rows,
        how=" and ".join(sorted(simulation.how)),
        wanted=wanted,
        notes=chosen,
    )


def _chosen(
    model: Model, domain: Domain | None, losses: Sequence[float], delta: float, n_rows: int | None
) -> tuple[Method | dict[str, Method], tuple[str, ...]]:
    """Return what ``dp.sample`` would release at each budget, gradients for all where for any, and words for it."""
    chosen = {loss: default_release(model, domain, Budget(loss, delta), n_rows=n_rows) for loss in losses}
    others = [loss for loss, one in chosen.items() if not one.by_gradients]
    if len(others) == len(losses):
        kinds = dict.fromkeys(one.statistics for one in chosen.values())
        why = chosen[losses[-1]].why
        return {kind.noise: kind for kind in kinds if isinstance(kind, Statistics)}, (f"dp.sample releases {why}.",)
    (first, *_) = (one for one in chosen.values() if one.by_gradients)
    lines = [f"dp.sample releases {first.why}."]
    if others:
        at = ", ".join(f"{loss:g}" for loss in others)
        lines.append(f"At ε = {at} dp.sample would release exact sums: plan these budgets by themselves.")
    return first.statistics, tuple(lines)


def _finest(plans: Mapping[tuple[str, float], ReleasePlan]) -> ReleasePlan:
    """Return the plan of the first method that says most of the rows: default bins are more where noise is less."""
    first, _ = next(iter(plans))
    own = [plan for (name, _), plan in plans.items() if name == first]
    return max(own, key=lambda plan: sum(len(table.labels) for table in plan.tables))


def _of_sums(plans: Mapping[tuple[str, float], ReleasePlan], inspection: Inspection) -> ReleasePlan:
    """Return a plan with the sums that a likelihood has by itself, for what draws from these."""
    own = (plan for plan in plans.values() if not any(isinstance(table.statistic, Bins) for table in plan.tables))
    return next(own, None) or plan_release(inspection, Statistics(), 1.0)


def _plan_gradients(
    rehearsal: Rehearsal,
    losses: Sequence[float],
    delta: float,
    *,
    var_names: Sequence[str] | None,
    repeats: int | None,
    interval: float,
    random_seed: Any,
    progressbar: bool,
    width: float | Mapping[str, float] | None,
    misfit: bool,
    notes: tuple[str, ...],
) -> Plan:
    """Do what `plan` does for noised gradients."""
    from pymc_dp.plan.rehearsal import HOW, REPEATS, labels

    names = rehearsal.names if var_names is None else _validate.choices("var_names", var_names, rehearsal.names)
    probability, wanted = _probability(interval), _wanted(width, names)
    tables = _validate.many("repeats", REPEATS if repeats is None else repeats, 2)
    rng, planned = public_generator(random_seed), rehearsal.budgets(losses, delta)
    misfit = misfit and not rehearsal.local  # one mode of several is that of no other posterior
    with progress(progressbar, "plan", (len(planned) + 1) * tables * (rehearsal.passes + misfit)) as advance:
        outcomes = rehearsal.run(planned, probability, tables, rng, advance)
        off = rehearsal.run_misfits(planned, tables, rng, advance) if misfit else ()
    return Plan(
        outcomes=tuple(outcome.only(names) for outcome in outcomes),
        repeats=tables,
        interval=probability,
        rows=rehearsal.rows,
        how=HOW,
        wanted=wanted,
        notes=(*notes, *labels(outcomes, probability, rehearsal.local)),
        misfit=off,
    )


class _Simulation:
    """Runs one method at one budget after another over the same truths."""

    def __init__(
        self, inspection: Inspection, truths: Truths, names: Sequence[str], interval: float, total: int | None,
        seeds: tuple[int, int], advance: Advance,
    ) -> None:  # fmt: skip
        self.inspection, self.truths, self.names, self.interval, self.total = inspection, truths, names, interval, total
        self.seeds, self.advance = seeds, advance
        self.how: set[str] = set()
        self.outputs: Any = None

    def run(self, method: str, plan: ReleasePlan, *, exact: bool = False) -> Outcome:
        """Fit every simulated release of a plan; `exact`: without noise."""
        loss = inf if exact else plan.epsilon
        self.advance(0, _words(method, loss))
        sums = exact_sums(plan.tables, self.truths, self.total, self.seeds[0])
        values = {name: held[0] for name, held in sums.items()} if exact else noised(plan.tables, sums, self.seeds[1])
        opened = open_model(self.inspection, plan, _one(values, 0), exact=exact)
        fit = Fit(opened, self.truths)
        self.how.add(fit.how)
        if self.outputs is None:
            self.outputs = outputs_of(opened, self.names, self.truths.shapes)
        recorder = Recorder(self.names, self.interval)
        for place in range(self.truths.repeats):
            draws = self.outputs(fit.draws(_one(values, place), place))
            recorder.add(draws, _one(self.truths.values, place))
            self.advance()
        return recorder.outcome(method, loss, plan.delta if not exact else 0.0)

    def run_step(self, step: OPS, plan: ReleasePlan, loss: float) -> Outcome:
        """Draw once from every simulated posterior."""
        sums = exact_sums(plan.tables, self.truths, self.total, self.seeds[0])
        single, recorder = OneDraw(step, plan), Recorder(self.names, self.interval)
        for place in range(self.truths.repeats):
            exact = {name: (table[place], sizes[place]) for name, (table, sizes) in sums.items()}
            recorder.add(self.outputs(single.draw(exact, place)), _one(self.truths.values, place))
            self.advance(1, _words(step.name.upper(), loss))
        return recorder.outcome(step.name.upper(), loss, step.budget.delta)


def _words(method: str, loss: float) -> str:
    return method if loss == inf else f"{method}, ε = {loss:g}"


def _one(arrays: Mapping[str, Any], place: int) -> dict[str, Any]:
    return {name: item[place] for name, item in arrays.items()}


def _refuse(why: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"{why.format(name)}. Leave it out.")


def _losses(epsilon: Any) -> list[float]:
    given = _validate.several("epsilon", epsilon) if isinstance(epsilon, Iterable) else [epsilon]
    losses = sorted({_validate.epsilon(item) for item in given})
    if not losses:
        raise ArgumentError("epsilon must hold at least one budget, for example [0.1, 0.3, 1, 3].")
    return losses


def _delta(method: Statistics, delta: float) -> float:
    """Only noise that can use a δ gets it."""
    try:
        NOISE_KINDS[method.noise].check(delta)
    except ArgumentError:
        if not delta:
            raise
        return 0.0
    return delta


def _probability(interval: Any) -> float:
    found = _validate.number("interval", interval)
    if not 0 < found < 1:
        raise ArgumentError(f"interval must be between 0 and 1, got {found:g}. Take 0.9, for example.")
    return found


def _inspected(model: Model, domain: Domain | None) -> Inspection:
    if record_of(model) is not None:
        raise ArgumentError(
            "The model is private already: its budget is spent. Plan with the model that holds the rows."
        )
    inspection = inspect(model, domain, per_person=True).sums
    inspection.require()
    regressions = [item.name for item in inspection.observed if item.design is not None]
    if regressions:
        problems = table_problems(inspection)
        raise UnsupportedModelError([*problems, *(_unplanned(name, sums=not problems) for name in regressions)])
    return inspection


def _unplanned(name: str, *, sums: bool) -> Problem:
    made_up = (
        "; or call dp.privatize on a model with made-up rows like those expected: that spends nothing, and its "
        "posterior is about as wide as the real one will be"
    )
    return Problem(
        where=name,
        what="dp.plan simulates rows, but the distribution of the continuous predictors of a regression is not known",
        remedy="Rehearse noised gradients, dp.plan(delta=..., statistics=dp.Gradients()), which make up such columns"
        f"{made_up * sums}.",
    )


def _rows(inspection: Inspection, n_rows: int | None) -> tuple[Inspection, int | None, str]:
    """The inspection with the number of rows to simulate, that number where it is private, and words for it."""
    count, words = row_count(inspection, n_rows)
    if inspection.domain.n_max is not None:
        return inspection, count, words
    public = [column.name for observed in inspection.observed for column in observed.public_columns]
    if n_rows is not None and public:
        raise ArgumentError(
            f"n_rows={count} cannot be simulated: the public column {public[0]} says how many rows each group has. "
            "Give a model with as many (dummy) rows, and the public column that they would have."
        )
    return replace(inspection, n_rows=count), None, words


def _names(inspection: Inspection, var_names: Any) -> list[str]:
    model = inspection.model
    free = [str(rv.name) for rv in model.free_RVs]
    known = free + [str(var.name) for var in model.deterministics if var.name not in inspection.dropped]
    return free if var_names is None else _validate.choices("var_names", var_names, known)


def _wanted(width: Any, names: Sequence[str]) -> dict[str, float]:
    if width is None:
        return {}
    if not isinstance(width, Mapping):
        if len(names) > 1:
            raise ArgumentError(
                f"width={width!r} is in units of one variable, but there are several: give a mapping, for example "
                f"{{{names[0]!r}: {width!r}}}."
            )
        width = {names[0]: width}
    found = {_validate.choice("width", name, names): _validate.number("width", item) for name, item in width.items()}
    for name, item in found.items():
        if item <= 0:
            raise ArgumentError(f"width of {name} must be > 0, got {item:g}.")
    return found


__all__ = ["plan"]
