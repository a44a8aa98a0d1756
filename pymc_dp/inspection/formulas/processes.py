"""Approximate Gaussian processes in a formula, ``hsgp(x, m=10, c=2)``: a basis for every row, and its coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from bambi.backend.terms import HSGPTerm
from pymc.gp.hsgp_approx import calc_eigenvalues
from pytensor.graph.basic import Variable

from pymc_dp.inspection.formulas.design import within
from pymc_dp.inspection.rows import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Process:
    """What a term of a formula adds to the linear predictor: for every row, basis @ coefficients (of its group).

    Attributes
    ----------
    basis : (n_rows, n_functions) array
        Products of sines, computed from each row alone.
    bound : float
        No entry of `basis` is farther from 0.
    groups : (n_rows,) array of int or None
    coefficients : Variable
        (n_functions, [n_groups], [n_predictors]).
    """

    basis: Array
    bound: float
    groups: Array | None
    coefficients: Variable


def write_process(
    term: Any, shown: Array, held: Array, response_dims: Iterable[str], publish: Callable[[str, Array], Variable]
) -> Process:
    """Write the priors of a process into the model of the context, as bambi does, and compute its basis.

    Parameters
    ----------
    term : bambi.terms.HSGPTerm
        Built on the public table: centre, scale and boundary are public.
    shown, held : (n, n_columns) arrays
        The columns of the term, public and private: numbers, then the place of the group if there are groups.
    response_dims : iterable of str
        Dimensions of a response that has several predictors.
    publish : callable
        Puts a public array into the model.
    """
    backend, by, model = HSGPTerm(term), term.by_levels is not None, pm.modelcontext(None)
    model.add_coords({name: values for name, values in backend.coords.items() if name not in model.coords})
    label, groups, first = backend.name, held[:, -1].astype(np.int64) if by else None, int(bool(term.drop_first))
    places = np.zeros(len(held), dtype=np.int64) if groups is None else groups
    spreads, sines, bounds = [], [], []
    for group, covariance in enumerate(backend.get_covariance_functions()):
        length = np.asarray(term.L[group], dtype=np.float64)
        omega = np.sqrt(np.asarray(calc_eigenvalues(length, [int(one) for one in term.m])))
        known = publish(f"{label}_frequencies" + f"_{group}" * by, omega[first:])
        spreads.append(pt.sqrt(covariance.power_spectral_density(known)))
        public = _centred(term, shown[shown[:, -1] == group] if by else shown, group)
        middle = (public.max(axis=0) + public.min(axis=0)) / 2  # of the box, as PyMC has it
        with np.errstate(all="ignore"):  # a warning could depend on a row
            x = _centred(term, held, group) - middle
            sines.append((np.sin(omega[first:] * (x[:, None] + length)) / np.sqrt(length)).prod(axis=-1))
        bounds.append(float(np.prod(length**-0.5)))
    # Up to rounding it is within them, or it is no number: of the logarithm of 0, say.
    basis = within(np.stack(sines)[places, np.arange(len(held))], -max(bounds), max(bounds))
    dims = (f"{label}_weights_dim", *([f"{label}_by"] if by else []), *response_dims)
    scale = pt.stack(spreads, axis=1) if by else spreads[0]
    scale = scale[..., None] if response_dims else scale
    if term.centered:
        weights = pm.Normal(f"{label}_weights", sigma=scale, dims=dims)
    else:
        raw = pm.Normal(f"{label}_weights_raw", dims=dims)
        weights = pm.Deterministic(f"{label}_weights", raw * scale, dims=dims)
    return Process(basis=basis, bound=max(bounds), groups=groups, coefficients=weights)


def _centred(term: Any, columns: Array, group: int) -> Array:
    """Return the numbers of a term as bambi hands those of one group to the process."""
    by = term.by_levels is not None
    values: Array = (columns[:, :-1] - term.mean[group]) if by else (columns - term.mean)
    return values / term.maximum_distance if term.scale_predictors else values


__all__ = ["Process", "write_process"]
