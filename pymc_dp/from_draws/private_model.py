"""A private model whose data are draws of one posterior sample: their posterior, by any sampler, at no cost.

``dp.from_draws.draw_intervals``: how far the parameters may lie from tempered draws, without sampling again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp._display import scalar_names
from pymc_dp.errors import ArgumentError
from pymc_dp.from_draws.given import GivenDraws, TemperedTrace
from pymc_dp.from_draws.mechanism import DrawsDensity, Mechanism, PublicModel
from pymc_dp.inspection.of_context import context_model
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord, TableRecord, read_domain, read_record
from pymc_dp.transforms.prior_model import prior_model
from pymc_dp.transforms.privatize import mark_private, refuse_released
from pymc_dp.transforms.released_logp import add_release

if TYPE_CHECKING:
    import pandas as pd


NAME = "released_draws"
LATENT = f"{NAME}_score"


def mechanism_of(
    model: Model | None,
    tree: object,
    covariates: Mapping[str, Any] | None,
    n_rows: int | None,
    *,
    name: str,
    caller: str,
) -> tuple[Mechanism, TemperedTrace]:
    """Read a trace of ``dp.OPS`` and lay out what its draws say about a model; reads no private value.

    Parameters
    ----------
    model, covariates, n_rows
        As for `pymc_dp.from_draws.draw_intervals`.
    tree : xarray.DataTree
    name, caller : str
        What the trace is called, and the public function that asks, for texts.
    """
    trace = TemperedTrace.of(tree, name)
    count = trace.rows(n_rows)
    stated = {} if covariates is None else _validate.mapping("covariates", covariates)
    source = context_model(model)
    refuse_released(source)
    domain = read_domain(trace.record.get("domain"), set(source.named_vars))
    public = PublicModel.of(source, domain, caller)
    return Mechanism.of(public, trace.draws(public.density.priors, count), stated, caller), trace


def condition_on_draws(
    model: Model | None, tree: object, *, covariates: Mapping[str, Any] | None, n_rows: int | None
) -> Model:
    """Do what `pymc_dp.condition` does, for a trace of ``dp.OPS``."""
    found, trace = mechanism_of(model, tree, covariates, n_rows, name="release", caller="dp.condition")
    new = prior_model(found.model.inspection)
    if taken := sorted({NAME, LATENT} & set(new.named_vars)):
        raise ArgumentError(f"model has a variable called {taken[0]}, which the private model needs. Rename it.")
    table = _table(found, trace)
    record = _record(trace, table, found.model.inspection.dropped)
    start = found.model.coordinates.named(found.given.flat.mean(axis=0))
    for rv in new.free_RVs:
        new.set_initval(rv, start[str(rv.name)])
    new.add_coords({table.cell_dim: table.cells, table.column_dim: table.columns})
    with new:
        latent = pm.Normal(LATENT, 0.0, 1.0, shape=found.points.shape[1])
        flat = pt.concatenate([pt.flatten(rv).astype("float64") for rv in new.free_RVs if str(rv.name) != LATENT])
        beside = np.full(found.given.flat.shape, 1 / found.given.power)
        add_release(table, [flat, latent, beside], DrawsDensity.of(found), found.given.flat)
    mark_private(new, record, {table.name: found.given.flat})
    return new


def _table(found: Mechanism, trace: TemperedTrace) -> TableRecord:
    given, facts = found.given, dict(trace.record["sampler"]["facts"])
    return TableRecord(
        name=NAME,
        likelihood=f"draws of OPS at T = {1 / given.power:.6g}",
        cell_dim=f"{NAME}_draw",
        column_dim=f"{NAME}_scalar",
        cells=tuple(map(str, range(given.count))),
        columns=scalar_names(found.model.density.priors),
        scales=(),
        epsilon=float(trace.record["epsilon"]),
        sensitivities=(str(facts.get("one row moves", "")),),
        sizes_public=trace.mechanism["n_rows"] is not None,
        plan={"kind": NAME, **trace.mechanism},
        approximations=(approximation(given),),
    )


def approximation(given: GivenDraws) -> str:
    """Say what is approximate in the posterior given released draws."""
    return (
        f"{NAME}: the log-likelihood of the table is treated as normal given the parameters (central limit theorem "
        f"over {given.n_rows} rows), and varies along its score only; expectations are over simulated rows, whose "
        "covariates are as stated, or else uniform within their bounds: widths depend on that. The draws are assumed "
        "to have been made with the prior and the likelihood of the given model."
    )


def _record(trace: TemperedTrace, table: TableRecord, dropped: tuple[str, ...]) -> ReleaseRecord:
    return replace(read_record({**trace.record, "sampler": None}), tables=(table,), noise_aware=True, left_out=dropped)


def draw_intervals(
    idata: xr.DataTree,
    model: Model | None = None,
    probability: float = 0.9,
    *,
    covariates: Mapping[str, Any] | None = None,
    n_rows: int | None = None,
) -> pd.DataFrame:
    """Return intervals for the parameters, given draws of ``dp.OPS`` and the temperature that they were made at.

    A draw at temperature T lies about the best estimate with T times the variance of the posterior, and the estimate
    itself lies about the parameters with that variance: the mean of k draws has (1 + T / k) times it in all. The spread
    of a few draws shows T times it, and one draw shows nothing of it.

    Parameters
    ----------
    idata : xarray.DataTree
        Trace of ``dp.sample(step=dp.OPS())``; all its draws count.
    model : pymc.Model, optional
        The model that was sampled. Its rows may be dummies: none is read. Defaults to the model of the context.
    probability : float
        Of the intervals, which have as much on either side.
    covariates : mapping of str to array or distribution, optional
        Of private columns that no likelihood observes, as for ``dp.plan``: rows from elsewhere or made up, or a PyMC
        distribution of one row. By default they are uniform within their bounds.
    n_rows : int, optional
        Number of rows, needed only where it is private (``add_remove``); give one that is public or was released.

    Returns
    -------
    pandas.DataFrame
        One row for every scalar of the free variables: ``mean``, ``sd``, ``low`` and ``high`` of its posterior given
        the draws. In ``attrs``: ``probability``, ``temperature``, ``draws``, and ``factor``, which is √(1 + T / k).

    Raises
    ------
    TraceError
        If the trace holds no draws of ``dp.OPS``, or its temperature is not in it as a number (older versions).
    UnsupportedModelError
        Where rows cannot be simulated, or the parameters are too many to integrate over (more than some six).
    ArgumentError
        For arguments of another kind.

    Notes
    -----
    **Guarantee.** That of the trace: computed from its draws and from public things alone (post-processing).

    The posterior is that of ``dp.condition(model, idata)``, by a sum over points and not by a sampler: the prior
    counts, and so does that strongly tempered draws follow it more than the rows. It is approximate: the log-likelihood
    of the table is treated as normal given the parameters. Take ``dp.condition`` for joint draws, and for functions of
    several parameters.

    References
    ----------
    Wang, Fienberg, Smola (2015), proposition 9; Williams, McSherry (2010).

    Examples
    --------
    >>> import pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     p = pm.Uniform("p", 0.05, 0.95)
    ...     y = pm.Bernoulli("y", p, observed=np.repeat([0, 1], [700, 300]))
    >>> idata = dp.sample(epsilon=1.0, model=model, step=dp.OPS(), ledger=dp.Ledger(1.0))
    >>> found = draw_intervals(idata, model)
    >>> list(found.columns), round(found.attrs["factor"], 2)
    (['variable', 'mean', 'sd', 'low', 'high'], 2.62)
    """
    import pandas as pd

    level = _validate.within("probability", probability, 0.0, 1.0, ends=False)
    # which import SciPy

    found, _ = mechanism_of(model, idata, covariates, n_rows, name="idata", caller="dp.from_draws.draw_intervals")
    weights, points = found.posterior, found.flat
    mean = weights @ points
    frame = pd.DataFrame(
        {
            "variable": scalar_names(found.model.density.priors),
            "mean": mean,
            "sd": np.sqrt(weights @ (points - mean) ** 2),
            "low": quantiles(points, weights, (1 - level) / 2),
            "high": quantiles(points, weights, (1 + level) / 2),
        }
    )
    warmth, count = 1 / found.given.power, found.given.count
    frame.attrs = {
        "probability": level,
        "temperature": warmth,
        "draws": count,
        "factor": float(np.sqrt(1 + warmth / count)),
    }
    return frame


def quantiles(points: Array, weights: Array, probability: float) -> Array:
    """Return a quantile of every column of weighted points."""
    found = np.empty(points.shape[1])
    for place, column in enumerate(points.T):
        order = np.argsort(column)
        below = np.cumsum(weights[order]) - weights[order] / 2
        found[place] = np.interp(probability, below, column[order])
    return found


__all__ = ["approximation", "condition_on_draws", "draw_intervals", "mechanism_of", "quantiles"]
