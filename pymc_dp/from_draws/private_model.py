"""A private model whose data are draws of one posterior sample: their posterior, by any sampler, at no cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model

from pymc_dp import _validate
from pymc_dp._display import scalar_names
from pymc_dp.errors import ArgumentError
from pymc_dp.from_draws.density import DrawsDensity
from pymc_dp.from_draws.given import GivenDraws, TemperedTrace
from pymc_dp.from_draws.mechanism import Mechanism, PublicModel
from pymc_dp.inspection.inspect import context_model
from pymc_dp.release.record import ReleaseRecord, TableRecord, read_domain, read_record
from pymc_dp.transforms.observed import add_release
from pymc_dp.transforms.prior_model import prior_model
from pymc_dp.transforms.privatize import mark_private, refuse_released

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


__all__ = ["approximation", "condition_on_draws", "mechanism_of"]
