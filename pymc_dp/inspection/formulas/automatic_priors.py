"""Automatic priors of bambi, whose scales come from public bounds, and a caution where they are narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import bambi
import numpy as np
from bambi.families import univariate

from pymc_dp._display import shorten
from pymc_dp.inspection.formulas.design import PublicTable

LEAST_PER_UNIT = 0.1
"""Prior standard deviation of an effect per unit of a column below which its bounds are called wide.

On the scale of the link. For a normal or Student-t response, in standard deviations of a response that is spread evenly
over its bounds."""
MOST_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class AutomaticPrior:
    """A prior whose scale bambi computed from the public table.

    Attributes
    ----------
    text : str
        ``x ~ Normal(0, 0.5)``.
    columns : frozenset of str
        Columns of numbers by whose bounds it was scaled.
    name : str
        Of the parameter.
    slope : float or None
        Standard deviation, if it is the prior of the slope of a column as it is.
    """

    text: str
    columns: frozenset[str]
    name: str
    slope: float | None


def given(term: Any) -> bool:
    """Whether a user gave the prior of a term: bambi marks those as not to be scaled."""
    if hasattr(term, "automatic_priors"):
        return not term.automatic_priors
    return not getattr(term.prior, "auto_scale", False)


def automatic_priors(model: Any, built: Any, table: PublicTable) -> list[AutomaticPrior]:
    """Return the priors that bambi scaled by the bounds of columns.

    Parameters
    ----------
    model : bambi.Model
        As it was given: it knows which priors were given with it.
    built : bambi.Model
        The same on the public table.
    table : PublicTable
    """
    parent, found = model.family.likelihood.parent, []
    own = built.parameters[parent].terms
    for key, term in model.parameters[parent].terms.items():
        if not isinstance(getattr(term, "prior", None), bambi.Prior) or given(term):
            continue
        prior, name = own[key].prior, own[key].alias or key
        columns = frozenset(one for one in table.known(own[key].term.var_names) if table.columns[one].levels is None)
        sigma = prior.args.get("sigma")
        if not columns or sigma is None:
            continue
        if isinstance(sigma, bambi.Prior):
            text, slope = f"{name}_sigma ~ {sigma.name}({_numbers(sigma.args['sigma'])})", None
        else:
            text = f"{name} ~ {prior.name}({_numbers(prior.args['mu'])}, {_numbers(sigma)})"
            slope = float(sigma) if key in columns else None
        found.append(AutomaticPrior(text=text, columns=columns, name=name, slope=slope))
    return found


def _numbers(values: Any) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def narrow_priors(built: Any, automatic: Sequence[AutomaticPrior]) -> Iterator[str]:
    """Yield a caution of slopes that are kept near 0 by the width of the bounds of their columns."""
    scaled = isinstance(built.family, univariate.Gaussian | univariate.StudentT)
    unit = float(np.std(built.response_term.data)) if scaled else 1.0
    narrow = [one for one in automatic if one.slope is not None and one.slope < LEAST_PER_UNIT * unit]
    if narrow:
        shown = ", ".join(shorten([one.text for one in narrow], MOST_NAMED))
        yield (
            f"automatic priors narrow as bounds widen: {shown}. From rows that fill a small part of the bounds bambi "
            "would make a wider one; this one pulls slopes to 0. Narrow the bounds, or give "
            f"priors={{{narrow[0].name!r}: ...}}"
        )


__all__ = ["AutomaticPrior", "automatic_priors", "given", "narrow_priors"]
