"""``dp.rehearse``: simulate tables from the private posterior, release them again, and compare."""

from __future__ import annotations

from collections.abc import Mapping
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
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.of_context import is_bambi
from pymc_dp.inspection.rows import Array
from pymc_dp.rehearse.asked import Asked
from pymc_dp.rehearse.result import Rehearsed
from pymc_dp.rehearse.sums import of_sums
from pymc_dp.released import Release

if TYPE_CHECKING:
    from pymc_dp.gradients.choice import Gradients

TABLES = 20


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
        A trace of ``dp.sample`` or ``dp.scrub`` with one release: noised gradients, or exact sums by cells.
    model : pymc.Model or bambi.Model, optional
        The model that was sampled. Its rows may be dummies: none is read. Defaults to the model of the context.
    domain : Domain, optional
        Default: that of the release. A model of bambi needs it, for its columns have other names there.
    statistics : Gradients, optional
        How gradients were released. Default: with the ``steps`` of the release. A trace does not say which ``columns``
        or ``conservative`` were given: repeat them here.
    n_rows : int, optional
        How many rows to simulate, where gradients were released. Default: as many as the model has, or ``n_max`` where
        the number is private. Give it if the rows of the model are dummies.
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
        For arguments out of range, and for releases that cannot be simulated: sums of products of a regression,
        weighted rows, several releases, local ones (``momentum_steps``).

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

    **Posteriors** are found as in `plan`, those of simulated tables and that of the release alike. For gradients they
    are normal: the released likelihood, times a normal prior with the mean and covariance of prior draws, of the
    parameters of the likelihood, bounded ones on the scale of their transform. For exact sums they are the private
    model's own, on grids or by NUTS. Cells have the released numbers of rows.

    A table of 3,000 rows took 0.2 seconds of one core for a logistic regression, 1.3 for a normal one with groups, and
    5 where ε protects persons.

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
    >>> import pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=np.zeros(200, dtype=int))
    >>> private = dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(1.0))
    >>> with private:
    ...     raw = pm.sample_prior_predictive(50, var_names=["p"], random_seed=1)
    >>> raw["posterior"] = raw["prior"].copy()  # in earnest, a trace of dp.sample
    >>> found = rehearse(dp.scrub(raw, private), model=model, tables=5, random_seed=1, progressbar=False)
    >>> found.tables, found.to_dataframe()["parameter"].tolist()
    (5, ['p', 'all'])
    """
    _validate.instance("idata", idata, xr.DataTree, "Pass a trace of dp.sample or dp.scrub.")
    count = _validate.many("tables", tables, 2)
    probability = _validate.within("interval", interval, 0, 1, ends=False)
    if n_rows is not None:
        _validate.many("n_rows", n_rows)
    _validate.flag("progressbar", progressbar)
    rng = public_generator(random_seed)
    release = Release.of(idata)
    _require_one(release)
    if is_bambi(model) and domain is None:
        raise ArgumentError(
            "domain must be given with a model of bambi: columns of the release have other names than the data frame. "
            "Repeat the domain= of dp.sample."
        )
    source, given = given_model(model, domain)
    public = release.domain if given is None else given
    values = posterior_draws(idata, source, count, rng)
    asked = Asked(release=release, model=source, domain=public, values=values, interval=probability, n_rows=n_rows)
    with progress(progressbar, "simulated tables", count) as advance:
        if release.of_gradients:
            from pymc_dp.rehearse.gradients import of_gradients  # Numba, which importing the package must not need

            return of_gradients(asked, statistics, rng, advance)
        if statistics is not None:
            raise ArgumentError(
                "statistics= says how gradients were released, and idata holds exact sums. Leave it out."
            )
        return of_sums(asked, rng, advance)


def _require_one(release: Release) -> None:
    """Refuse releases whose tables cannot be simulated, whatever the model."""
    if release.record.sources or release.of_published:
        raise ArgumentError(
            "idata is of several releases, or of tables that others made, and dp.rehearse simulates one release of "
            "rows. Pass a trace of one release."
        )
    if release.domain.weights:
        raise ArgumentError(
            "idata is of weighted rows, and nothing says how their weights are distributed. dp.rehearse simulates rows "
            "that count once each."
        )


def posterior_draws(idata: xr.DataTree, model: Model, count: int, rng: np.random.Generator) -> Mapping[str, Array]:
    """Return values of the free variables at some draws of a posterior, each chosen once where there are enough."""
    names = [str(rv.name) for rv in model.free_RVs]
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
