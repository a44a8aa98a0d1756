"""Renyi differential privacy: divergences of one order add; each order gives a bound, and the least is taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, singledispatch

import numpy as np

from pymc_dp.accounting import accept_bit, pld, zcdp
from pymc_dp.accounting._exact import decimal, float_up
from pymc_dp.accounting._search import least_on_grid
from pymc_dp.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    PenaltyBitEvent,
    PureEvent,
    SubsampledGaussianEvent,
    ZCDPEvent,
    leaves,
    refuse,
)
from pymc_dp.accounting.subsampled import few_kinds

# Every order gives a valid bound, so their choice steers only how close the best of them comes.
ORDERS = (
    *(1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 9.0, 10.0, 11.0, 12.0),
    *(14.0, 16.0, 18.0, 20.0, 22.0, 25.0, 28.0, 31.0, 35.0, 39.0, 44.0, 49.0, 55.0, 62.0, 70.0, 78.0, 88.0, 99.0),
    *(111.0, 125.0, 140.0, 157.0, 176.0, 200.0, 225.0, 256.0, 320.0, 400.0, 512.0, 700.0, 1024.0, 2048.0, 4096.0),
)
_ROUNDING = 1e-14


@singledispatch
def exact(event: object, order: float) -> float:
    """Return the Renyi divergence of an elementary event at one `order` > 1, or inf where only its zCDP is known."""
    refuse(event, "The Renyi accountant")


@exact.register
def _(event: PureEvent, order: float) -> float:
    return _of_pair(pld.Pair(decimal(event.epsilon), 1), order)


@exact.register
def _(event: DiscreteLaplaceEvent, order: float) -> float:
    return sum(_of_pair(pair, order) for pair in pld.pairs(event) or ())


@exact.register
def _(event: BoundedRangeEvent, order: float) -> float:
    """Return the largest divergence of two distributions whose loss lies in an interval of length eta.

    With the loss L in [t - eta, t] and E_Q[e^L] = 1, E_Q[e^(aL)] is largest with all mass on the two ends, since x^a is
    convex: e^((a-1)t) (A - e^t B) / (1 - e^-eta), where A = 1 - e^(-a eta), B = e^-eta - e^(-a eta). Over t that is
    largest at e^t = (a-1) A / (a B).
    """
    eta, a = event.eta, order
    if (a - 1) * eta < 1e-9:
        return math.inf  # zCDP's a eta^2 / 8 is as good there, and has no differences of nearly equal numbers
    log_a = math.log(-math.expm1(-a * eta))
    log_b = -eta + math.log(-math.expm1(-(a - 1) * eta))
    t = math.log((a - 1) / a) + log_a - log_b
    rest = log_a - math.log(a) - math.log(-math.expm1(-eta))
    return t + rest / (a - 1) + 10 * _ROUNDING * (abs(t) + (1 + abs(log_a) + abs(rest) + math.log(a)) / (a - 1))


@exact.register
def _(event: SubsampledGaussianEvent, order: float) -> float:
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    if event.rate == 1:
        return math.inf  # all rows: the Gaussian's own curve
    if event.sampling == "poisson" and event.neighbours == "replace":
        return _of_opposite_shifts(event, order)
    if order != int(order):
        # (a-1) D_a is convex in a, and 0 at 1 (Wang, Balle, Kasiviswanathan 2019, corollary 10).
        low, high = (float(math.floor(order)), float(math.ceil(order)))
        share = order - low
        below = (1 - share) * (low - 1) * leaf_divergence(event, low) if low > 1 else 0.0
        return (below + share * (high - 1) * leaf_divergence(event, high)) / (order - 1) * (1 + _ROUNDING)
    # Theirs is std / sensitivity under both relations. Above 1e4 they lose digits; less noise costs more.
    gaussian = dp_event.GaussianDpEvent(min(event.whole.noise_multiplier, 1e4))
    if event.sampling == "without_replacement":
        theirs = dp_event.SampledWithoutReplacementDpEvent(event.population, event.batch_size, gaussian)
        relation = NeighboringRelation.REPLACE_ONE
    else:
        theirs = dp_event.PoissonSampledDpEvent(event.rate, gaussian)
        relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    divergence = float(RdpAccountant([order], relation).compose(theirs).rdp[0])
    # They sum up to order + 1 terms made of log-gamma functions, which together are near 1 where little is lost; and
    # without replacement lose digits of 1 - e^-D in a term of size (rate order)^2.
    slack = 1e-15 * (20 + 4 * math.lgamma(order + 2) + (event.rate * order) ** 2) / (order - 1)
    return math.inf if math.isnan(divergence) else max(divergence, 0.0) * (1 + 1e-9) + slack


@exact.register
def _(event: PenaltyBitEvent, order: float) -> float:
    return accept_bit.divergence(event.ratio, event.most_noise, order)


@exact.register(ZCDPEvent)
@exact.register(DiscreteGaussianEvent)
@exact.register(GaussianEvent)
@exact.register(GDPEvent)
@exact.register(ApproximateEvent)
def _(event: Event, order: float) -> float:
    return math.inf


def _of_pair(pair: pld.Pair, order: float) -> float:
    """Return log sum P^a Q^(1-a) / (a-1) over the atoms of a pair."""
    if pair.unit * pair.shift > 100:
        return math.inf
    pair = pld.coarse(pair)
    losses, masses = pld.atoms(pair)
    logs = (order - 1) * float(pair.unit) * losses
    largest = float(logs.max())
    total = largest + math.log(float(masses @ np.exp(logs - largest)))
    return (total + 10 * _ROUNDING * (1 + abs(largest))) / (order - 1)


def _of_opposite_shifts(event: SubsampledGaussianEvent, order: float) -> float:
    """Return the divergence of a Poisson batch under replace, by the trapezoidal rule on the dominating pair.

    In units of the clip norm the pair is (1-q) N(0, s^2) + q N(1, s^2) against (1-q) N(0, s^2) + q N(-1, s^2) (Lebeda,
    Regehr, Kamath, Steinke 2024), which is its own mirror image. The integrand is analytic in a strip of half-width
    y = s^2 / sqrt(a), where it grows by a constant only, so that the rule errs by e^(-2 pi y / step) (Trefethen,
    Weideman 2014, theorem 5.1).
    """
    s, q = event.noise_multiplier, event.rate
    # P^a Q^(1-a) peaks within 2a - 1: it is a mixture of about N(k, s^2), 1 - a <= k <= a, where Q is near N(0, s^2),
    # and near N(2a - 1, s^2) where nearly every row is in the batch and Q near N(-1, s^2).
    reach = 2 * order + 40 * s
    step = min(s / 16, 0.15 * s**2 / math.sqrt(order))
    if 2 * reach / step > 2**18:
        return math.inf
    x = np.arange(-reach, reach + step, step)
    stay, out, back = np.log1p(-q), np.log(q) + (x - 0.5) / s**2, np.log(q) + (-x - 0.5) / s**2
    logs = order * np.logaddexp(stay, out) + (1 - order) * np.logaddexp(stay, back) - x**2 / (2 * s**2)
    largest = float(logs.max())
    total = largest + math.log(float(np.exp(logs - largest).sum())) + math.log(step / (s * math.sqrt(2 * math.pi)))
    return (max(total, 0.0) + 1e-12 * (1 + abs(largest))) / (order - 1)


@lru_cache(maxsize=4096)
def leaf_divergence(leaf: Event, order: float) -> float:
    """Return the Renyi divergence of an elementary event, never above order times its rho."""
    rho = zcdp.rate(leaf)
    concentrated = math.inf if rho is None else order * float_up(rho) * (1 + _ROUNDING)
    return min(exact(leaf, order), concentrated)


def divergence(event: Event, order: float) -> float:
    """Return a bound on the Renyi divergence of `event` at `order` > 1 (composition: Mironov 2017, proposition 1).

    Examples
    --------
    >>> divergence(GaussianEvent(noise_multiplier=1.0), 4.0) >= 2.0
    True
    """
    return _sum(few_kinds(leaves(event)), order)


def epsilon_of(divergence: float, order: float, delta: float) -> float:
    """Return an epsilon at which a Renyi `divergence` at `order` is (epsilon, `delta`)-DP, rounded up.

    Canonne, Kamath, Steinke 2020, proposition 12.
    """
    if delta <= 0 or not math.isfinite(divergence):
        return math.inf
    x = order - 1
    terms = (divergence, -math.log(delta) / x, -math.log(order) / x, -math.log1p(1 / x))
    return max(0.0, math.fsum(terms) + _ROUNDING * sum(map(abs, terms)))


def delta_of(divergence: float, order: float, epsilon: float) -> float:
    """Return a delta at which a Renyi `divergence` at `order` is (`epsilon`, delta)-DP, rounded up."""
    if not math.isfinite(divergence):
        return 1.0
    x = order - 1
    terms = (x * divergence, -x * epsilon, -x * math.log1p(1 / x), -math.log(order))
    log = math.fsum(terms) + _ROUNDING + 1e-15 * sum(map(abs, terms))
    return max(math.exp(min(0.0, log)), math.nextafter(0.0, 1.0))


def epsilon_at(event: Event, delta: float) -> float:
    """Return an epsilon >= 0 at which `event` is (epsilon, `delta`)-DP; inf at delta = 0.

    Examples
    --------
    >>> from pymc_dp.accounting.events import SelfComposedEvent
    >>> step = SubsampledGaussianEvent(
    ...     noise_multiplier=2.0, sampling="poisson", sample_rate=0.01, neighbours="add_remove"
    ... )
    >>> round(epsilon_at(SelfComposedEvent(event=step, count=1000), 1e-6), 2)
    0.78
    """
    counts = few_kinds(leaves(event))
    if delta <= 0:
        return math.inf
    return _least(lambda order: epsilon_of(_sum(counts, order), order, delta))


def delta_at(event: Event, epsilon: float) -> float:
    """Return a delta in [0, 1] at which `event` is (`epsilon`, delta)-DP."""
    counts = few_kinds(leaves(event))
    return _least(lambda order: delta_of(_sum(counts, order), order, epsilon))


def epsilon_at_order(event: Event, order: float, delta: float) -> float:
    """Return the epsilon that one `order`, chosen in advance, proves; a valid filter (Feldman, Zrnic 2021)."""
    return epsilon_of(divergence(event, order), order, delta)


def _sum(counts: dict[Event, int], order: float) -> float:
    # A count beyond any float has no bound here.
    floats = {leaf: float(count) if count < 2**1000 else math.inf for leaf, count in counts.items()}
    return math.fsum(count * leaf_divergence(leaf, order) for leaf, count in floats.items()) * (1 + _ROUNDING)


def _least(bound: Callable[[float], float]) -> float:
    """Return the least of `bound` over the orders, which falls and then rises."""
    return least_on_grid(lambda place: bound(ORDERS[place]), len(ORDERS), 8)
