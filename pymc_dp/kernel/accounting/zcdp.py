"""Zero-concentrated differential privacy: Renyi divergences of every order a, divided by a, add."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import float_up
from pymc_dp.kernel.accounting.events import Event, leaves
from pymc_dp.kernel.errors import ArgumentError

# Room for the rounding of a handful of float operations, relative to the size of the terms added.
_ROUNDING = 1e-14


def total(event: Event) -> Fraction | None:
    """Return the exact sum of rhos (composition: Bun, Steinke 2016, lemma 1.7), or None."""
    result = Fraction(0)
    for leaf, count in leaves(event).items():
        one = leaf.zcdp_rho()
        if one is None:
            return None
        result += count * one
    return result


def rho(event: Event) -> float:
    """Return a rho at which `event` is rho-zCDP, rounded up; inf where there is none.

    Examples
    --------
    >>> from pymc_dp.accounting import ZCDPEvent
    >>> rho(ZCDPEvent(rho=0.1))
    0.1
    """
    exact = total(event)
    return math.inf if exact is None else float_up(exact)


def epsilon_at(event: Event, delta: float) -> float:
    """Return an epsilon >= 0 at which `event` is (epsilon, `delta`)-DP; inf at delta = 0."""
    return epsilon_of_rho(rho(event), delta)


@lru_cache(maxsize=256)
def order_for(epsilon: float, delta: float) -> float:
    """Return the order a > 1 whose conversion alone proves `rho_for` of that budget; delta must be > 0.

    At that order a total of a rho_for(epsilon, delta) converts to `epsilon`, so that whatever fits the budget by zCDP
    fits it by the Renyi divergence of this one order too.

    Examples
    --------
    >>> round(order_for(1.0, 1e-6), 1)
    22.0
    """
    rho = rho_for(epsilon, delta)
    log_inverse = -math.log(delta)
    low, high = math.log(1e-6), math.log(1e9)  # of a - 1; the derivative of the bound below has one root

    def slope(log_x: float) -> float:
        x = math.exp(log_x)
        # d/da of a rho + (log(1/delta) - log a) / (a-1) + log(1 - 1/a), times (a-1)^2
        return rho * x**2 - log_inverse + math.log1p(x)

    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 1 + math.exp(low)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return an epsilon at which every `rho`-zCDP mechanism is (epsilon, `delta`)-DP, rounded up.

    Canonne, Kamath, Steinke 2020 (doi:10.29012/jpc.784), proposition 12: for every order a > 1,
        epsilon = a rho + (log(1 / delta) - log a) / (a - 1) + log(1 - 1/a).
    Each order gives a valid bound, so that a search which misses the best one is still sound.

    Examples
    --------
    >>> round(epsilon_of_rho(0.1, 1e-6), 3)
    2.142
    """
    if delta <= 0 or not math.isfinite(rho):
        return math.inf
    if delta >= 1 or rho == 0:
        return 0.0
    log_inverse = -math.log(delta)

    def bound(log_x: NDArray[np.float64]) -> NDArray[np.float64]:  # x = a - 1
        x = np.exp(log_x)
        order, log_order = 1 + x, np.log1p(x)
        terms = np.stack([order * rho, log_inverse / x, -log_order / x, -np.log1p(1 / x)])
        return np.asarray(terms.sum(0) + _ROUNDING * np.abs(terms).sum(0))

    return max(0.0, least(bound, 0.5 * (math.log(log_inverse) - math.log(rho))))


def rho_for(epsilon: float, delta: float) -> float:
    """Return the greatest rho found whose conversion is not above (`epsilon`, `delta`); delta must be > 0.

    Examples
    --------
    >>> epsilon_of_rho(rho_for(1.0, 1e-6), 1e-6) <= 1.0
    True
    """
    epsilon, delta = _validate.epsilon(epsilon), _validate.delta(delta)
    if delta == 0:
        raise ArgumentError("rho_for needs delta > 0: zCDP gives no pure guarantee. Use a delta far below 1 / rows.")
    low, high = 0.0, epsilon
    while epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2 * high
    for _ in range(100):
        if not low < (middle := (low + high) / 2) < high:
            break
        if epsilon_of_rho(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    if low == 0:
        raise ArgumentError(f"epsilon={epsilon} is too small at delta={delta}: no rho > 0 was found. Ask for more.")
    return low


def least(bound: Callable[[NDArray[np.float64]], NDArray[np.float64]], centre: float) -> float:
    """Return the least value of `bound` on a grid of log(order - 1) around `centre`, refined three times."""
    width, best = 20.0, math.inf
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for _ in range(4):
            log_x = np.linspace(max(centre - width, -700.0), min(centre + width, 700.0), 401)
            values = bound(log_x)
            values = np.where(np.isnan(values), np.inf, values)  # orders at which terms overflow bound nothing
            place = int(np.argmin(values))
            best, centre, width = min(best, float(values[place])), float(log_x[place]), width / 50
    return best
