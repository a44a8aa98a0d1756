"""Rényi divergences of one accept bit of the penalty method: a threshold on Gaussian noise tells less than the noise.

The bit is 1{λ + s Z + E > s²/2}, where Z is normal and E is exponential: a uniform number U = e^-E is below
min(1, exp(λ + s Z - s²/2)). In units of s, x = λ/s is compared with noise,

    F_s(x) = P(Z + E/s > s/2 - x) = Φ(x - s/2) + e^(s x) Φ(-x - s/2),

and neighbours have places x at most `ratio` apart.

**More noise tells more.** For s < t, E/s is distributed as E/t + W, W independent: 0 with probability s/t, else E'/s
(Laplace transforms: s/(s+u) = t/(t+u) (s/t + (1 - s/t) s/(s+u))). Given W, the bit of s is that of t at places that
are moved by one and the same number. So it is a mixture of bits of t, whose divergences at worst places it cannot
exceed (they are jointly quasi-convex). The worst s is the most there is, and there the places alone are searched.

**Distance.** D_a(p ‖ q) of two bits grows with the distance of either from the other, so that neighbours at the full
distance are the worst.

**Cells.** With θ(x) = logit F(x), D_a is a function of θ at the first place and of the change of θ to the second, and
    D_a = (a/2) Δ² E[σ'(θ + T)],
T with the tent density on [-(a-1) Δ, Δ] that peaks at 0 (Green's function of the log-partition function, of which D_a
is a second difference). |d log σ'| <= 1, hence on a cell D_a is at most e^(half the change of θ across it) times its
value at the cell's middle, at the largest Δ of the cell. That one is bounded because F and 1 - F are log-concave:
log F(x + r) - log F(x) falls and log(1 - F(x)) - log(1 - F(x + r)) rises, so that their values at the two ends add up
to a bound.

**Tails.** Beyond the cells D_a is at most its limit of infinite order, or falls outwards; see `_tails`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, final, override

import numpy as np
import scipy  # its parts are imported when first used

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.decimals import decimal
from pymc_dp.kernel.accounting.events.base import Event
from pymc_dp.kernel.accounting.pairs import Floats
from pymc_dp.kernel.errors import ArgumentError

MOST_NOISE = (0.5, 10.0)
"""Least and largest bound on the noise that is searched."""
CELL = 1 / 128
LEAST_RATIO = 1e-5
"""Below, differences of logarithms have too few digits."""
MOST_TILT = 8.0
"""Order times ratio above which the bit tells about as much as the noise: no search."""
ERROR = 1e-12
"""Of a difference of two of the logarithms used here, absolute."""
SMALL_TILT = 1e-3
"""Order times Δ up to which σ' hardly changes under the tent."""


@final
@dataclass(frozen=True, kw_only=True)
class PenaltyBitEvent(Event, kind="penalty_bit"):
    """The accept bit of one step of the penalty method, whose noise is proportional to what one row can do.

    A log-likelihood ratio that one row moves by at most R gets normal noise of standard deviation s = R / ratio, and
    the bit is whether a uniform number is below min(1, exp(noised ratio + public number - s²/2)). The noised ratio
    itself must never be seen.

    Parameters
    ----------
    ratio : float
        R / s > 0, the same for every step; read as the decimal number it prints.
    most_noise : float
        The largest s that may occur, in [0.5, 10].

    Notes
    -----
    **Guarantee.** The bit is computed from a release of Gaussian noise that is `ratio`-GDP, hence is `ratio`-GDP and
    ratio²/2-zCDP; no pure loss. Its Rényi divergences are .41, .59 or .64 of that release's where `most_noise` is 1, 3
    or 10 and order times ratio is small (see the file).

    References
    ----------
    Ceperley, Dewing 1999 (doi:10.1063/1.478034); Yıldırım, Ermiş 2019 (doi:10.1007/s11222-018-9847-x).

    Examples
    --------
    >>> float(PenaltyBitEvent(ratio=0.5, most_noise=3.0).rho)
    0.125
    """

    ratio: float
    most_noise: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", _validate.epsilon(self.ratio, "ratio"))
        most = _validate.number("most_noise", self.most_noise)
        if not MOST_NOISE[0] <= most <= MOST_NOISE[1]:
            raise ArgumentError(
                f"most_noise must lie in [{MOST_NOISE[0]:g}, {MOST_NOISE[1]:g}], got {most}. Chains mix best below 3."
            )
        object.__setattr__(self, "most_noise", most)

    @property
    def rho(self) -> Fraction:
        """The rho of its zCDP, ratio² / 2, exactly."""
        return decimal(self.ratio) ** 2 / 2

    @override
    def gdp_half_square(self) -> Fraction:
        return self.rho

    @override
    def renyi_divergence(self, order: float) -> float:
        return divergence(self.ratio, self.most_noise, order)


def log_accept(x: Floats, s: float) -> tuple[Floats, Floats]:
    """Return the logarithms of F_s(x) and of 1 - F_s(x), each exact to its own size.

    Examples
    --------
    >>> low, high = log_accept(np.array([-1.0, 0.0, 2.0]), 1.0)
    >>> np.allclose(np.exp(low) + np.exp(high), 1)
    True
    """
    u = x - s / 2
    accept = np.logaddexp(scipy.special.log_ndtr(u), s * x + scipy.special.log_ndtr(-u - s))
    # 1 - F = Φ(-u) - e^(s x) Φ(-u - s) = φ(u) (M(u) - M(u + s)), M the ratio of Mills.
    v = np.maximum(u, 0.0)
    mills = math.sqrt(math.pi / 2) * (
        scipy.special.erfcx(v / math.sqrt(2)) - scipy.special.erfcx((v + s) / math.sqrt(2))
    )
    with np.errstate(divide="ignore"):
        above = -v * v / 2 - math.log(math.sqrt(2 * math.pi)) + np.log(mills)
        reject = np.where(u > 0, above, np.log(-np.expm1(np.minimum(accept, -5e-324))))
    return accept, reject


