"""``dp.sample``: inspect, check the budget, spend, sample, scrub, annotate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import pymc as pm
import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp import sampler_arguments as arguments
from pymc_dp._compiling import says_when_it_compiles
from pymc_dp._progress import progress
from pymc_dp.accounting import Budget, Ledger, check_ledger
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.of_context import is_bambi
from pymc_dp.privatize import checked_label, release_once
from pymc_dp.release.paid import keep, paid
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan
from pymc_dp.rows.stored import Rows, stored_rows
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.composed import ComposedSteps
from pymc_dp.trace.chains import run_chains, samplers_of
from pymc_dp.trace.scrub import scrub
from pymc_dp.transforms.privatize import OtherRelease, refuse_released
from pymc_dp.transforms.trial import Trial

DEFAULT_DRAWS = 1000
INTERRUPTED = "Not enough samples to build a trace"
"""PyMC's words for chains that Ctrl+C has ended before their first draw."""
ADDED = ("noise_variance", "covariates", "shares")
"""Ends of the names of variables that a release may bring."""


@arguments.needs_epsilon
@says_when_it_compiles
def sample(
    draws: int | None = None,
    *,
    epsilon: float,
    delta: float = 0.0,
    step: PrivateStep | Sequence[PrivateStep] | None = None,
    statistics: Statistics | OtherRelease | None = None,
    domain: Domain | None = None,
    ledger: Ledger | None = None,
    label: str | None = None,
    model: Model | None = None,
    tune: int | None = None,
    chains: int | None = None,
    cores: int | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
    rows: Rows | None = None,
    **kwargs: Any,
) -> xr.DataTree:
    """Spend a privacy budget on a model and return a trace that may be published.

    Exact sums of the rows, or gradients of their likelihood, are released once, with noise; then PyMC samples the
    private model as long as you like, at no further cost.

    Parameters
    ----------
    draws : int, optional
        Posterior draws per chain; 1000 by default, where they are free. With `step` each is paid for, including tuning
        draws (group ``warmup_posterior``) and all chains; the default is the step's own, and one chain.
    epsilon : float
        Privacy loss of the whole trace, > 0: for one row, or per unit of ``domain.metric``.
    delta : float
        Failure probability. Without `step` it is 0 for Laplace noise, which uses none, > 0 for Gaussian noise and for
        noised gradients.
    step : private step method, or a list of them, optional
        ``dp.OPS()``, ``dp.TemperedGibbs()``, ``dp.BarkerMetropolis()``, ``dp.PenaltyMetropolis()``,
        ``dp.TemperedMetropolis()``, ``dp.PrivateHMC()``, ``dp.SGLD()``, ``dp.SGHMC()``, ``dp.SGNHT()`` or
        ``dp.SGFS()``, without a budget of its own. It holds the rows, and every state it makes is paid for. Without it
        statistics are released once and PyMC chooses the sampler of the private model. Steps in a list take turns, see
        *Several steps* below.
    statistics : Statistics or Gradients, optional
        ``dp.Statistics()`` releases exact sums: Laplace or Gaussian noise, noise-aware (default) or plug-in, and the
        split of the budget among observed variables. ``dp.Gradients()`` releases noised gradients. Default: see *What
        is released*.
    domain : Domain, optional
        What is public about one row: bounds, public columns, neighbours.
    ledger : Ledger, optional
        Account of this data set; charged before the rows are read. Under a metric, one of that metric is charged per
        unit of it, any other for whole rows.
    label : str, optional
        What it is paid for, in your words and public: in the entry of the ledger, the record, the report and
        `dp.plots.budget`. Default: what is released, of which variables.
    model : pymc.Model or bambi.Model, optional
        Defaults to the model of the context.
    tune, chains, cores, random_seed, progressbar
        As in ``pm.sample``. `random_seed` seeds the sampler, never the privacy noise.
    rows : mapping of str to array, Parquet or Table, optional
        As in ``dp.privatize``: a table beside the model, which holds a few dummy rows. Steps that take such tables have
        an argument of their own.
    **kwargs
        As in ``pm.sample``, each checked before anything is charged. Without `step`: ``nuts_sampler``,
        ``target_accept``, ``max_treedepth``, ``nuts``, ``init``, ``backend``, ``compile_kwargs`` and other settings of
        PyMC's samplers, and ``callback``. Always: ``var_names``, ``discard_tuned_samples``, ``idata_kwargs``,
        ``compute_convergence_checks``, ``quiet``, ``progressbar_theme``, ``mp_ctx``, ``blas_cores``.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior``, ``sample_stats``, ``released`` and ``privacy``; ``.dp`` reads the last two.

    Raises
    ------
    UnsupportedModelError
        With every problem found and its remedy; nothing is spent.
    ArgumentError, DomainError
        Nothing is spent.
    BudgetExceeded
        Before the rows are read; the ledger is unchanged.
    ReleaseError
        If something fails where the rows are held. What was charged stays charged, and nothing was released.
    KeyboardInterrupt
        See *Ctrl+C* below.

    Notes
    -----
    **What is released.** Without `statistics` and `step`: exact sums where the model has few sufficient statistics, and
    always at δ = 0; with a δ, noised gradients elsewhere: links of regressions that would be replaced by a polynomial
    (Gaussian noise on their sums is refused), more than 20 private predictors, every model that has no sums at all, and
    one whose intervals would be far wider by exact sums, as formulas have it: many cells of few rows, few parameters.
    The choice reads no row; ``explain`` and the report say which it was, and why.

    **Ctrl+C.** Between the charge and the draw of the noise it waits; a second one ends the call, and what was charged
    is lost. Afterwards it ends the sampling and, as in ``pm.sample``, the draws made so far are returned; if there are
    none, and always under NumPyro and BlackJAX, which return none, the error has the release in its attribute
    ``private_model``. With a private `step` the first one lets the
    draw at hand be finished, then ends the chain: what is returned, or is in the attribute ``idata`` of the error, are
    the states released so far, and all steps stay charged.

    **Several steps.** ``step=[dp.TemperedGibbs(["p"]), dp.BarkerMetropolis(["theta"], share=2)]``: each moves the free
    variables that it names, given the released states of the others. They share the budget equally, or in proportion to
    ``share=``, and their shares of ε are raised together as far as the total of all events at δ allows. All take the
    least power β to which one of them tempers the likelihood: their chain then has prior times likelihood^β as its
    target. Variables whose conditional density given all others involves no row (means and scales of groups, for
    example; the graph shows which) need no step: PyMC's own samplers move them at no cost on the model without its
    rows. They need tuning, so `tune` is then 500 by default. `dp.TemperedGibbs` and the Metropolis samplers can be in a
    list; the others move all variables at once.

    **Checks of the model.** The trace holds no row and no log-likelihood of rows, so that ``az.loo(idata)`` finds none:
    one number for each row would show the rows, and was not paid for. Free are checks of the release, without `step`:
    ``private = dp.condition(model, dp.Release.of(idata))`` is its model, ``pm.sample_posterior_predictive(idata,
    model=private)`` is for ``az.plot_ppc_dist``, and ``pm.compute_log_likelihood(idata.copy(), model=private)`` for
    ``az.loo`` over cells. With `model` itself both bring rows along: what they return is not covered, and
    ``idata.dp.publish`` refuses it.

    **Guarantee.** Everything in the returned tree is (ε, δ)-differentially private for one row of the table under
    ``domain.neighbours``, given what the report lists as assumed public. Without `step` the class is exact and the
    arithmetic hardened: only exact sums with exact discrete noise see the rows. A `step` has a class of its own, exact,
    stepwise or asymptotic, and its arithmetic is float64 unless it says otherwise: ``.dp.guarantee``,
    ``.dp.arithmetic`` and the report tell which, and what is not covered. What PyMC prints while it samples has seen
    the release, or states that were paid for, and not the rows.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1, 0, 1]))
    >>> with model:
    ...     idata = sample(epsilon=1.0, tune=200, draws=200, chains=1, progressbar=False)  # doctest: +SKIP
    """
    if isinstance(draws, Model) or is_bambi(draws):
        raise ArgumentError(f"draws must be a whole number, got {_validate.shown(draws)}. Write dp.sample(model=...).")
    found = arguments.checked(kwargs, own_step=step is not None, homes=_homes)
    options = {
        "random_seed": arguments.seed(random_seed),
        "progressbar": arguments.progressbar(progressbar, found),
        **found,
    }
    for name, value, low in (("draws", draws, 1), ("tune", tune, 0), ("chains", chains, 1), ("cores", cores, 1)):
        if value is not None:
            _validate.many(name, value, low)
    if tune == 0 and options.get("nuts_sampler") == "blackjax":
        raise ArgumentError("tune must be >= 1 with nuts_sampler='blackjax', got 0. Leave one of them out.")
    check_ledger(ledger)
    called = checked_label(label)
    stored = stored_rows(rows)
    source, domain = given_model(model, domain)
    if step is not None:
        if stored is not None:
            raise ArgumentError(
                "rows= is for what is released once: leave step= out. Steps that hold the rows of a table beside the "
                "model have an argument of their own, step=dp.SGLD(rows=...)."
            )
        chosen = _private(step, source, domain)
        if statistics is not None:
            raise ArgumentError("statistics= says how statistics are released, but step= releases none. Give one.")
        return _run_step(
            chosen,
            Budget(_validate.epsilon(epsilon), delta),
            {"draws": draws, "tune": tune, "chains": chains, "cores": cores},
            source,
            domain,
            ledger,
            called,
            options,
        )

    def check(prior_model: Model, planned: tuple[Inspection, ReleasePlan] | None) -> None:
        names = () if planned is None else planned[1].names
        arguments.require_fitting(options, prior_model, [f"{name}_{kind}" for name in names for kind in ADDED])

    trial = Trial.before_sampling(options, chains=chains, cores=cores)
    private = release_once(
        source,
        domain,
        epsilon=epsilon,
        delta=delta,
        statistics=statistics,
        ledger=ledger,
        label=called,
        rows=stored,
        trial=trial,
        check=check,
        progressbar=bool(options["progressbar"]),
    )
    try:
        with trial.lent(private):
            return scrub(_draw(private, draws, tune, chains, cores, options), private)
    except (Exception, KeyboardInterrupt) as error:
        keep(error, private_model=private)
        if str(error).startswith(INTERRUPTED):
            none = KeyboardInterrupt("Ended before the first draw after the tuning.")
            keep(none, private_model=private)
            raise none from None
        raise


