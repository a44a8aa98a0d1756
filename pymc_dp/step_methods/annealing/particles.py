"""The log-likelihood at many places of the parameter space at once.

Exact draws from the prior, where every particle starts: they see no row.

What is made of the weights: indices, weights with noise, the log evidence with noise. Everything here is a release.

Along an increasing path from 0 to β a row x adds ``sum_j (β_j - β_{j-1}) l(x, θ_ij)`` to the log weight of particle i.
The steps add up to β and each ``l(x, θ) - l(x', θ)`` lies in an interval of length R whatever θ is, so that over
particles the log weights of two neighbours differ by an amount of range β R; and each of them by β Δl at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.accounting import DiscreteLaplaceEvent
from pymc_dp.before_kernel import LAPLACE
from pymc_dp.draws.finite_choice import choose
from pymc_dp.errors import PrivacyError, Problem
from pymc_dp.families.closed_form import Base
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.inspection.interpreted import plain_draw
from pymc_dp.inspection.numpy_functions import compiled
from pymc_dp.inspection.priors import OWN_TRANSFORM, priors_of
from pymc_dp.inspection.row_density import vectorized
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.rows.gate import private_values
from pymc_dp.rows.sums import row_integers
from pymc_dp.step_methods.annealing.price import WEIGHT_BITS
from pymc_dp.step_methods.gibbs.compiled import Call, Functions
from pymc_dp.step_methods.gibbs.likelihoods import Likelihoods
from pymc_dp.transforms.likelihood import ExactSums, TableLikelihood

HUGE = 1e300
BITS = 29
"""Of the constant of a row, as a whole number: those of 2^32 rows add up within 64 bits."""
Places = Mapping[str, Array]
"""Values of every free variable, places along the first axis."""


class LogLikelihood:
    """The sum of all rows' log-likelihoods, by exact sums.

    Parameters
    ----------
    likelihoods : Likelihoods
    functions : Functions
        Over the free variables of the same prior model.
    proved : mapping of str to RowRange
        What is proved of each observed variable; Δl is infinite where it is not charged.

    Attributes
    ----------
    charged : dict of str to RowRange
        The same, with the rounding of constants.
    """

    def __init__(self, likelihoods: Likelihoods, functions: Functions, proved: Mapping[str, RowRange]) -> None:
        self._functions = functions
        self._many = {
            symbol: pt.TensorType(symbol.type.dtype, (None, *symbol.type.shape))(f"{symbol.name}_places")
            for symbol in functions.symbols.values()
        }
        self._tables = [(table, self._of_table(table)) for table, _ in likelihoods.tables]
        self.charged = dict(proved)
        for table, _ in self._tables:
            room = 2 * _unit_of_constant(table)
            self.charged[table.name] = replace(proved[table.name], sensitivity=proved[table.name].sensitivity + room)

    def _of_table(self, table: TableLikelihood) -> Call:
        sums, sizes = pt.matrix(f"{table.name}_sums"), pt.vector(f"{table.name}_sizes")
        (graph,) = self._functions.over_values([table.logp(sums, sizes).sum()])
        return self._made(graph, [sums, sizes])

    def _made(self, graph: Variable, inputs: list[Variable]) -> Call:
        many = vectorized([graph], self._many)
        return self._functions.call(many, [*self._many.values(), *inputs], make=compiled)

    def at(self, places: Places, sums: Mapping[str, ExactSums]) -> Array:
        """Return one log-likelihood per place, up to `constant`: (n_places,) array. **Private**."""
        count = len(next(iter(places.values())))
        values = {f"{name}_places": np.asarray(held) for name, held in places.items()}
        total = np.zeros(count)
        with np.errstate(all="ignore"):
            for table, call in self._tables:
                held = {f"{table.name}_sums": sums[table.name].sums, f"{table.name}_sizes": sums[table.name].sizes}
                total += call({**values, **held})[0]
        return _numbers(total)

    def constant(self, sums: Mapping[str, ExactSums]) -> float:
        """Return what `at` leaves out of exact sums, which depends on no parameter. **Private**."""
        terms = [_constant(table, sums[table.name]) for table, _ in self._tables]
        return float(_numbers(np.array(sum(terms))))


def _numbers(values: Array) -> Array:
    """Whatever floats do with private values, nothing later may fail for it."""
    return np.nan_to_num(values, posinf=HUGE, neginf=-HUGE)


def _constant(table: TableLikelihood, sums: ExactSums) -> float:
    """Terms free of the parameters that sums leave out of all rows, as these are clamped. **Private**."""
    base, statistic = _base(table), table.statistic
    if not callable(base):
        assert base is not None
        return base * float(sums.sizes.sum())
    assert isinstance(statistic, BoundedMoments)
    steps = row_integers(statistic, np.asarray(private_values(table.observed.leaf), dtype=np.float64))[:, 0]
    unit = _unit_of_constant(table)
    each = np.rint(base(statistic.centre + statistic.unit * steps) / unit)
    return int(each.astype(np.int64).sum()) * unit


def _unit_of_constant(table: TableLikelihood) -> float:
    """Return what the constants of rows are whole multiples of; 0 where all rows have the same."""
    base, statistic = _base(table), table.statistic
    if not callable(base) or not isinstance(statistic, BoundedMoments):
        return 0.0
    ends = np.array([statistic.low, statistic.high])
    size = max(1.0, float(np.abs(base(ends)).max()))
    return 2.0 ** (math.frexp(size)[1] - BITS)


def _base(table: TableLikelihood) -> Base | None:
    form = table.family.closed_form
    return None if form is None else form.base


TRIALS = 2
REMEDY = "Use dp.TemperedGibbs(), which starts anywhere, or a prior that pm.draw draws from."


def prior_problems(prior_model: Model) -> list[Problem]:
    """Say what keeps the free variables of a prior model from being drawn one after the other."""
    problems = [
        Problem(
            where=str(potential.name),
            what="a Potential changes the prior, so that its draws are not known",
            remedy="Write it as a prior, or use dp.TemperedGibbs().",
        )
        for potential in prior_model.potentials
    ]
    problems += [
        Problem(
            where=prior.name,
            what="it has a transform set by hand, which may restrict its prior, so that its draws are not known",
            remedy="Leave the transform out, or use dp.TemperedGibbs().",
        )
        for prior in priors_of(prior_model)
        if prior.distribution.endswith(OWN_TRANSFORM)
    ]
    if problems:
        return problems
    try:
        plain_draw(list(prior_model.free_RVs), 0, TRIALS)
    except Exception as error:  # of any kind: distributions say in their own ways that they cannot be drawn
        what = f"its prior cannot be drawn ({type(error).__name__})"
        return [Problem(where="model", what=what, remedy=REMEDY)]
    return []


def prior_draws(
    prior_model: Model, ends: Mapping[str, tuple[Array, Array]], count: int, rng: np.random.Generator
) -> dict[str, Array]:
    """Draw all free variables from the prior `count` times: (count, ...) arrays by name.

    Parameters
    ----------
    prior_model : pymc.Model
    ends : mapping of str to (low, high)
        Public bounds of each, which everything that is paid for rests on.
    count : int
    rng : numpy.random.Generator
        Any: nothing here is private.

    Raises
    ------
    PrivacyError
        If a draw is outside of its bounds, as those of a prior truncated far out in its tail can be.
    """
    drawn = plain_draw(list(prior_model.free_RVs), rng, count)
    found = {str(rv.name): np.asarray(values) for rv, values in zip(prior_model.free_RVs, drawn, strict=True)}
    for name, values in found.items():
        low, high = ends[name]
        held = values.reshape(count, *low.shape)
        if not ((held >= low) & (held <= high)).all():
            raise PrivacyError(
                f"PyMC draws {name!r} outside of the bounds of its prior, which lie far out in its tail. {REMEDY}"
            )
        found[name] = held
    return found


MOST = 2**62
"""Units of a log evidence, that whole numbers of 64 bits hold it."""


def log_weights(likelihoods: Array, path: Array) -> Array:
    """Return the log weight of every particle. **Private**.

    Parameters
    ----------
    likelihoods : (n_particles, n_temperatures) array
        Log-likelihood of each particle before the transition at each temperature.
    path : (n_temperatures,) array
        Inverse temperatures that increase, without the prior's 0.

    References
    ----------
    Neal (2001), Annealed importance sampling, equation 9, doi 10.1023/A:1008923215028.
    """
    return likelihoods @ np.diff(path, prepend=0.0)


def chosen(rng: np.random.Generator, logs: Array, count: int) -> Array:
    """Draw `count` particles by their weights, one exponential mechanism each."""
    return choose(rng, np.broadcast_to(logs, (count, len(logs))))


def noised_weights(logs: Array, noise: DiscreteLaplaceEvent) -> Array:
    """Return normalised weights with discrete Laplace noise, projected to the simplex, which is post-processing."""
    weights = np.exp(logs - logs.max())
    units = np.floor(np.minimum(weights / weights.sum(), 1.0) * 2.0**WEIGHT_BITS).astype(np.int64)
    return on_the_simplex(LAPLACE.add(units, noise.scale) / 2.0**WEIGHT_BITS)


def log_evidence(logs: Array, constant: float, noise: DiscreteLaplaceEvent, unit: float) -> float:
    """Return the log of the mean weight with discrete Laplace noise, in whole units.

    The log of a mean of exponentials moves by no more than the largest of its terms does.

    Parameters
    ----------
    logs : (n_particles,) array
    constant : float
        What all log weights have in common.
    noise : DiscreteLaplaceEvent
    unit : float
        Power of 2.
    """
    top = logs.max()
    value = top + np.log(np.exp(logs - top).mean()) + constant
    units = np.array([int(np.clip(np.rint(np.nan_to_num(value) / unit), -MOST, MOST))], dtype=np.int64)
    return float(LAPLACE.add(units, noise.scale)[0]) * unit


def on_the_simplex(values: Array) -> Array:
    """Return the nearest point (Euclidean) with entries >= 0 that add up to 1.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer, Chandra (2008), figure 1, doi 10.1145/1390156.1390191.

    Examples
    --------
    >>> on_the_simplex(np.array([0.75, 0.75, -0.5])).tolist()
    [0.5, 0.5, 0.0]
    """
    ordered = np.sort(values)[::-1]
    over = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    kept = int(np.flatnonzero(ordered > over)[-1])
    return np.maximum(values - over[kept], 0.0)


__all__ = [
    "LogLikelihood",
    "Places",
    "chosen",
    "log_evidence",
    "log_weights",
    "noised_weights",
    "on_the_simplex",
    "prior_draws",
    "prior_problems",
]
