"""``dp.answer``: the best response to a query, by its mean utility over draws that were paid for. Free."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.rows import Array
from pymc_dp.trace.chains import SAMPLE, released_draws
from pymc_dp.utilities import UTILITIES

Draw = Mapping[str, Array]
Query = str | Callable[[Draw], Any]
FEW = 4
"""Draws of a chain below which their standard error is not stated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """The response with the largest mean utility over released draws.

    Attributes
    ----------
    response : object
        The first of the best.
    place : int
        Its place among the responses.
    utility : float
        Its mean utility over the draws.
    utilities : (n_responses,) array
        Mean utility of each response.
    errors : (n_responses,) array
        Standard error of how far each response is behind the best one, by the effective number of draws; an estimate,
        NaN where there are too few draws.
    regret : float or None
        How much expected utility is lost at most because draws stand in for the posterior they are of, with probability
        ``1 - failure``; None where that is not proved.
    failure : float
    draws : int
    source : str
        What the draws are.

    Examples
    --------
    >>> found = Answer(
    ...     response=0.3,
    ...     place=1,
    ...     utility=-0.02,
    ...     utilities=np.array([-0.1, -0.02]),
    ...     errors=np.array([0.01, 0.0]),
    ...     regret=0.05,
    ...     failure=0.05,
    ...     draws=20,
    ...     source="20 exact draws",
    ... )
    >>> found
    Answer(0.3, mean utility -0.02; regret <= 0.05 with probability 0.95; 20 exact draws)
    """

    response: Any
    place: int
    utility: float
    utilities: Array
    errors: Array
    regret: float | None
    failure: float
    draws: int
    source: str

    def __repr__(self) -> str:
        proved = (
            "no bound on the regret"
            if self.regret is None
            else f"regret <= {self.regret:.4g} with probability {1 - self.failure:g}"
        )
        return f"Answer({self.response!r}, mean utility {self.utility:.4g}; {proved}; {self.source})"


def answer(
    idata: xr.DataTree,
    utility: str | Callable[[Draw, Any], float],
    responses: Iterable[Any],
    *,
    query: Query | None = None,
    bounds: tuple[float, float] | None = None,
    failure: float = 0.05,
) -> Answer:
    """Answer a query by the response with the largest mean utility over released draws, at no cost.

    Parameters
    ----------
    idata : xarray.DataTree
        A trace of ``dp.sample`` or ``dp.scrub``, as it was returned or read from a file.
    utility : str or callable
        How good a response is if the parameters are those of a draw: a function of a draw (a mapping of names to
        arrays) and a response, or, with `query`, the name of one: ``"squared_error"`` and ``"absolute_error"``, less
        the error, summed over entries; ``"zero_one"``, 1 if they are equal, else 0; ``"log_score"``, the expected
        logarithm of the probability that a response, a probability or a vector of them, gives to what happens with
        the probabilities of the draw.
    responses : iterable
        The finitely many responses there are.
    query : str or callable, optional
        What a named utility compares responses with: the name of a variable, or a function of a draw. It may be left
        out if the posterior has one variable.
    bounds : (float, float), optional
        Least and largest value of the utility over all parameters and responses, for the bound on the regret. Known for
        ``"zero_one"``.
    failure : float
        Probability, in (0, 1), with which that bound may fail.

    Returns
    -------
    Answer

    Raises
    ------
    TraceError
        If the trace is not annotated by this package, or if its posterior holds anything that nothing paid for.
    ArgumentError
        For arguments of another kind, utilities that are NaN or infinite, or utilities outside of `bounds`.

    Notes
    -----
    **Guarantee.** That of the trace: a function of draws that were paid for (post-processing), for any number of
    queries, which may follow from earlier answers. It holds as long as the utility itself knows nothing about the rows.

    **Regret.** Let the draws be N independent ones from a distribution, the utility within an interval of width w, and
    the query, the utility and the R responses be chosen before the draws were looked at. Then the response has an
    expected utility, under that distribution, of at least the best one's less ``w √(2 log((R - 1) / failure) / N)``
    with probability ``1 - failure`` (Hoeffding's inequality on the differences from the best; m queries take
    ``failure / m`` each). The paper's bound has 2 instead of R - 1, which is right for up to three responses only: it
    uses Hoeffding's inequality once for all responses and queries. The bound is given for the draws of ``dp.OPS()``
    where they are exact. Successive states of a chain are not independent, and how many independent ones they are
    worth is an estimate, so that for chains there are standard errors only. Neither counts how far the distribution
    of the draws (tempered, or given noise) is from the posterior given the rows.

    References
    ----------
    Dimitrakakis, Nelson, Zhang, Mitrokotsa, Rubinstein (2017), algorithm 2, lemma 11; Hoeffding (1963), theorem 2.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     p = pm.Uniform("p", 0.1, 0.9)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1, 0, 1]))
    >>> idata = dp.sample(20, epsilon=1.0, step=dp.OPS(), model=model, ledger=dp.Ledger(1.0), progressbar=False)
    >>> found = answer(idata, "squared_error", np.linspace(0, 1, 11), query="p", bounds=(-0.81, 0))
    >>> found.draws, round(found.regret, 2)
    (20, 0.59)
    """
    posterior, record = released_draws(idata)
    given, ends = _responses(responses), _bounds(bounds, utility)
    share = _validate.number("failure", failure)
    if not 0 < share < 1:
        raise ArgumentError(f"failure must lie in (0, 1), got {share}. Common values are 0.05 and 0.01.")
    values = _utilities(posterior, utility, given, query)
    _check(values, ends)
    means = values.mean(axis=(0, 1))
    place, count = int(np.argmax(means)), values.shape[0] * values.shape[1]
    source, independent = _source(record, count)
    return Answer(
        response=given[place],
        place=place,
        utility=float(means[place]),
        utilities=means,
        errors=_errors(values, place),
        regret=regret_bound(*ends, len(given), count, share) if ends and independent else None,
        failure=share,
        draws=count,
        source=source,
    )


