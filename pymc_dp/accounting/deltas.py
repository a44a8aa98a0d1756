"""From events and an epsilon to a delta, and whether a stated (epsilon, delta) is proved; no charge rests on either.

One function for each accountant, by the name of the accountant: each returns a delta in [0, 1] at which an event is
(`epsilon`, delta)-DP, 1 where nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pymc_dp import _validate
from pymc_dp.kernel.accounting import basic as basic_accountant
from pymc_dp.kernel.accounting import gdp as gdp_accountant
from pymc_dp.kernel.accounting import pld as pld_accountant
from pymc_dp.kernel.accounting import pure as pure_accountant
from pymc_dp.kernel.accounting import rdp as rdp_accountant
from pymc_dp.kernel.accounting import sum_of_parts as parts
from pymc_dp.kernel.accounting import zcdp as zcdp_accountant
from pymc_dp.kernel.accounting.decimals import decimal, float_up
from pymc_dp.kernel.accounting.events import Event, leaves
from pymc_dp.kernel.accounting.events.subsampled_gaussian import few_kinds
from pymc_dp.kernel.accounting.totals import EPSILONS

_ROUNDING = 1e-14


def pure(event: Event, epsilon: float) -> float:
    """Return the delta of the sum of pure losses.

    A pure loss e0 is dominated by randomised response with that loss (Kairouz, Oh, Viswanath 2017), whose
    hockey-stick divergence at e < e0 is (exp(e0) - exp(e)) / (1 + exp(e0)).
    """
    loss = pure_accountant.total(event)
    return 1.0 if loss is None else min(1.0, _of_loss(loss, epsilon) * (1 + 1e-15))


def basic(event: Event, epsilon: float) -> float:
    """Return the delta of sums of losses and of failure probabilities.

    What is (e0, d0)-DP is dominated by a failure of probability d0, and otherwise randomised response with loss e0
    (Kairouz, Oh, Viswanath 2017): at e < e0 that has d0 + (1 - d0) (exp(e0) - exp(e)) / (1 + exp(e0)).
    """
    sums = basic_accountant.total(event)
    if sums is None or sums[1] >= 1:
        return 1.0
    failure, value = float_up(sums[1]), _of_loss(sums[0], epsilon)
    return min(1.0, (failure + (1 - failure) * value) * (1 + 1e-15)) if value else failure


def _of_loss(exact: Fraction, epsilon: float) -> float:
    loss = float_up(exact)
    if epsilon >= loss:
        return 0.0
    above = float_up(exact - decimal(epsilon))  # exactly, since the two may differ in their last digit only
    return -math.expm1(-above) / (1 + math.exp(-loss))


def zcdp(event: Event, epsilon: float) -> float:
    """Return the delta of the sum of rhos."""
    return delta_of_rho(zcdp_accountant.rho(event), epsilon)


def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return a delta at which every `rho`-zCDP mechanism is (`epsilon`, delta)-DP, rounded up.

    Canonne, Kamath, Steinke 2020, corollary 13: for every order a > 1,
        delta = exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1).
    """
    if not math.isfinite(rho):
        return 1.0
    if rho == 0:
        return 0.0

    def bound(log_x: NDArray[np.float64]) -> NDArray[np.float64]:
        x = np.exp(log_x)
        terms = np.stack([x * (1 + x) * rho, -x * epsilon, x * log_x, -(1 + x) * np.log1p(x)])
        return np.asarray(terms.sum(0) + _ROUNDING * np.abs(terms).sum(0))

    log = zcdp_accountant.least(bound, math.log(max(epsilon, math.sqrt(rho))) - math.log(rho)) + _ROUNDING
    delta = math.exp(min(0.0, log))
    return max(delta, math.nextafter(0.0, 1.0))  # never 0: rho-zCDP alone promises no pure loss


def gdp(event: Event, epsilon: float) -> float:
    """Return the least delta of Gaussian noise; 1 where it is not all Gaussian."""
    return gdp_accountant.delta_of_mu(gdp_accountant.mu(event), epsilon)


def rdp(event: Event, epsilon: float) -> float:
    """Return the least delta that one Renyi order proves."""
    counts = few_kinds(leaves(event))
    return rdp_accountant.least_over_orders(
        lambda order: delta_of_divergence(rdp_accountant.divergence_of(counts, order), order, epsilon)
    )


def delta_of_divergence(divergence: float, order: float, epsilon: float) -> float:
    """Return a delta at which a Renyi `divergence` at `order` is (`epsilon`, delta)-DP, rounded up."""
    if not math.isfinite(divergence):
        return 1.0
    x = order - 1
    terms = (x * divergence, -x * epsilon, -x * math.log1p(1 / x), -math.log(order))
    log = math.fsum(terms) + _ROUNDING + 1e-15 * sum(map(abs, terms))
    return max(math.exp(min(0.0, log)), math.nextafter(0.0, 1.0))


def pld(event: Event, epsilon: float) -> float:
    """Return the delta of the composed privacy loss distribution; 1 where none is known."""
    composed = pld_accountant.compose(event)
    return 1.0 if composed is None else pld_accountant.delta_of(composed, epsilon)


def sum_of_parts(event: Event, epsilon: float) -> float:
    """Return the least delta of two parts that are found; 1 where there are no two."""
    split = parts.split(event)
    places = parts.curve(split[0]) if split else ()
    if split is None or not places:
        return 1.0
    other = split[1]

    def total(place: int) -> float:
        first, used = places[place]
        left = max(0.0, math.nextafter(epsilon - first, 0.0))
        second = min(rdp(other, left), zcdp(other, left)) if first <= epsilon else 1.0
        return min(1.0, math.nextafter(used + second, math.inf))

    return rdp_accountant.least_on_grid(total, len(places), parts.STEP)


DELTAS: dict[str, Callable[[Event, float], float]] = {
    "pure": pure,
    "zcdp": zcdp,
    "gdp": gdp,
    "rdp": rdp,
    "pld": pld,
    "sum": sum_of_parts,
    "basic": basic,
}


def total_delta(event: Event, epsilon: float) -> float:
    """Return the least delta in [0, 1] that any accountant proves for `event` at `epsilon` > 0.

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent
    >>> total_delta(PureEvent(epsilon=1.0), 1.0)
    0.0
    """
    epsilon = _validate.epsilon(epsilon)
    return min(delta_at(event, epsilon) for delta_at in DELTAS.values())


def proved_within(event: Event, epsilon: float, delta: float = 0.0) -> bool:
    """Return whether any accountant proves that `event` is (`epsilon`, `delta`)-DP; the quickest are asked first.

    Examples
    --------
    >>> from pymc_dp.accounting import PureEvent
    >>> proved_within(PureEvent(epsilon=1.0), 1.0), proved_within(PureEvent(epsilon=1.0), 0.5)
    (True, False)
    """
    delta = _validate.delta(delta)
    return any(epsilon_at(event, delta) <= epsilon for epsilon_at in EPSILONS.values())


__all__ = ["DELTAS", "delta_of_divergence", "delta_of_rho", "proved_within", "total_delta"]
