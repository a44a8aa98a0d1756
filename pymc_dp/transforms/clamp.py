"""Model → new model in which what a row adds to the log-likelihood is bounded, whatever the row holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pymc as pm
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.of_context import context_model
from pymc_dp.inspection.row_density import ClampedRV, clamped, density
from pymc_dp.transforms.prior_model import replace_variables

Ends = float | Mapping[str, float] | None


def clamp(model: pm.Model | None = None, low: Ends = None, high: Ends = None) -> pm.Model:
    """Return a copy of a model in which the log-likelihood of every row is clipped to public bounds.

    Samplers from the posterior are private only where no row can move the log-likelihood without limit. Where neither
    bounds of the rows nor `truncate` achieve that, clipping does, for any density.

    Parameters
    ----------
    model : pymc.Model, optional
        Default: the model of the context. Not changed.
    low, high : float or mapping of name to float
        In nats, per row, `low` < `high`: for every observed variable, or for those named. Bounds must be public:
        computing them from the rows breaks every guarantee.

    Returns
    -------
    pymc.Model
        Same variables, order, dims, coords, data, priors, Potentials and random draws. The term of a row is the sum of
        the log-densities of all its values, clipped to [low, high]; minus infinity and what is not a number become
        `low`. Arrays of data are shared with the original model, neither copied nor read.

    Raises
    ------
    ArgumentError
        For names that are not observed variables, bounds that are not finite or not in order, a model without observed
        variables, those without an axis of rows or a log-density, and those that are clamped already.

    Notes
    -----
    **Guarantee.** None by itself: it transforms a model and reads no row. In the new model the log-likelihood of a row
    has, summed over its clamped variables, ``replace``: sensitivity Δℓ <= high - low and range Rℓ <= 2 (high - low);
    ``add_remove``: Rℓ <= high - low, for all parameters, without truncation.

    Clamping changes the target. A clipped density is not normalised over the values of a row, so that this is a
    pseudo-likelihood: rows that the model finds less likely than e^low (outliers, but also most rows far from the mode)
    no longer pull, and nothing above e^high counts. Draws of the new model, and so predictive checks, are those of the
    density as it was. Choose `low` where few rows of the prior predictive lie below, and `high` at the greatest
    log-density, or below.

    Where a parameter of all rows alike is invalid, every row has the log-likelihood `low`, not minus infinity as in
    PyMC: exclude such points by priors. Checks of parameters that data enter are left out, because one row would
    decide for the others: such parameters need to be valid by construction, as ``sigma = exp(x @ b)`` is.

    References
    ----------
    Dimitrakakis, Nelson, Zhang, Mitrokotsa, Rubinstein (2017) and Wang, Fienberg, Smola (2015), theorem 1: posterior
    sampling is private where log-likelihoods are bounded.

    Examples
    --------
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     y = pm.StudentT("y", nu=4, mu=mu, sigma=1.0, observed=[0.1, 3.0])
    >>> clamped(clamp(model, low=-6, high=0))
    {'y': (-6.0, 0.0)}
    """
    model = context_model(model)
    replacements: dict[str, Callable[[Variable], Variable]] = {}
    for name, (least, most) in _ends(model, low, high).items():
        _check_rows(model[name])
        replacements[name] = partial(_clamped, low=least, high=most)
    return replace_variables(model, replacements)


def _clamped(rv: Variable, low: float, high: float) -> Variable:
    rv.name = None  # the name is that of the clamped variable
    return ClampedRV(low, high)(rv)


def _ends(model: pm.Model, low: Ends, high: Ends) -> dict[str, tuple[float, float]]:
    """Bounds of every variable to clamp, checked."""
    observed = [str(rv.name) for rv in model.observed_RVs]
    if not observed:
        raise ArgumentError("the model has no observed variable, so there is nothing to clamp. Give a likelihood data.")
    if low is None or high is None:
        raise ArgumentError(
            f"low and high must both be given, in nats per row, got {_validate.shown(low)} and {_validate.shown(high)}."
        )
    given = [set(end) for end in (low, high) if isinstance(end, Mapping)]
    names = observed if not given else [name for name in observed if name in set.union(*given)]
    for name in set().union(*given).difference(observed):
        raise ArgumentError(
            f"low and high: {_validate.shown(name)} is no observed variable of the model; these are "
            f"{', '.join(map(repr, observed))}."
            f"{_validate.nearest(name, observed)}"
        )
    if any(end != given[0] for end in given):
        raise ArgumentError(f"low and high name different variables, {sorted(given[0])} and {sorted(given[1])}.")
    ends = {name: (_end("low", low, name), _end("high", high, name)) for name in names}
    for name, (least, most) in ends.items():
        if least >= most:
            raise ArgumentError(f"low must be < high, got {least:g} and {most:g} for {name!r}. Exchange or widen them.")
        if name in clamped(model):
            raise ArgumentError(f"{name!r} is clamped already, to {clamped(model)[name]}. Clamp the original model.")
    return ends


def _end(argument: str, end: Ends, name: str) -> float:
    if isinstance(end, Mapping):
        return _validate.number(f"{argument}[{name!r}]", end[name])
    return _validate.number(argument, end)


def _check_rows(rv: Variable) -> None:
    """Refuse what has no log-density with one term per row."""
    try:
        logp = density(rv, rv.type())
    except NotImplementedError:
        raise ArgumentError(
            f"PyMC has no log-density for {rv.name!r}. Use a distribution with one, or pm.CustomDist."
        ) from None
    if logp.type.ndim == 0:
        what = "is a scalar" if rv.type.ndim == 0 else "has one log-density for all rows together"
        raise ArgumentError(f"{rv.name!r} {what}, so no row has a term of its own. Observe independent rows on axis 0.")


__all__ = ["clamp", "clamped"]