def regret_bound(low: float, high: float, responses: int, draws: int, failure: float) -> float:
    """Return the largest loss of expected utility of the best response over independent draws, up to a failure.

    Examples
    --------
    >>> round(regret_bound(0, 1, 2, 200, 0.05), 4)
    0.1731
    """
    if responses == 1:
        return 0.0
    return (high - low) * min(1.0, math.sqrt(2 * math.log((responses - 1) / failure) / draws))


def _responses(responses: object) -> list[Any]:
    if not isinstance(responses, Iterable) or isinstance(responses, str | Mapping | set | frozenset):
        raise ArgumentError(f"responses must be a list or an array, got {_validate.shown(responses)}.")
    found = _validate.several("responses", responses)
    if not found:
        raise ArgumentError("responses must hold one response or more, got none.")
    return found


def _bounds(bounds: object, utility: object) -> tuple[float, float] | None:
    if bounds is None:
        return (0.0, 1.0) if utility == "zero_one" else None
    low, high = (_validate.number("each of bounds", end) for end in _validate.pair("bounds", bounds))
    if not low < high:
        raise ArgumentError(f"bounds must have low < high, got ({low:g}, {high:g}).")
    return low, high


def _utilities(posterior: xr.Dataset, utility: Any, responses: Sequence[Any], query: Query | None) -> Array:
    """Utility of every response at every draw: a (n_chains, n_draws, n_responses) array."""
    shape = (posterior.sizes["chain"], posterior.sizes["draw"], len(responses))
    if isinstance(utility, str):
        named = UTILITIES[_validate.choice("utility", utility, UTILITIES)]
        asked = _asked(posterior, query)
        try:
            columns = [named(asked, np.asarray(response)) for response in responses]
            return np.stack(columns, axis=1).reshape(shape).astype(np.float64)
        except (TypeError, ValueError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError(
                f"utility={utility!r} cannot compare a response with a query of shape {asked.shape[1:]} and dtype "
                f"{asked.dtype}. Give responses of that shape, or a function as the utility."
            ) from None
    if not callable(utility):
        raise ArgumentError(
            f"utility must be a function of a draw and a response, or a name, got {_validate.shown(utility)}."
        )
    if query is not None:
        raise ArgumentError("query= is for utilities by name. Leave it out: a function sees the whole draw.")
    try:
        found = np.array([[float(utility(draw, one)) for one in responses] for draw in _draws(posterior)])
    except TypeError as error:
        raise ArgumentError(f"utility must return a number for a draw and a response: {error}.") from error
    return found.reshape(shape)


def _asked(posterior: xr.Dataset, query: Query | None) -> Array:
    """What a query asks for at every draw: a (n, ...) array."""
    names = [str(name) for name in posterior.data_vars]
    if query is None and len(names) == 1:
        query = names[0]
    if isinstance(query, str):
        held = posterior[_validate.choice("query", query, names)].to_numpy()
        return held.reshape(-1, *held.shape[2:])
    if not callable(query):
        raise ArgumentError(
            f"query must be one of {', '.join(names)}, or a function of a draw, "
            f"got {_validate.shown(query)}: a utility by name "
            "compares responses with it."
        )
    return np.stack([np.asarray(query(draw)) for draw in _draws(posterior)])


def _draws(posterior: xr.Dataset) -> Iterable[dict[str, Array]]:
    held = {str(name): array.to_numpy() for name, array in posterior.data_vars.items()}
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in held.items()}
    for values in flat.values():  # of which draws are views: a function that writes into one would change the trace
        values.flags.writeable = False
    count = math.prod(posterior.sizes[dim] for dim in SAMPLE)
    return ({name: values[place] for name, values in flat.items()} for place in range(count))


def _check(values: Array, ends: tuple[float, float] | None) -> None:
    if not np.isfinite(values).all():
        raise ArgumentError(
            "The utility is NaN or infinite for some draw and response. Leave out responses that are impossible at "
            "some parameters, or write a utility with bounds."
        )
    if ends is not None and (values.min() < ends[0] or values.max() > ends[1]):
        raise ArgumentError(
            f"The utility reaches from {values.min():.6g} to {values.max():.6g}, outside of bounds={ends}. Give its "
            "least and largest value over all parameters, not only over the draws."
        )


def _source(record: Mapping[str, Any], count: int) -> tuple[str, bool]:
    """Say what the draws are, and whether they are independent draws from one distribution."""
    sampler = record.get("sampler")
    plural = "s" * (count != 1)
    if sampler is None:
        return f"{count} draw{plural} of a chain given released statistics", False
    if sampler["name"] == "OPS" and record["guarantee"] == "exact":
        return f"{count} independent draw{plural} from the posterior at {sampler['noise']}", True
    return f"{count} draw{plural} of {sampler['name']}, {sampler['noise']}, not independent", False


def _errors(values: Array, best: int) -> Array:
    """Standard errors of how far each response is behind the best."""
    import arviz as az

    behind = values[:, :, [best]] - values
    found = np.full(behind.shape[2], np.nan)
    for place in range(len(found)):
        if not np.ptp(behind[:, :, place]) > 0:
            found[place] = 0.0
        elif behind.shape[1] >= FEW:
            found[place] = float(az.mcse(behind[:, :, place]))
    return found


__all__ = ["Answer", "answer", "regret_bound"]