class Cells(NamedTuple):
    """Cells of places, and their ends.

    Attributes
    ----------
    middle : (2, n_cells) array
        θ of whichever place comes first in the divergence, at the middle: at x, or, with its sign changed, at x + r.
    room : (2, n_cells) array
        Half of the change of θ across the cell.
    change : (n_cells,) array
        Largest Δ.
    low, high : (4,) tuples
        log F(x), log F(x + r), log(1 - F(x)), log(1 - F(x + r)) at the two outermost places.
    steep : (2,) tuple
        Lower bounds of d log F(x + r) at the lowest place, and of -d log(1 - F(x)) at the highest.
    """

    middle: Floats
    room: Floats
    change: Floats
    low: tuple[float, ...]
    high: tuple[float, ...]
    steep: tuple[float, float]


@lru_cache(maxsize=8)
def cells(ratio: float, most_noise: float) -> Cells:
    """Prepare the search at one ratio, for every order."""
    s, r = most_noise, ratio
    first = -(40 / s + s / 2 + 2 + r)
    last = s / 2 + 9 + 1.1 * MOST_TILT
    x = np.linspace(first, last, 2 + math.ceil((last - first) / CELL))
    (a, a_not), (b, b_not) = log_accept(x, s), log_accept(x + r, s)
    rising = (a_not - b_not)[1:]
    change = (b - a)[:-1] + rising + ERROR
    theta = np.stack([a - a_not, -(b - b_not)])
    ends = [tuple(float(part[place]) for part in (a, b, a_not, b_not)) for place in (0, -1)]
    steep_low = (log_accept(np.array([first + 2 * r]), s)[0][0] - ends[0][1] - ERROR) / r
    steep_high = (log_accept(np.array([last - r]), s)[1][0] - ends[1][2] - ERROR) / r
    return Cells(
        middle=(theta[:, 1:] + theta[:, :-1]) / 2,
        room=np.abs(np.diff(theta, axis=1)) / 2 + ERROR,
        change=change,
        low=ends[0],
        high=ends[1],
        steep=(float(steep_low), float(steep_high)),
    )


def divergence(ratio: float, most_noise: float, order: float) -> float:
    """Return a bound on the Rényi divergence of one bit at `order` > 1; inf where no search was made.

    Examples
    --------
    >>> bound = divergence(0.01, 3.0, 2.0) / (2.0 * 0.01**2 / 2)
    >>> 0.57 < bound < 0.60
    True
    """
    if ratio < LEAST_RATIO or order * ratio > MOST_TILT:
        return math.inf
    held = cells(ratio, most_noise)
    inside = float((of_bits(held.middle, held.change, order) * np.exp(held.room)).max())
    return max(inside * (1 + 1e-9), _tails(held, ratio, most_noise, order))


def of_bits(theta: Floats, change: Floats, order: float) -> Floats:
    """Return D_a of the bits of logits θ and θ + Δ, Δ >= 0, rounded up; either of two forms is a bound."""
    x = order - 1
    with np.errstate(over="ignore"):
        terms = np.stack([_softplus(theta - x * change), x * _softplus(theta + change)])
        middle = order * _softplus(theta)
    exact = (terms.sum(axis=0) - middle + 2e-15 * (terms.sum(axis=0) + middle)) / x
    sigma = scipy.special.expit(theta)
    near = order / 2 * change**2 * sigma * scipy.special.expit(-theta) * np.exp(np.minimum(order * change, 1.0))
    return np.asarray(np.where(order * change <= SMALL_TILT, np.minimum(near, exact), exact))


def _softplus(x: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, x))


def _tails(held: Cells, ratio: float, most_noise: float, order: float) -> float:
    """Bound the divergences beyond the cells, or return inf.

    In the direction in which the rare value of the bit gets rarer, D_a <= log(1 + p^a q^(1-a)) / (a - 1), p and q its
    probabilities. The exponent a log p - (a - 1) log q falls outwards: above, where p = 1 - F(x), q = 1 - F(x + r) and
    h is the hazard of 1 - F, its slope is -a h(x) + (a - 1) h(x + r) <= -h(x) + (a - 1) r, since h' <= 1 for any
    mixture of normal distributions of variance 1; and h grows. Below, where p = F(x + r), q = F(x) and k = (log F)',
    it is a k(x + r) - (a - 1) k(x), where k(x) is at most k(x + r) + r, and at most s, its limit; and k falls. In the
    other direction D_a <= D_inf, which is at most minus the logarithm of the smaller of the two common values.
    """
    a, x = order, order - 1
    rare_low, rare_high = held.steep
    s = most_noise
    if rare_high < x * ratio or rare_low < min(x * ratio, x / a * s * (1 + 1e-12)):
        return math.inf
    above = np.logaddexp(0.0, a * held.high[2] - x * held.high[3] + a * ERROR) / x
    below = np.logaddexp(0.0, a * held.low[1] - x * held.low[0] + a * ERROR) / x
    common = max(-held.high[0], -held.low[3]) * (1 + 1e-9)
    return float(max(above, below, common))


__all__ = ["MOST_NOISE", "PenaltyBitEvent", "divergence", "log_accept", "of_bits"]
