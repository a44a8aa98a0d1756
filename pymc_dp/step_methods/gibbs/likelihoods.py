"""Whether observed variables are read as exact sums, or row by row; and what values free variables may have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pymc import Model

from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.columns import levels_of
from pymc_dp.inspection.findings import Inspection, RowInspection
from pymc_dp.inspection.priors import Prior
from pymc_dp.samplers.gibbs import GibbsRows
from pymc_dp.samplers.gibbs_sums import GibbsSums
from pymc_dp.step_methods.gibbs.grid import Ends
from pymc_dp.step_methods.gibbs.row_latents import RowLatent, latents_of
from pymc_dp.transforms.likelihood import TableLikelihood, sums_problems, table_likelihoods
from pymc_dp.transforms.prior_model import shared_prior_model


def ends_of(prior: Prior) -> Ends:
    """Return bounds of a free variable; infinite where its prior gives none."""
    levels = levels_of(prior)
    if levels is not None:
        return np.full(prior.shape, float(levels[0])), np.full(prior.shape, float(levels[-1]))
    if prior.low is not None and prior.high is not None:
        return np.array(prior.low, dtype=float), np.array(prior.high, dtype=float)
    return np.full(prior.shape, -np.inf), np.full(prior.shape, np.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihoods:
    """The likelihoods of a model, and its prior model.

    Attributes
    ----------
    inspection : Inspection
    prior_model : pymc.Model
        Latents of the rows included.
    tables : tuple of TableLikelihood
        Where exact sums are enough for all of them.
    held : GibbsSums or GibbsRows
        What the kernel takes: their sums, or rows of all of them.
    latents : tuple of RowLatent
    """

    inspection: Inspection
    prior_model: Model
    tables: tuple[TableLikelihood, ...]
    held: GibbsSums | GibbsRows
    latents: tuple[RowLatent, ...] = ()


def likelihoods_of(inspection: Inspection, *, evidence: bool = False) -> Likelihoods:
    """Find the likelihoods of an inspected model, by exact sums where these are enough for all. Reads no private value.

    Parameters
    ----------
    inspection : Inspection
    evidence : bool
        Whether the log-likelihood itself is needed, with what no parameter enters.

    Raises
    ------
    UnsupportedModelError
        With what is in the way of exact sums, if the likelihood does not factorise over rows either.
    """
    if isinstance(inspection, RowInspection):
        return _of_rows(inspection)
    problems = sums_problems(inspection, evidence=evidence)
    if not problems:
        return _of_sums(inspection)
    rows = None if latents_of(inspection) else inspection.inspected.rows
    if rows is None or rows.problems:
        raise UnsupportedModelError(problems)
    return _of_rows(rows)


def _of_sums(inspection: Inspection) -> Likelihoods:
    prior_model, tables = table_likelihoods(inspection)
    latents = latents_of(inspection)
    for latent in latents:
        latent.join(prior_model)
    held = GibbsSums(tables, inspection, [latent.name for latent in latents])
    return Likelihoods(inspection=inspection, prior_model=prior_model, tables=tables, held=held, latents=latents)


def _of_rows(rows: RowInspection) -> Likelihoods:
    prior_model = shared_prior_model(rows)
    return Likelihoods(inspection=rows, prior_model=prior_model, tables=(), held=GibbsRows(rows, prior_model))


__all__ = ["Likelihoods", "ends_of", "likelihoods_of"]
