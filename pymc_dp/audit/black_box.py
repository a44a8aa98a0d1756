"""Trying to disprove a claimed (ε, δ) by running a mechanism on neighbouring data sets and counting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, final

import numpy as np

from pymc_dp import _validate
from pymc_dp._progress import Advance, progress
from pymc_dp.audit.confidence import clopper_pearson, epsilon_bound
from pymc_dp.audit.outputs import (
    Array,
    Columns,
    Floats,
    OutputEvent,
    Raised,
    Score,
    learn_scores,
    tabulate,
    thresholds,
    user_scores,
)
from pymc_dp.errors import ArgumentError

NO_PROOF = (
    "This is not a proof: only these data sets were tried, and rare outputs, other neighbours, running time and the "
    "low bits of floats were not."
)
_STEP = 500
MOST_NATS = 700.0
"""Of which floats hold the exponential."""


@final
@dataclass(frozen=True, kw_only=True)
class Audit:
    """What `audit` found.

    Attributes
    ----------
    epsilon_claimed, delta : float
        The claim.
    epsilon_lower : float
        The true ε at `delta` is at least this, with probability `confidence`.
    delta_lower : float
        The true δ at `epsilon_claimed` is at least this, with probability `confidence`.
    passed : bool
        Whether the claim was not disproved.
    event : str
        The event that distinguished the data sets best.
    pair : int
        Index of the pair of data sets that it distinguished.
    frequent_in : {"data", "neighbour"}
        The side on which the event is the more frequent.
    counts : tuple of int
        How often it occurred, on that side and on the other, in `tested_runs` fresh runs of each.
    runs : int
        Runs on each data set, those that chose the event included.
    tested_runs : int
        Fresh runs on each data set, which had no part in the choice.
    bounds : int
        Number of confidence bounds that share the failure probability (Bonferroni).
    confidence : float

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> def half_of_the_noise(rows, n):
    ...     return sum(rows) + rng.laplace(scale=0.5, size=n)
    >>> found = audit(half_of_the_noise, [0, 0], [0, 1], epsilon=1, vectorised=True, progressbar=False)
    >>> found.passed, found.epsilon_lower > 1.5
    (False, True)
    """

    epsilon_claimed: float
    delta: float
    epsilon_lower: float
    delta_lower: float
    passed: bool
    event: str
    pair: int
    frequent_in: str
    counts: tuple[int, int]
    runs: int
    tested_runs: int
    bounds: int
    confidence: float

    def report(self) -> str:
        """Return the finding in plain words."""
        claim = f"ε = {self.epsilon_claimed:g}" + (f", δ = {self.delta:g}" if self.delta else "")
        other = "neighbour" if self.frequent_in == "data" else "data"
        where = f" of pair {self.pair}" if self.pair else ""
        seen = (
            f"Event: {self.event}. It occurred {self.counts[0]} times in {self.tested_runs} runs on the "
            f"{self.frequent_in}{where} and {self.counts[1]} times on the {other}; "
            "the runs that chose it are not counted."
        )
        if self.passed:
            head = f"no violation found: the claim {claim} stands; these runs show ε >= {self.epsilon_lower:.3g}"
            return f"{head} (confidence {self.confidence:g}).\n{seen}\n{NO_PROOF}"
        head = f"claim disproved: {claim} was claimed, but ε >= {self.epsilon_lower:.3g}"
        return f"{head} (confidence {self.confidence:g}).\n{seen}"

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        verdict = "no violation found (no proof)" if self.passed else "claim disproved"
        numbers = f"ε claimed {self.epsilon_claimed:g}, at least {self.epsilon_lower:.3g}"
        return f"<Audit: {verdict}; {numbers}; {self.runs} runs on each data set>"


def audit(
    mechanism: Callable[..., Any],
    data: Any = None,
    neighbour: Any = None,
    *,
    epsilon: float,
    delta: float = 0.0,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    runs: int = 20_000,
    events: Mapping[str, Callable[[Any], bool]] | Sequence[Callable[[Any], bool]] | None = None,
    confidence: float = 0.999,
    vectorised: bool = False,
    progressbar: bool = True,
) -> Audit:
    """Try to disprove the claim that a mechanism is (ε, δ)-differentially private.

    Half of the runs look for the event that tells two neighbouring data sets apart best; the other half, fresh, count
    how often it occurs on each. A right mechanism is accused with probability at most ``1 - confidence``.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data)`` returns one output: a number, text, array, dict, list or dataclass. An exception is an
        output too (its type and text). With ``vectorised=True``, ``mechanism(data, n)`` returns `n` outputs of
        independent runs.
    data, neighbour : object
        Two data sets that differ in one row. Use made-up ones: the report describes outputs, and running the mechanism
        on real rows costs privacy. Adversarial ones find most: all rows equal, and one moved from one bound to another.
    epsilon : float
        Claimed privacy loss, > 0.
    delta : float
        Claimed failure probability.
    pairs : iterable of (data, neighbour), optional
        Several pairs instead of `data` and `neighbour`; they share the error probability (Bonferroni).
    runs : int
        Runs on each data set of each pair, >= 100. 20 000 find noise that is 20% short at ε = 1.
    events : mapping of name to callable, or sequence of callables, optional
        Your own events ``event(output) -> bool`` in place of those that the audit makes.
    confidence : float
        Probability, at least, with which `epsilon_lower` is true.
    vectorised : bool
        Whether `mechanism` takes a number of runs as its second argument.
    progressbar : bool

    Returns
    -------
    Audit

    Raises
    ------
    ArgumentError
        For arguments out of range; if the mechanism failed in every run; if its outputs cannot be compared.

    Notes
    -----
    **Guarantee.** None: a pass is no proof. It found no violation on these data sets, with these events. Runs must be
    independent: a mechanism that keeps a state between runs is not what is tested. A violation found is one, with
    probability `confidence`.

    Bounds are Clopper-Pearson's, one for each side of each of the two directions and of each pair.

    References
    ----------
    Ding, Wang, Wang, Zhang, Kifer (2018), doi:10.1145/3243734.3243818; Jagielski, Ullman, Oprea (2020),
    arXiv:2006.07709.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> def noisy_sum(rows, n):
    ...     return sum(rows) + rng.laplace(scale=1 / 2, size=n)  # meant to be ε = 1 for rows in [0, 1]
    >>> print(audit(noisy_sum, [0, 0, 0], [0, 0, 1], epsilon=1, vectorised=True, progressbar=False))
    claim disproved: ε = 1 was claimed, but ε >= ... (confidence 0.999).
    Event: ...
    """
    claimed, loss = _validate.epsilon(epsilon), _validate.delta(delta)
    runs = _validate.integer("runs", runs, 100, 2**32)
    confidence = _validate.number("confidence", confidence)
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence must lie in (0, 1), got {confidence}. Use 0.999.")
    for name, value in (("vectorised", vectorised), ("progressbar", progressbar)):
        _validate.flag(name, value)
    _validate.function("mechanism", mechanism)
    given = _pairs(data, neighbour, pairs)
    own = None if events is None else user_scores(events)
    if own is not None and not own:
        raise ArgumentError("events is empty. Leave it out, and the audit looks for events itself.")
    bounds = 4 * len(given)
    alpha = (1 - confidence) / bounds
    with progress(progressbar, "audit", 2 * runs * len(given)) as advance:
        draw = _Drawer(mechanism, vectorised, advance)
        found = [_audit_pair(draw, pair, place, own, runs, loss, alpha) for place, pair in enumerate(given)]
    best = max(chain(*found), key=lambda test: _lower(test, loss, alpha))
    epsilon_lower = _lower(best, loss, alpha)
    if all(draw.failed) and epsilon_lower <= claimed:
        raise ArgumentError(
            f"The mechanism raised an error in every run ({draw.first}). Call mechanism(data{', 10' * vectorised}) by "
            "hand and repair it."
        )
    deltas = [
        float(p - math.exp(min(claimed, MOST_NATS)) * q) for p, q in (_sides(test, alpha) for test in chain(*found))
    ]
    return Audit(
        epsilon_claimed=claimed, delta=loss, epsilon_lower=epsilon_lower, delta_lower=max(0.0, *deltas),
        passed=epsilon_lower <= claimed, event=str(best.event), pair=best.pair, frequent_in=best.frequent_in,
        counts=best.counts, runs=runs, tested_runs=best.runs, bounds=bounds, confidence=confidence,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Test:
    event: OutputEvent
    pair: int
    frequent_in: str
    counts: tuple[int, int]
    runs: int


class _Drawer:
    """Runs the mechanism, and takes what it raises for an output."""

    def __init__(self, mechanism: Callable[..., Any], vectorised: bool, advance: Advance) -> None:
        self.mechanism, self.vectorised, self.advance = mechanism, vectorised, advance
        self.failed: list[bool] = []
        self.first = ""

    def __call__(self, data: Any, runs: int) -> Columns:
        if self.vectorised:
            outputs = self._try(data, runs)
            if isinstance(outputs, Raised):
                outputs = [outputs] * runs
            if not hasattr(outputs, "__len__"):
                raise ArgumentError(
                    f"mechanism(data, {runs}) must return {runs} outputs, got {type(outputs).__name__}."
                )
            if len(outputs) != runs:
                raise ArgumentError(
                    f"mechanism(data, {runs}) returned {len(outputs)} outputs. Return one per run, on the first axis."
                )
            self.advance(runs)
        else:
            outputs = list(self._one_by_one(data, runs))
        columns = tabulate(outputs)
        self.failed.append(all(isinstance(output, Raised) for output in columns.raw))
        return columns

    def _one_by_one(self, data: Any, runs: int) -> Iterator[Any]:
        for run in range(runs):
            yield self._try(data)
            if (run + 1) % _STEP == 0 or run + 1 == runs:
                self.advance(run % _STEP + 1)

    def _try(self, *arguments: Any) -> Any:
        try:
            return self.mechanism(*arguments)
        except Exception as error:
            self.first = self.first or type(error).__name__
            return Raised(kind=type(error).__name__, text=str(error))


def _pairs(data: Any, neighbour: Any, pairs: Iterable[tuple[Any, Any]] | None) -> list[tuple[Any, Any]]:
    if pairs is None:
        if data is None or neighbour is None:
            raise ArgumentError("Give two neighbouring data sets (data, neighbour), or several pairs of them (pairs=).")
        return [(data, neighbour)]
    if data is not None or neighbour is not None:
        raise ArgumentError("Give data and neighbour, or pairs, not both.")
    try:
        given = [(first, second) for first, second in pairs]
    except (TypeError, ValueError):
        raise ArgumentError("Each of pairs must be (data, neighbour).") from None
    if not given:
        raise ArgumentError("pairs is empty. Give one pair (data, neighbour) or more.")
    return given


def _audit_pair(
    draw: _Drawer, pair: tuple[Any, Any], place: int, own: Sequence[Score] | None, runs: int, delta: float, alpha: float
) -> list[_Test]:
    """Learn scores on a quarter of the runs, choose an event in each direction on the next, count it on the rest."""
    quarter = runs // 4
    learn, choose, fresh = ([draw(side, n) for side in pair] for n in (quarter, quarter, runs - 2 * quarter))
    scores = own if own is not None else learn_scores(*learn)
    sides = ("data", "neighbour")
    tests = []
    for first, second in ((0, 1), (1, 0)):
        event = _best_event(scores, (learn[first], learn[second]), (choose[first], choose[second]), delta, alpha)
        counts = (event.count(fresh[first]), event.count(fresh[second]))
        tests.append(_Test(event=event, pair=place, frequent_in=sides[first], counts=counts, runs=fresh[0].runs))
    return tests


def _best_event(
    scores: Sequence[Score], learn: tuple[Columns, Columns], choose: tuple[Columns, Columns], delta: float, alpha: float
) -> OutputEvent:
    """Return the event with the greatest lower bound of ε on the runs that choose; rare ones bound little."""
    runs = choose[0].runs
    best, event = -math.inf, None
    for score in scores:
        cuts = thresholds(np.concatenate([score.of(columns) for columns in learn]))
        below, above = zip(*(_tails(score.of(columns), cuts) for columns in choose), strict=True)
        for is_above, (p, q) in ((True, above), (False, below)):
            low, high = clopper_pearson(p, runs, alpha)[0], clopper_pearson(q, runs, alpha)[1]
            # Where no event bounds anything, the greatest difference decides.
            merit = epsilon_bound(low, high, delta) + 1e-6 * (p - q) / runs
            if len(cuts) and merit.max() > best:
                place = int(np.argmax(merit))
                best = float(merit[place])
                event = OutputEvent(score=score, threshold=float(cuts[place]), above=is_above)
    anything = Score(text="{any output}", of=lambda columns: np.ones(columns.runs))
    return event or OutputEvent(score=anything, threshold=0.5, above=True)


def _tails(values: Floats, cuts: Floats) -> tuple[Array, Array]:
    """Return how many values are <= and >= each cut; NaN is neither."""
    held = np.sort(values[~np.isnan(values)])
    return np.searchsorted(held, cuts, side="right"), len(held) - np.searchsorted(held, cuts, side="left")


def _sides(test: _Test, alpha: float) -> tuple[float, float]:
    low, _ = clopper_pearson(test.counts[0], test.runs, alpha)
    _, high = clopper_pearson(test.counts[1], test.runs, alpha)
    return float(low), float(high)


def _lower(test: _Test, delta: float, alpha: float) -> float:
    return float(epsilon_bound(*_sides(test, alpha), delta))
