"""Orthogonal polynomials: the norm of their columns over a table depends on how many rows it has."""

from __future__ import annotations

from typing import Any

import bambi
from formulae.transforms import Polynomial

from pymc_dp.inspection.formulas.automatic_priors import given


def norm_polynomials(built: Any, ratio: float) -> None:
    """Let ``poly()`` have the norms, and its automatic priors the scales, of a table of another length.

    Parameters
    ----------
    built : bambi.Model
        On the public table; it is changed.
    ratio : float
        Public number of rows, over that of the public table.

    Notes
    -----
    Columns of ``poly()`` have norm 1 over the table that they are learned from. Coefficients are thus larger in a table
    of more rows, by the root of the ratio.
    """
    seen: dict[int, Any] = {}
    for component in built.conditional_parameters.values():
        for term in component.terms.values():
            parts = getattr(term.term, "expr", term.term)
            found = [
                transform
                for part in getattr(parts, "components", ())
                if isinstance(transform := getattr(getattr(part, "call", None), "stateful_transform", None), Polynomial)
            ]
            for transform in found:
                if id(transform) not in seen:
                    transform.norms2 = {degree: norm * ratio for degree, norm in transform.norms2.items()}
                seen[id(transform)] = transform
            if found and isinstance(term.prior, bambi.Prior) and not given(term):
                _scale(term.prior, ratio ** (len(found) / 2))


def _scale(prior: bambi.Prior, factor: float) -> None:
    sigma = prior.args.get("sigma")
    if isinstance(sigma, bambi.Prior):
        _scale(sigma, factor)
    elif sigma is not None:
        prior.update(sigma=sigma * factor)


__all__ = ["norm_polynomials"]
