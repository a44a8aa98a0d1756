"""Privacy loss of a mechanism whose output densities are known: no sampling, so that a factor of 2 cannot hide."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from pymc_dp import _validate
from pymc_dp.accounting import Event, pure_epsilon, total_delta
from pymc_dp.errors import ArgumentError

Floats = npt.NDArray[np.float64]
LogDensity = Callable[[Floats], npt.ArrayLike]
NODES = 8
"""Gauss-Legendre nodes per panel and axis."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacyLoss:
    """The outputs of a mechanism on two data sets, and how well they can be distinguished.

    Attributes
    ----------
    log_p, log_q : (n_outcomes,) arrays
        Log-densities on each data set, -inf where an outcome cannot occur.
    weights : (n_outcomes,) array
        Quadrature weights; 1 for discrete outcomes; 0 for places that count for the supremum only.

    Examples
    --------
    >>> import numpy as np
    >>> loss = PrivacyLoss(log_p=np.log([0.75, 0.25]), log_q=np.log([0.25, 0.75]), weights=np.ones(2))
    >>> round(loss.epsilon, 4), loss.hockey_stick(0.0).tolist(), loss.renyi(2.0).round(4).tolist()
    (1.0986, [0.5], [0.8473])
    """

    log_p: Floats
    log_q: Floats
    weights: Floats

    @property
    def epsilon(self) -> float:
        """Supremum of the absolute log-ratio: the pure loss; inf where one side cannot produce an outcome."""
        return float(max(self._ratios(self.log_p, self.log_q).max(), self._ratios(self.log_q, self.log_p).max()))

    def hockey_stick(self, epsilons: npt.ArrayLike) -> Floats:
        """Return the least δ at each ε: the larger of ∫ max(0, p - e^ε q) and ∫ max(0, q - e^ε p)."""
        p, q, places = self.log_p, self.log_q, np.atleast_1d(np.asarray(epsilons, dtype=float))
        return np.array([max(self._excess(p, q, epsilon), self._excess(q, p, epsilon)) for epsilon in places])

    def renyi(self, orders: npt.ArrayLike) -> Floats:
        """Return the Rényi divergence of each order > 1, the larger of both directions."""
        found = []
        for order in np.atleast_1d(np.asarray(orders, dtype=float)):
            if order <= 1:
                raise ArgumentError(f"Rényi orders must be > 1, got {order}.")
            found.append(max(self._moment(self.log_p, self.log_q, order), self._moment(self.log_q, self.log_p, order)))
        return np.array(found)

    def _ratios(self, top: Floats, bottom: Floats) -> Floats:
        possible = np.isfinite(top)
        return np.asarray(top[possible] - bottom[possible])

    def _excess(self, top: Floats, bottom: Floats, epsilon: float) -> float:
        held = np.isfinite(top)
        loss = epsilon - (top[held] - bottom[held])
        gain = np.where(loss < 0, -np.expm1(np.minimum(loss, 0.0)), 0.0)
        return math.fsum(self.weights[held] * np.exp(top[held]) * gain)

    def _moment(self, top: Floats, bottom: Floats, order: float) -> float:
        held = np.isfinite(top) & (self.weights > 0)
        if np.isneginf(bottom[held]).any():
            return math.inf
        exponents = order * top[held] - (order - 1) * bottom[held] + np.log(self.weights[held])
        return float(np.logaddexp.reduce(exponents) / (order - 1))


def privacy_loss(
    log_p: npt.ArrayLike, log_q: npt.ArrayLike, weights: npt.ArrayLike = 1.0, *, tolerance: float = 1e-6
) -> PrivacyLoss:
    """Return the privacy loss between two output distributions given on common outcomes.

    Parameters
    ----------
    log_p, log_q : (n_outcomes,) arrays
        Log-probabilities of discrete outcomes, or log-densities at quadrature nodes; -inf where an outcome cannot be.
    weights : (n_outcomes,) array or float
        Quadrature weights; 1 for discrete outcomes.
    tolerance : float
        Largest deviation of either total mass from 1; outcomes left out would make the loss look small.

    Raises
    ------
    ArgumentError
        For NaN, +inf, unequal lengths, negative weights, or masses that are not 1.

    Notes
    -----
    **Guarantee.** None: it says what the two distributions given are, not whether the mechanism has them, nor anything
    about other data sets.

    Examples
    --------
    Randomised response that tells the truth with probability 3/4 costs log 3:

    >>> import numpy as np
    >>> loss = privacy_loss(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
    >>> round(loss.epsilon, 4), loss.hockey_stick([0.0, 1.2]).round(4).tolist()
    (1.0986, [0.5, 0.0])
    """
    p, q = np.asarray(log_p, dtype=float).ravel(), np.asarray(log_q, dtype=float).ravel()
    if p.shape != q.shape:
        raise ArgumentError(f"log_p and log_q have lengths {len(p)} and {len(q)}. Give both on the same outcomes.")
    try:
        held = np.broadcast_to(np.asarray(weights, dtype=float), p.shape)
    except ValueError:
        raise ArgumentError(f"weights must be one number, or one per outcome ({len(p)}).") from None
    for name, values in (("log_p", p), ("log_q", q)):
        if np.isnan(values).any() or np.isposinf(values).any():
            place = int(np.argmax(~(values < np.inf)))
            raise ArgumentError(f"{name} must hold numbers or -inf, got NaN or +inf at outcome {place}.")
    if (held < 0).any() or not np.isfinite(held).all():
        raise ArgumentError("weights must be finite and >= 0.")
    for name, values in (("log_p", p), ("log_q", q)):
        mass = math.fsum(held * np.exp(values))
        if abs(mass - 1) > tolerance:
            raise ArgumentError(f"{name} has mass {mass:.9g}, not 1. Give all outcomes that matter, or a finer grid.")
    return PrivacyLoss(log_p=p, log_q=q, weights=held)