def _homes() -> dict[str, str]:
    """How to write arguments of what `sample` takes, by their names there."""
    from pymc_dp.gradients.choice import Gradients
    from pymc_dp.step_methods.gibbs import TemperedGibbs
    from pymc_dp.step_methods.hamiltonian import PrivateHMC
    from pymc_dp.step_methods.langevin import SGFS, SGHMC, SGLD, SGNHT
    from pymc_dp.step_methods.metropolis import BarkerMetropolis, PenaltyMetropolis, TemperedMetropolis
    from pymc_dp.step_methods.ops import OPS

    steps: list[Any] = [OPS, TemperedGibbs, BarkerMetropolis, PenaltyMetropolis, TemperedMetropolis]
    steps += [PrivateHMC, SGLD, SGHMC, SGNHT, SGFS]
    given: dict[str, list[Any]] = {"domain": [Domain], "statistics": [Statistics, Gradients], "step": steps}
    found: dict[str, str] = {}
    for argument, kinds in given.items():
        for kind in kinds:
            for name in signature(kind).parameters:
                first = f"{argument}=dp.{kind.__name__}({name}=...)"
                found[name] = f"{found[name]}, dp.{kind.__name__}" if name in found else first
    return found


def _private(step: object, model: Model, domain: Domain | None) -> PrivateStep:
    """Return the one private step that was given, or several as one."""
    steps = list(step) if isinstance(step, list | tuple) else [step]
    held = [item for item in steps if isinstance(item, PrivateStep)]
    if not held or len(held) < len(steps):
        raise ArgumentError(
            f"step={_validate.shown(step)} is not accepted: only private step methods such as dp.OPS(), or a list of "
            "them, may see the rows. Leave step out to release statistics and let PyMC choose the sampler of the "
            "private model; its settings are arguments of dp.sample, such as target_accept=0.95."
        )
    if len(held) == 1 and held[0].names is None:
        return held[0]
    refuse_released(model)
    return ComposedSteps(held, model, domain)


