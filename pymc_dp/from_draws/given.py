"""Draws of one posterior sample as a trace holds them, and what its record says about how they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import xarray as xr

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, TraceError
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.trace.draws import released_draws


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenDraws:
    """Released draws and their mechanism.

    Attributes
    ----------
    flat : (k, n_scalars) array
        All draws of all chains, each free variable raveled.
    power, prior_power : float
        Powers of the likelihood, 1 / T, and of the prior.
    n_rows : int
    """

    flat: Array
    power: float
    prior_power: float
    n_rows: int

    @property
    def count(self) -> int:
        """Number of draws."""
        return len(self.flat)


@dataclass(frozen=True, kw_only=True, eq=False)
class TemperedTrace:
    """A trace of ``dp.OPS``, read and checked.

    Attributes
    ----------
    posterior : xarray.Dataset
    record : dict
    mechanism : mapping
        ``power``, ``prior_power`` and ``n_rows``, which is None where that number is private.
    """

    posterior: xr.Dataset
    record: dict[str, Any]
    mechanism: Mapping[str, Any]

    @classmethod
    def of(cls, tree: object, name: str) -> Self:
        """Read a trace.

        Raises
        ------
        ArgumentError
            If it is no tree.
        TraceError
            If it is no trace of ``dp.OPS``, one of a version that did not write the temperature into it, or changed.
        """
        posterior, record = released_draws(tree, name)
        sampler = record.get("sampler") or {}
        if sampler.get("name") != "OPS":
            made = sampler.get("name") or "a release of statistics"
            raise TraceError(
                f"{name} must hold draws of dp.OPS(), whose distribution is known; these are of {made}. For released "
                "statistics, give dp.condition a dp.Release.of(idata)."
            )
        mechanism = sampler.get("mechanism")
        if not mechanism:
            raise TraceError(
                f"{name} was written by a version of pymc_dp that did not keep the temperature of draws as a number. "
                "Sample again; what was spent on it stays spent."
            )
        if not posterior.sizes["chain"] * posterior.sizes["draw"]:
            raise TraceError(f"{name} holds no draw. Give the trace as dp.sample returned it.")
        return cls(posterior=posterior, record=record, mechanism=mechanism)

    def rows(self, n_rows: int | None) -> int:
        """Return the number of rows: the public one, or what is given where it is private."""
        known = self.mechanism["n_rows"]
        if n_rows is not None:
            n_rows = _validate.many("n_rows", n_rows)
        if known is None and n_rows is None:
            raise ArgumentError(
                "n_rows must be given: the number of rows of this trace is private (add_remove), and the width of "
                "intervals depends on it. Give one that is known beforehand or that was released, rounded to at least "
                "1."
            )
        if known is not None and n_rows not in (None, known):
            raise ArgumentError(f"n_rows={n_rows} contradicts the trace, which is of {known} rows. Leave it out.")
        return int(known if n_rows is None else n_rows)

    def draws(self, priors: Sequence[Prior], n_rows: int) -> GivenDraws:
        """Return the draws of a model's free variables.

        Raises
        ------
        ArgumentError
            If the trace has others.
        """
        names = [prior.name for prior in priors]
        known = set(self.record["sampler"]["variables"])
        if set(names) != known:
            raise ArgumentError(
                f"model has the free variables {', '.join(sorted(names))}, the draws are of {', '.join(sorted(known))}."
                " Give the model that was sampled; its rows may be dummies."
            )
        parts = []
        for prior in priors:
            held = self.posterior[prior.name].to_numpy()
            if held.shape[2:] != prior.shape:
                raise ArgumentError(
                    f"model has {prior.name} of shape {prior.shape}, the draws are of shape {held.shape[2:]}. Give "
                    "the model that was sampled; its rows may be dummies."
                )
            parts.append(held.reshape(held.shape[0] * held.shape[1], -1).astype(np.float64))
        power, prior_power = (float(self.mechanism[name]) for name in ("power", "prior_power"))
        return GivenDraws(flat=np.concatenate(parts, axis=1), power=power, prior_power=prior_power, n_rows=n_rows)


__all__ = ["GivenDraws", "TemperedTrace"]
