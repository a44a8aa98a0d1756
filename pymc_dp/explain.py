"""``dp.explain``: what is private in a model, which methods fit, what each would cost and lose, what would help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pymc import Model

from pymc_dp import _validate
from pymc_dp._progress import announced
from pymc_dp.accounting import Budget
from pymc_dp.advice.cautions import cautions
from pymc_dp.advice.explanation import Explanation
from pymc_dp.advice.gradients import chosen, problems_or_layout
from pymc_dp.advice.releases import metric_lines, noise_advice, person_lines, ranges_paid, release_advice
from pymc_dp.advice.repricing import Asked, sampler_advice
from pymc_dp.advice.samplers import loss_of, network_parts, noise_of, previews
from pymc_dp.domain import Domain
from pymc_dp.gradients.choice import Outlook
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.interpreted import shared
from pymc_dp.inspection.owners import owner_of
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.weights import require_weights
from pymc_dp.release.paid import weaknesses
from pymc_dp.release.tables import ReleaseLayout
from pymc_dp.rows.passes import with_stored
from pymc_dp.rows.stored import Rows, StoredRows, stored_rows
from pymc_dp.step_methods.preview import Preview

WORDS = "Pricing every method for this model, and what would help: up to half a minute. dp.sample does not need it."


def explain(
    model: Model | None = None,
    domain: Domain | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    rows: Rows | None = None,
) -> Explanation:
    """Say what is private in a model, which methods fit, at which temperature, how much is lost, and what would help.

    Parameters
    ----------
    model : pymc.Model or bambi.Model, optional
        Defaults to the model of the context.
    domain : Domain, optional
        What is public about one row.
    epsilon, delta : float
        Budget at which the samplers are looked at, with their default numbers of draws; 1 and 0 by default. Some need
        δ > 0. Under a metric ε is per unit of it.
    rows : mapping of str to array, Parquet or Table, optional
        The table where the rows of the model are dummies, as in ``dp.privatize``: then releases are considered, and no
        sampler. Its number of rows and dtypes are read, no value.

    Returns
    -------
    Explanation
        All findings at once; prints in a terminal and renders in a notebook.

    Raises
    ------
    DomainError
        If `domain` names what the model does not have.
    ArgumentError
        If `epsilon` or `delta` is out of range.

    Notes
    -----
    Temperatures are those that a call of ``dp.sample`` with this budget would have. What would help was priced for this
    model: another budget by the same proof, narrower bounds by a proof of their own.

    **Guarantee.** Reads shapes and dtypes of private arrays, never a value (public columns are read), and spends
    nothing. Under ``add_remove`` the number of rows is not shown.

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     rate = pm.Gamma("rate", 2, 1)
    ...     visits = pm.Poisson("visits", rate, observed=np.array([0, 2, 1]))
    >>> print(explain(model).problems[0])
    visits: a Poisson count has no upper bound, so one row could move the sum by any amount. visits needs bounds, ...
    """
    budget, stored = Budget(_validate.epsilon(epsilon), delta), stored_rows(rows)
    source, domain = given_model(model, domain)
    with shared(), announced(WORDS):
        return _explained(source, domain or Domain(), budget, stored)


def _explained(model: Model, domain: Domain, budget: Budget, stored: StoredRows | None) -> Explanation:
    """Explain a model; of a table beside it releases alone: samplers are not priced, and take rows= themselves."""
    metric = domain.metric is not None
    inspection = (found := inspect(model, domain, per_unit=metric, per_person=True, weighted=True)).sums
    if stored is not None:
        inspection = with_stored(inspection, stored)
    elif domain.unit is not None:
        owner_of(inspection)  # or says now that there is none
    else:
        require_weights(inspection)
    problems, layout = problems_or_layout(inspection, stored)
    outlook = Outlook.of(found, inspection.n_rows, stored)
    looked = previews(found, budget) if stored is None else ()
    rows, bounded = inspection.most_rows, bool(clamped(model))
    priced = not metric and stored is None and domain.unit is None  # drawings and advice are priced for rows
    listed_by = found.rows if problems and outlook.fits and stored is None else inspection  # sums end at a problem
    default = chosen(inspection, outlook, budget)
    released = {
        "released": outlook.fits or not problems,
        "by_gradients": outlook.fits and (default.by_gradients or bool(problems)),
    }
    return Explanation(
        problems=problems,
        private=listed_by.private,
        public=listed_by.public,
        assumptions=listed_by.assumptions,
        left_out=listed_by.dropped,
        neighbours=domain.neighbours,
        layout=layout,
        budget=budget,
        samplers=tuple(replace(preview, bound=None) for preview in looked),  # a step holds on to the model
        temperature=tuple(noise_of(preview.bound, preview.noise) for preview in looked),
        lost=tuple(loss_of(preview.bound, rows, domain.neighbours, clamped=bounded) for preview in looked),
        ranges=ranges_paid(looked, domain),
        network=tuple(network_parts(inspection, budget.epsilon)) if priced else (),
        advice=tuple(_advice(Asked(found=found, budget=budget), layout, looked)) if priced else (),
        metric=metric_lines(domain, looked, layout) if metric else (),
        person=person_lines(domain),
        cautions=tuple(cautions(found, rows, beside=stored is not None, **released)),
        weak=tuple(weaknesses(inspection, budget)),
        default=default,
        gradients=outlook,
    )


def _advice(asked: Asked, layout: ReleaseLayout | None, looked: tuple[Preview, ...]) -> Iterator[str]:
    if layout is not None:
        yield from release_advice(layout, asked.found.domain.neighbours)
        yield from noise_advice(asked.found.sums, asked.budget.epsilon, asked.budget.delta)
    yield from sampler_advice(asked, looked)


__all__ = ["Explanation", "explain"]