def _run_step(
    specification: PrivateStep,
    budget: Budget,
    lengths: Mapping[str, int | None],
    model: Model,
    domain: Domain | None,
    ledger: Ledger | None,
    called: str,
    options: Mapping[str, Any],
) -> xr.DataTree:
    """Bind a specification, charge, read the rows, and let PyMC run the step on a model without them."""
    if not specification.free_on_releases:
        refuse_released(model)
    specification.refuse_metric(domain)
    usual = specification.lengths()
    draws = usual[0] if lengths["draws"] is None else lengths["draws"]
    tune = usual[1] if lengths["tune"] is None else lengths["tune"]
    chains = lengths["chains"] or 1
    inspection = specification.inspect(model, domain)
    per_chain = (draws + tune) * specification.steps_per_draw
    step, event = specification.bound(inspection, budget, chains=chains, steps=per_chain)
    arguments.require_fitting(options, step.prior_model)
    samplers, said = samplers_of(step), step.describe()
    charged: dict[str, Any] = {
        "event": event,
        "label": f"{said.name} of {', '.join(said.variables)}",
        "called": called,
        "ledger": ledger,
        "diameter": step.diameter,
    }
    # A few draws of no chain need no diagnostics, and PyMC would miss them.
    few = specification.default_draws == 1 and draws < 100
    settings = {
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "cores": 1 if chains == 1 else lengths["cores"],
        "discard_tuned_samples": False,
        "compute_convergence_checks": chains > 1,
        "quiet": few,
        **options,
    }
    shown = few and "quiet" not in options and bool(options["progressbar"])
    idata = None
    try:
        bar = progress(shown, f"draws of {said.name}", (draws + tune) * chains)
        with paid(inspection, budget, **charged) as payment, bar as advance:
            idata = run_chains(step, samplers, payment, settings, advance)
        return idata
    except KeyboardInterrupt as error:
        keep(error, idata=idata)
        raise


def _draw(
    private: Model,
    draws: int | None,
    tune: int | None,
    chains: int | None,
    cores: int | None,
    options: Mapping[str, Any],
) -> xr.DataTree:
    return pm.sample(
        draws=DEFAULT_DRAWS if draws is None else draws,
        model=private,
        chains=chains,
        cores=cores,
        **({} if tune is None else {"tune": tune}),
        **options,
    )
