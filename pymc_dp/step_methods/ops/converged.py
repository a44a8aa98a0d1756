"""One posterior sample by NUTS on the tempered model: private only if the chain has converged, which no test proves."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import PrivacyError, Problem, UnsupportedModelError
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.one_row import dummy_rows, frozen_shared, with_rows
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.row_columns import RowColumn
from pymc_dp.inspection.row_terms import RowInspection
from pymc_dp.inspection.rows import Array, shape_of
from pymc_dp.transforms.husk import husk

TUNE = 1000
TRIAL = 500
TRIALS = 2
CHAINS = 2
CORRELATION_TIMES = 20
"""Length of a chain, in the longest correlation time met on public simulations."""
LEAST = 500
MOST_ROWS = 20_000
"""Rows of a public simulation; a longer table has a narrower posterior of nearly the same shape."""
GOOD_RHAT = 1.05


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvergedPosterior:
    """The last state of a NUTS chain on the tempered posterior, of a length judged on data simulated from the prior.

    Notes
    -----
    **Guarantee.** That of an exact draw, if the chain had converged: class asymptotic. With total variation distance t
    to the target on every data set it would be (ε, δ + (1 + e^ε) t) [Wang, Fienberg, Smola 2015, proposition 10]; no t
    is proved here. The length of the chain is a function of public simulations; warm-up, step sizes and run times see
    the rows, and are not released.
    """

    inspection: RowInspection
    priors: tuple[Prior, ...]
    exact = False

    @property
    def words(self) -> str:
        """How draws are made, for the trace."""
        return (
            "the last state of a NUTS chain each, NOT exact: the guarantee holds only if every chain has converged "
            f"({TUNE} steps of tuning, then {CORRELATION_TIMES} correlation times of data simulated from the prior)"
        )

    def read(self) -> list[Array]:
        """Hold the rows. Reads private data."""
        return [column.read() for column in self.inspection.columns]

    def draw(self, rng: np.random.Generator, held: list[Array], inverse: float, temper_prior: bool) -> dict[str, Array]:
        """Run one chain on the rows held and return its last state."""
        length = self.length(inverse)
        seed = [int(word) for word in rng.integers(0, 2**32, size=8, dtype=np.uint64)]
        model = self._tempered(held, inverse)
        with _silent():
            try:
                idata = _chain(model, length, 1, seed)
            except Exception:
                raise PrivacyError("The chain could not be run. The budget is spent; nothing was released.") from None
        posterior = idata.posterior.dataset
        return {prior.name: np.asarray(posterior[prior.name].values[0, -1]) for prior in self.priors}

    def length(self, inverse: float) -> int:
        """Return the number of steps after tuning, judged on data simulated from the prior: public.

        Raises
        ------
        UnsupportedModelError
            If chains do not agree on simulated data.
        """
        longest = 0.0
        for trial in range(TRIALS):
            rows = self.simulated(np.random.default_rng(trial))
            with _silent():
                idata = _chain(self._tempered(rows, inverse), TRIAL, CHAINS, [trial])
            names = [prior.name for prior in self.priors]
            size, spread = _diagnosed(idata, names)
            if not spread < GOOD_RHAT:
                what = f"on data simulated from its prior NUTS chains do not agree (R-hat {spread:.2f})"
                remedy = "Change the parametrisation, or use dp.SGLD or dp.BarkerMetropolis, which need no convergence."
                raise UnsupportedModelError([Problem(where="model", what=what, remedy=remedy)])
            longest = max(longest, TRIAL * CHAINS / max(size, 1.0))
        return max(LEAST, math.ceil(CORRELATION_TIMES * longest))

    def simulated(self, rng: np.random.Generator) -> list[Array]:
        """Return a public table: covariates at random within their bounds, observed values from the prior."""
        inspection = self.inspection
        count = min(inspection.n_rows, MOST_ROWS)
        if inspection.domain.n_max is not None:
            count = min(inspection.domain.n_max, MOST_ROWS)
        columns = inspection.columns
        tables = dict(zip((column.leaf for column in columns), dummy_rows(columns, count, rng), strict=True))
        for column in columns:
            tables[column.leaf] = column.clamped(_spread(column, count, rng))
        drawn = _drawn(inspection, tables, rng)
        for item, values in zip(inspection.observed, drawn, strict=True):
            column = next(column for column in columns if column.leaf is item.leaf)
            tables[item.leaf] = column.clamped(values.astype(column.leaf.type.dtype))
        return [tables[column.leaf] for column in columns]

    def _tempered(self, rows: list[Array], inverse: float) -> Model:
        """Return the husk with the tempered log-likelihood of a table. **Private** if rows are."""
        model = husk(self.inspection)
        leaves = {column.leaf: pt.constant(table) for column, table in zip(self.inspection.columns, rows, strict=True)}
        free = dict(zip(self.inspection.stand_ins, model.free_RVs, strict=True))
        terms = [frozen_shared(with_rows(term, leaves, free)).sum() for term in self.inspection.terms]
        with model:
            pm.Potential("tempered_likelihood", inverse * (pt.add(*terms) if len(terms) > 1 else terms[0]))
        return model


def _spread(column: RowColumn, count: int, rng: np.random.Generator) -> Array:
    """Return random rows that fill what is public about a column."""
    shape = (count, *shape_of(column.leaf)[1:])
    low, high = column.bounds or (-1.0, 1.0)
    if column.integer:
        return rng.integers(int(low), int(high) + 1, size=shape).astype(column.leaf.type.dtype)
    if column.norm is not None:
        flat = rng.normal(size=shape)
        lengths = np.sqrt((flat.reshape(count, -1) ** 2).sum(axis=1)).reshape(count, *(1,) * (len(shape) - 1))
        return np.asarray(column.norm * rng.uniform(0.3, 1.0, size=lengths.shape) * flat / lengths)
    return rng.uniform(low, high, size=shape)


def _drawn(inspection: RowInspection, tables: Mapping[Variable, Array], rng: np.random.Generator) -> list[Array]:
    """Draw observed values given covariates and parameters from the prior: nothing private reaches them."""
    held = {item.leaf for item in inspection.observed}
    leaves = {leaf: pt.constant(table.astype(leaf.type.dtype)) for leaf, table in tables.items() if leaf not in held}
    model = inspection.model
    points = pm.draw(list(model.free_RVs), random_seed=int(rng.integers(2**31)))
    known = {rv: pt.constant(np.asarray(value)) for rv, value in zip(model.free_RVs, points, strict=True)}
    graphs, _ = rebuild([item.variable for item in inspection.observed], {**leaves, **known})
    return [np.asarray(value) for value in pm.draw(graphs, random_seed=int(rng.integers(2**31)))]


def _chain(model: Model, draws: int, chains: int, seed: Any) -> Any:
    return pm.sample(
        draws=draws,
        tune=TUNE,
        chains=chains,
        cores=1,
        model=model,
        random_seed=np.random.default_rng(seed),
        nuts_sampler="pymc",
        progressbar=False,
        quiet=True,
        compute_convergence_checks=False,
    )


def _diagnosed(idata: Any, names: list[str]) -> tuple[float, float]:
    """Return the least effective sample size and the largest R-hat."""
    import arviz as az

    posterior = idata.posterior.dataset[names]
    sizes, spreads = az.ess(posterior), az.rhat(posterior)
    least = min(float(np.min(sizes[name].values)) for name in names)
    most = max(float(np.max(spreads[name].values)) for name in names)
    return least, most


@contextmanager
def _silent() -> Iterator[None]:
    """Let nothing be printed, logged or warned of: it could depend on a row."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


__all__ = ["ConvergedPosterior"]
