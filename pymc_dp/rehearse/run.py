"""``dp.rehearse``: simulate tables from the private posterior, release them again, and compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp._compiling import says_when_it_compiles
from pymc_dp._progress import progress
from pymc_dp._random import public_generator
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.choice import Gradients
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.interpreted import shared
from pymc_dp.inspection.of_context import is_bambi
from pymc_dp.inspection.rows import Array
from pymc_dp.rehearse.result import Rehearsed
from pymc_dp.release.record import described_domain, read_domain
from pymc_dp.released import Release

if TYPE_CHECKING:
    from pymc_dp.plan.rehearsal import Rehearsal

TABLES = 20
CALLER = "dp.rehearse"


@says_when_it_compiles
def rehearse(
    idata: xr.DataTree,
    *,
    model: Model | None = None,
    domain: Domain | None = None,
    statistics: Gradients | None = None,
    n_rows: int | None = None,
    tables: int = TABLES,
    interval: float = 0.9,
    random_seed: Any = None,
    progressbar: bool = True,
) -> Rehearsed:
    """Simulate tables from a private posterior, release each again, and count how well the intervals hold up.

    The parameters of each table are a draw of the posterior. Its release is made as yours was: the same budget, method,
    domain and neighbours. So the parameters are known, and the intervals can be checked. It costs no budget.

    Parameters
    ----------
    idata : xarray.DataTree
        A trace of ``dp.sample(statistics=dp.Gradients())``, or any other of noised gradients.
    model : pymc.Model or bambi.Model, optional
        The model that was sampled. Its rows may be dummies: none is read. Defaults to the model of the context.
    domain : Domain, optional
        Only for models of bambi, whose columns have other names than in the release. Default: that of the release.
    statistics : Gradients, optional
        How gradients were released. Default: ``steps`` and ``momentum_steps`` of the release. A trace does not say
        which ``columns`` or ``conservative`` were given: repeat them here.
    n_rows : int, optional
        How many rows to simulate. Default: as many as the model has, or ``n_max`` where the number is private. Give it
        if the rows of the model are dummies.
    tables : int
        How many tables to simulate, >= 2.
    interval : float
        Probability of the central intervals, in (0, 1).
    random_seed : int, Generator or None
        Seeds the draws of parameters, the tables and the simulated noise. The same seed gives the same result.
    progressbar : bool

    Returns
    -------
    Rehearsed
        Prints as a table with a verdict, renders in notebooks; ``.to_dataframe()``, ``dp.plots.rehearsal(found)``.

    Raises
    ------
    TraceError
        If the trace holds no release, or was changed.
    UnsupportedModelError
        If the model is not that of the release, or its rows cannot be simulated.
    ArgumentError
        For arguments out of range, and for releases that cannot be simulated: exact sums, weighted rows, several
        releases, local ones (``momentum_steps``).

    Notes
    -----
    **What is counted**, for each parameter and for all together:

    - *coverage*: the share of simulated tables whose interval holds the parameter that made the table;
    - *width ratio*: the width of simulated intervals over that of the released one. Far above 1, the release is surer
      than the model can make it;
    - *factor*: the quantile, at `interval`, of errors over half the released width. Make a released interval that many
      times as wide, about its middle, and it holds as many errors as it claims.

    **What it cannot see** is a model that does not fit. Simulated tables are of the model. Rows that vary more than the
    likelihood says, heavy tails and a wrong link go unseen: a release that was 13 standard deviations off covered 93%.
    Nor does it see a column that is not distributed as simulated, see ``columns``. What it does see are steep slopes,
    rare outcomes, vague priors, noise that dominates, and a release that came out far too sure.

    **Posteriors** are normal ones of the parameters of the likelihood, bounded ones on the scale of their transform, as
    in `plan`: the released likelihood, times a normal prior with the mean and covariance of prior draws. The widths that
    are compared with are those of the same form, computed from what was released.

    A table takes about half a second of one core, and more with many rows.

    **Guarantee.** That of the trace: everything is computed from what was released, from the model without its rows and
    from what is declared public (post-processing). No private value is read and no ledger is charged. Noise is
    simulated from `random_seed`. Of the model's rows their number counts, where that is public, and the columns
    declared public.

    References
    ----------
    Talts, Betancourt, Simpson, Vehtari, Gelman (2018), doi 10.48550/arXiv.1804.06788 (coverage of draws); Efron,
    Tibshirani (1993), An Introduction to the Bootstrap, section 6.5 (simulation from what was fitted).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     slope = pm.Normal("slope")
    ...     x = pm.Data("x", np.linspace(-1, 1, 500))
    ...     y = pm.Bernoulli("y", logit_p=slope * x, observed=(np.linspace(-1, 1, 500) > 0).astype(int))
    >>> domain = dp.Domain(bounds={"x": (-1, 1)})
    >>> idata = dp.sample(
    ...     epsilon=1.0, delta=1e-6, domain=domain, model=model, statistics=dp.Gradients()
    ... )  # doctest: +SKIP
    >>> rehearse(idata, model=model)  # doctest: +SKIP
    """
    _validate.instance("idata", idata, xr.DataTree, "Pass a trace of dp.sample or dp.scrub.")
    count = _validate.many("tables", tables, 2)
    probability = _validate.within("interval", interval, 0, 1, ends=False)
    if n_rows is not None:
        _validate.many("n_rows", n_rows)
    rng = public_generator(random_seed)
    release = Release.of(idata)
    choice = _choice(release, statistics)
    if is_bambi(model) and domain is None:
        raise ArgumentError(
            "domain must be given with a model of bambi: columns of the release have other names than the data frame. "
            "Repeat the domain= of dp.sample."
        )
    source, given = given_model(model, domain)
    from pymc_dp.gradients.refit import refit
    from pymc_dp.plan.rehearsal import HOW, Rehearsal, privately  # Numba, which importing the package must not need

    with shared():
        public = read_domain(release.record.domain) if given is None else given
        rehearsal = Rehearsal(source, public, {"gradients": choice}, n_rows)
        _require_same(rehearsal, release)
        matched = refit(source, public, release.record, release.tables[release.record.tables[0].name])
    asked = release.record.asked or release.epsilon
    (planned,) = rehearsal.budgets([asked], release.delta).values()
    prior = planned.prior.divided(1 / planned.limits.scale)
    simulated = rehearsal.tables_at(_posterior_draws(idata, source, count, rng), rng, CALLER)
    errors, deviations = list[Array](), list[Array]()
    with progress(progressbar, "simulated tables", len(simulated)) as advance:
        for table in simulated:
            mean, covariance = privately(planned, prior, table)
            errors.append(mean - table.truth)
            deviations.append(np.sqrt(np.diag(covariance)))
            advance()
    _, covariance = matched.quadratic.posterior(prior.mean, prior.precision)
    reach = NormalDist().inv_cdf((1 + probability) / 2)
    return Rehearsed(
        parameters=matched.table.cells,
        errors=np.array(errors),
        halves=reach * np.array(deviations),
        released=reach * np.sqrt(np.diag(covariance)),
        interval=probability,
        rows=rehearsal.rows,
        how=HOW,
        loose=_assumed(rehearsal),
    )


def _choice(release: Release, statistics: Gradients | None) -> Gradients:
    """Return how gradients were released, as far as the record and the caller say."""
    if release.record.sources or release.of_published:
        raise ArgumentError(
            "idata is of several releases, or of tables that others made, and dp.rehearse simulates one release of "
            "rows. Pass a trace of one release."
        )
    if not release.of_gradients:
        raise ArgumentError(
            "idata holds exact sums, and dp.rehearse simulates noised gradients only. Their likelihood accounts for the "
            "noise by itself; dp.plan(model, epsilon) simulates them from the prior."
        )
    if (release.record.domain or {}).get("weights"):
        raise ArgumentError(
            "idata is of weighted rows, and nothing says how weights are distributed, so that dp.rehearse cannot "
            "simulate them."
        )
    plan = release.record.tables[0].plan
    recorded = {field.name: plan[field.name] for field in fields(Gradients) if field.name in plan}
    choice = Gradients(**recorded) if statistics is None else statistics
    _validate.instance("statistics", choice, Gradients, "Repeat the dp.Gradients(...) of the release.")
    for name, value in recorded.items():
        if getattr(choice, name) != value:
            raise ArgumentError(
                f"statistics={choice!r} is not how idata was released, with {name}={value!r}. Repeat that, or leave "
                f"{name} out."
            )
    if choice.local:
        raise ArgumentError(
            "idata is of a local release (momentum_steps), about one mode of several: that of a simulated table need "
            "not be the one of its parameters, so that no coverage is claimed of it."
        )
    return choice


def _require_same(rehearsal: Rehearsal, release: Release) -> None:
    """Refuse a domain that is not that of the release."""
    own = described_domain(rehearsal.interface.inspection.domain)
    released = described_domain(read_domain(release.record.domain))
    differ = [name for name in {**own, **released} if own.get(name) != released.get(name)]
    if differ:
        raise ArgumentError(
            f"domain differs from that of the release in {', '.join(differ)}. Leave domain= out, or repeat that of the "
            "release."
        )


def _assumed(rehearsal: Rehearsal) -> tuple[str, ...]:
    """Return the private columns of which nobody said how they are distributed."""
    inspection = rehearsal.interface.inspection
    known = {item.leaf for item in inspection.observed}
    return tuple(
        column.name
        for column in inspection.columns
        if not (column.public or column.leaf in known or column.name in rehearsal.covariates)
    )


def _posterior_draws(idata: xr.DataTree, model: Model, count: int, rng: np.random.Generator) -> Mapping[str, Array]:
    """Return values of the free variables at some draws of a posterior, each chosen once where there are enough."""
    names: Sequence[str] = [str(rv.name) for rv in model.free_RVs]
    held = idata["posterior"].to_dataset() if "posterior" in idata.children else xr.Dataset()
    if missing := [name for name in names if name not in held]:
        raise ArgumentError(
            f"idata has no posterior draws of {', '.join(missing)}. Sample without var_names=, and pass the model that "
            "was sampled."
        )
    chains, draws = held.sizes["chain"], held.sizes["draw"]
    chosen = rng.choice(chains * draws, size=count, replace=count > chains * draws)
    values = {name: held[name].transpose("chain", "draw", ...).to_numpy() for name in names}
    return {name: one.reshape(chains * draws, *one.shape[2:])[chosen] for name, one in values.items()}


__all__ = ["rehearse"]