def product(*losses: PrivacyLoss) -> PrivacyLoss:
    """Return the loss of several independent outputs together.

    Outcomes of one log-ratio (to 12 decimals) are merged, which changes none of the numbers of `PrivacyLoss`.

    Examples
    --------
    >>> import numpy as np
    >>> one = privacy_loss(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
    >>> round(product(one, one, one).epsilon, 4)
    3.2958
    """
    result = PrivacyLoss(log_p=np.zeros(1), log_q=np.zeros(1), weights=np.ones(1))
    for loss in map(_merged, losses):
        log_p = np.add.outer(result.log_p, loss.log_p).ravel()
        log_q = np.add.outer(result.log_q, loss.log_q).ravel()
        weights = np.multiply.outer(result.weights, loss.weights).ravel()
        result = _merged(PrivacyLoss(log_p=log_p, log_q=log_q, weights=weights))
    return result


def _merged(loss: PrivacyLoss) -> PrivacyLoss:
    """Add up the masses of outcomes that have one log-ratio; what has no mass counts for the supremum and is kept."""
    possible = np.isfinite(loss.log_p) | np.isfinite(loss.log_q)
    log_p, log_q, weights = loss.log_p[possible], loss.log_q[possible], loss.weights[possible]
    ratios, place = np.unique(np.round(log_p - log_q, 12), return_inverse=True)
    heights = np.full(len(ratios), -np.inf)
    np.maximum.at(heights, place, np.maximum(log_p, log_q))
    # One outcome of the greatest density stands for all, with their mass in its weight.
    mass = np.bincount(place, weights * np.exp(np.maximum(log_p, log_q) - heights[place]), minlength=len(ratios))
    return PrivacyLoss(
        log_p=heights + np.minimum(ratios, 0.0), log_q=heights - np.maximum(ratios, 0.0), weights=mass
    )  # fmt: skip


def density_loss(
    log_p: LogDensity, log_q: LogDensity, bounds: Sequence[tuple[float, float]], *,
    panels: int | None = None, normalise: bool = False, tolerance: float = 1e-4,
) -> PrivacyLoss:  # fmt: skip
    """Return the privacy loss between two densities of one or two dimensions, by Gauss-Legendre quadrature.

    Parameters
    ----------
    log_p, log_q : callable
        Log-density on each data set at an (n, d) array of points.
    bounds : sequence of (low, high), one or two of them
        The box that holds all the mass.
    panels : int, optional
        Panels per axis, of 8 nodes each; default 2048 in one dimension, 64 in two. Ratios are also looked at on the
        edges of the panels, corners included.
    normalise : bool
        Whether the densities are known up to a constant each.
    tolerance : float
        Refinement check: with half as many panels, the pure loss (relative), the masses and the hockey-sticks at ten ε
        must agree to this.

    Raises
    ------
    ArgumentError
        If the check fails: more panels are needed, or the box leaves out mass.

    Notes
    -----
    **Guarantee.** None, see `privacy_loss`.

    Examples
    --------
    Laplace noise of scale 1 on a count that moves by 1:

    >>> import numpy as np
    >>> loss = density_loss(lambda x: -abs(x[:, 0]), lambda x: -abs(x[:, 0] - 1), [(-31, 33)], normalise=True)
    >>> round(loss.epsilon, 6)
    1.0
    """
    box = [(_validate.number("low", low), _validate.number("high", high)) for low, high in bounds]
    if len(box) not in (1, 2) or any(low >= high for low, high in box):
        raise ArgumentError(f"bounds must be one or two pairs (low, high) with low < high, got {box}.")
    panels = _validate.integer("panels", panels if panels is not None else 2048 if len(box) == 1 else 64, 2)
    fine, coarse = (_on_grid(log_p, log_q, box, count, normalise, tolerance) for count in (panels, panels // 2))
    epsilons = np.linspace(0, fine.epsilon if math.isfinite(fine.epsilon) else 5.0, 10)
    change = float(np.abs(fine.hockey_stick(epsilons) - coarse.hockey_stick(epsilons)).max())
    if math.isfinite(fine.epsilon):
        change = max(change, abs(fine.epsilon - coarse.epsilon) / max(fine.epsilon, 1.0))
    elif math.isfinite(coarse.epsilon):
        change = math.inf
    if change > tolerance:
        raise ArgumentError(
            f"Halving the {panels} panels moved the loss by {change:.2g}, more than {tolerance:g}. Give more panels or "
            "tighter bounds."
        )
    return fine


def _on_grid(
    log_p: LogDensity,
    log_q: LogDensity,
    box: Sequence[tuple[float, float]],
    panels: int,
    normalise: bool,
    tolerance: float,
) -> PrivacyLoss:
    nodes, node_weights = np.polynomial.legendre.leggauss(NODES)
    points, weights = [], []
    for low, high in box:
        edges = np.linspace(low, high, panels + 1)
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        inner = (middle[:, None] + half[:, None] * nodes).ravel()
        points.append(np.concatenate([inner, edges]))
        weights.append(np.concatenate([(half[:, None] * node_weights).ravel(), np.zeros(panels + 1)]))
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*points, indexing="ij")], axis=1)
    weight = weights[0] if len(box) == 1 else np.multiply.outer(*weights).ravel()
    values = []
    for log_density in (log_p, log_q):
        held = np.asarray(log_density(grid), dtype=float)
        if normalise:
            inside = weight > 0
            held = held - np.logaddexp.reduce(held[inside] + np.log(weight[inside]))
        values.append(held)
    return privacy_loss(values[0], values[1], weight, tolerance=tolerance)


@final
@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A measured loss beside what an accountant claims for an event.

    Attributes
    ----------
    epsilons, measured, claimed : tuple of float
        δ measured and claimed at each ε.
    measured_epsilon, claimed_epsilon : float
        Pure losses.
    slack : float
        Share by which a measured number may exceed the claim: the error of the measurement.

    Examples
    --------
    >>> found = Comparison(
    ...     epsilons=(1.0,), measured=(0.2,), claimed=(0.1,), measured_epsilon=1.2, claimed_epsilon=1.5, slack=1e-6
    ... )
    >>> found.passed, found.violations
    (False, ('at ε = 1 the true δ is 0.2, but 0.1 is claimed',))
    """

    epsilons: tuple[float, ...]
    measured: tuple[float, ...]
    claimed: tuple[float, ...]
    measured_epsilon: float
    claimed_epsilon: float
    slack: float

    @property
    def violations(self) -> tuple[str, ...]:
        """Every claim that the measurement exceeds."""
        found = [
            f"at ε = {epsilon:g} the true δ is {measured:.6g}, but {claimed:.6g} is claimed"
            for epsilon, measured, claimed in zip(self.epsilons, self.measured, self.claimed, strict=True)
            if measured > claimed * (1 + self.slack) + self.slack**2
        ]
        if self.measured_epsilon > self.claimed_epsilon * (1 + self.slack):
            found.append(f"the pure loss is {self.measured_epsilon:.6g}, but {self.claimed_epsilon:.6g} is claimed")
        return tuple(found)

    @property
    def passed(self) -> bool:
        """Whether no claim is exceeded."""
        return not self.violations

    def report(self) -> str:
        """Return the finding in plain words."""
        if self.passed:
            head = f"no violation found at {len(self.epsilons)} values of ε and in the pure loss"
            return f"{head}. This is not a proof: only this pair of output distributions was looked at."
        return "claim disproved: " + "; ".join(self.violations)


def compare_with_event(
    loss: PrivacyLoss, event: Event, epsilons: Sequence[float] = (), *, slack: float = 1e-6
) -> Comparison:
    """Check that what the accountants claim for an event is not below a measured loss.

    Parameters
    ----------
    loss : PrivacyLoss
        Between the outputs on two neighbouring data sets.
    event : Event
        What the ledger is charged for the mechanism.
    epsilons : sequence of float, optional
        Where to compare δ, each > 0. Default: ten values below the measured pure loss.
    slack : float
        Relative error of the measurement that is forgiven.

    Notes
    -----
    **Guarantee.** None: one pair of data sets, one measurement. A violation is a flaw of the event or the accountant.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_dp.accounting import PureEvent
    >>> loss = privacy_loss(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
    >>> compare_with_event(loss, PureEvent(epsilon=1.1)).passed
    True
    >>> print(compare_with_event(loss, PureEvent(epsilon=1.0), [1.0]).report())
    claim disproved: at ε = 1 the true δ is 0.0704295, but 0 is claimed; the pure loss is 1.09861, but 1 is claimed
    """
    top = loss.epsilon if math.isfinite(loss.epsilon) else 5.0
    places = tuple(float(e) for e in epsilons) or tuple(np.linspace(0, top, 12)[1:-1].tolist() if top > 0 else ())
    return Comparison(
        epsilons=places, measured=tuple(loss.hockey_stick(places).tolist()) if places else (),
        claimed=tuple(total_delta(event, epsilon) for epsilon in places),
        measured_epsilon=loss.epsilon, claimed_epsilon=pure_epsilon(event), slack=slack,
    )  # fmt: skip
