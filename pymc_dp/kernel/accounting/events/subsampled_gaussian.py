"""The event of stochastic-gradient samplers: a clipped sum over a random batch, with Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, final, override

import numpy as np

from pymc_dp.kernel import _validate
from pymc_dp.kernel.accounting.events.base import Event, leaf_divergence, multiplier
from pymc_dp.kernel.accounting.pairs import TAIL, ContinuousPair, Floats, Normal, Pair, normal_masses
from pymc_dp.kernel.errors import ArgumentError

# A sampler goes with a relation. Others (batches of fixed size under add_remove, batches cut from one shuffle) have no
# proved curve here, and must not borrow that of another sampler.
SUPPORTED = (("poisson", "replace"), ("poisson", "add_remove"), ("without_replacement", "replace"))

_MOST_KINDS = 32  # of batches whose curves are computed one by one
_ROUNDING = 1e-14


@final
@dataclass(frozen=True, kw_only=True)
class SubsampledGaussianEvent(Event, kind="subsampled_gaussian"):
    """One step on a fresh random batch: the sum of its rows' clipped contributions, plus continuous Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise **over the clip norm**, under either relation. Each row's contribution to the
        sum has L2 norm <= clip norm, so that replacing a row of the batch moves the sum by up to twice the clip norm.
    sampling : {"poisson", "without_replacement"}
        "poisson": each row is in the batch independently with probability `sample_rate`. "without_replacement": the
        batch is uniform among the sets of `batch_size` out of `population` rows. Both are drawn anew for every step.
    sample_rate : float, optional
        In (0, 1]; for "poisson", and only there.
    population, batch_size : int, optional
        For "without_replacement", and only there: 1 <= batch_size <= population.
    neighbours : {"replace", "add_remove"}
        The relation; without replacement goes with "replace" alone.

    Raises
    ------
    ArgumentError
        For a sampler and a relation without a proved curve, and for parameters of another sampler.

    Notes
    -----
    **Guarantee.** That of the accountants that know it: Renyi and PLD for Poisson batches, Renyi without replacement.
    The batch itself must stay secret, and the noise be divided by the public expected batch size.

    References
    ----------
    Mironov, Talwar, Zhang 2019 (Poisson); Wang, Balle, Kasiviswanathan 2019, theorem 27 (without replacement); Zhu,
    Dong, Wang 2022 and Lebeda, Regehr, Kamath, Steinke 2024 (dominating pairs).

    Examples
    --------
    >>> step = SubsampledGaussianEvent(noise_multiplier=8.0, sampling="poisson", sample_rate=0.01, neighbours="replace")
    >>> step.over_sensitivity
    4.0
    """

    noise_multiplier: float
    sampling: Literal["poisson", "without_replacement"]
    sample_rate: float | None = None
    population: int | None = None
    batch_size: int | None = None
    neighbours: Literal["replace", "add_remove"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", multiplier(self.noise_multiplier, "clip norm"))
        if (self.sampling, self.neighbours) not in SUPPORTED:
            known = " or ".join(
                f"sampling={sampling!r} with neighbours={relation!r}" for sampling, relation in SUPPORTED
            )
            raise ArgumentError(
                f"No proved curve for sampling={self.sampling!r} with neighbours={self.neighbours!r}. Use {known}."
            )
        if self.sampling == "poisson":
            self._refuse("population", "batch_size")
            rate = _validate.number("sample_rate", self.sample_rate)
            if not 0 < rate <= 1:
                raise ArgumentError(
                    f"sample_rate must lie in (0, 1], got {rate}. Use expected batch / public row count."
                )
            object.__setattr__(self, "sample_rate", rate)
        else:
            self._refuse("sample_rate")
            population = _validate.integer("population", self.population)
            object.__setattr__(self, "batch_size", _validate.integer("batch_size", self.batch_size, 1, population))
            object.__setattr__(self, "population", population)
        multiplier(self.over_sensitivity, "sensitivity")

    def _refuse(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise ArgumentError(
                    f"{name}={getattr(self, name)!r} does not belong to sampling={self.sampling!r}. Leave it out: "
                    "poisson takes sample_rate, without_replacement takes population and batch_size."
                )

    @property
    def rate(self) -> float:
        """Probability in (0, 1] that a row is in the batch."""
        if self.population is not None and self.batch_size is not None:
            return self.batch_size / self.population
        return 1.0 if self.sample_rate is None else self.sample_rate

    @property
    def over_sensitivity(self) -> float:
        """Standard deviation of the noise over the L2 sensitivity of the sum, were all rows in the batch.

        The one place where noise over clip norm becomes noise over sensitivity. A replaced row moves the sum by 2 clip
        norms, an added one by 1. dp_accounting's Renyi curves read std / sensitivity, its distributions std / clip
        norm; under replace the two differ by 2.
        """
        return self.noise_multiplier / (2 if self.neighbours == "replace" else 1)

    @property
    def rho(self) -> Fraction:
        """The rho of zCDP of the same step on all rows, exactly; it costs at least as much.

        Renyi and hockey-stick divergences are jointly (quasi-)convex: with the batch of the other rows coupled, the
        step is a mixture of steps where the row is in the batch and where it is not.
        """
        return 1 / (2 * Fraction(self.over_sensitivity) ** 2)

    @override
    def to_dict(self) -> dict[str, Any]:
        own = {"sample_rate": self.sample_rate} if self.sampling == "poisson" else {}
        own |= {"population": self.population, "batch_size": self.batch_size} if self.population is not None else {}
        return {
            "kind": "subsampled_gaussian",
            "noise_multiplier": self.noise_multiplier,
            "sampling": self.sampling,
            **own,
            "neighbours": self.neighbours,
        }

    @property
    @override
    def relation(self) -> str:
        return self.neighbours

    @override
    def gdp_half_square(self) -> Fraction | None:
        return self.rho if self.rate == 1 else None

    @override
    def zcdp_rho(self) -> Fraction:
        return self.rho  # amplification by sampling is no zCDP; a batch costs no more than all rows

    @override
    def renyi_divergence(self, order: float) -> float:
        from dp_accounting import dp_event
        from dp_accounting.privacy_accountant import NeighboringRelation
        from dp_accounting.rdp import RdpAccountant

        if self.rate == 1:
            return math.inf  # all rows: the Gaussian's own curve
        if self.sampling == "poisson" and self.neighbours == "replace":
            return self._of_opposite_shifts(order)
        if order != int(order):
            # (a-1) D_a is convex in a, and 0 at 1 (Wang, Balle, Kasiviswanathan 2019, corollary 10).
            low, high = (float(math.floor(order)), float(math.ceil(order)))
            share = order - low
            below = (1 - share) * (low - 1) * leaf_divergence(self, low) if low > 1 else 0.0
            return (below + share * (high - 1) * leaf_divergence(self, high)) / (order - 1) * (1 + _ROUNDING)
        # Theirs is std / sensitivity under both relations. Above 1e4 they lose digits; less noise costs more.
        gaussian = dp_event.GaussianDpEvent(min(self.over_sensitivity, 1e4))
        if self.sampling == "without_replacement":
            theirs = dp_event.SampledWithoutReplacementDpEvent(self.population, self.batch_size, gaussian)
            relation = NeighboringRelation.REPLACE_ONE
        else:
            theirs = dp_event.PoissonSampledDpEvent(self.rate, gaussian)
            relation = NeighboringRelation.ADD_OR_REMOVE_ONE
        divergence = float(RdpAccountant([order], relation).compose(theirs).rdp[0])
        # They sum up to order + 1 terms made of log-gamma functions, which together are near 1 where little is lost;
        # and without replacement lose digits of 1 - e^-D in a term of size (rate order)^2.
        slack = 1e-15 * (20 + 4 * math.lgamma(order + 2) + (self.rate * order) ** 2) / (order - 1)
        return math.inf if math.isnan(divergence) else max(divergence, 0.0) * (1 + 1e-9) + slack

    def _of_opposite_shifts(self, order: float) -> float:
        """Return the divergence of a Poisson batch under replace, by the trapezoidal rule on the dominating pair.

        In units of the clip norm the pair is (1-q) N(0, s^2) + q N(1, s^2) against (1-q) N(0, s^2) + q N(-1, s^2)
        (Lebeda, Regehr, Kamath, Steinke 2024), which is its own mirror image. The integrand is analytic in a strip of
        half-width y = s^2 / sqrt(a), where it grows by a constant only, so that the rule errs by e^(-2 pi y / step)
        (Trefethen, Weideman 2014, theorem 5.1).
        """
        s, q = self.noise_multiplier, self.rate
        # P^a Q^(1-a) peaks within 2a - 1: it is a mixture of about N(k, s^2), 1 - a <= k <= a, where Q is near
        # N(0, s^2), and near N(2a - 1, s^2) where nearly every row is in the batch and Q near N(-1, s^2).
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

    @override
    def loss_pairs(self) -> tuple[Pair, ...] | None:
        if self.rate == 1:
            return (Normal(self.rho),)
        if self.sampling != "poisson":
            return None
        # The pair is in units of the clip norm under either relation, as dp_accounting's distributions are.
        return (Batch(self.noise_multiplier, self.rate, self.neighbours == "replace"),)


@final
@dataclass(frozen=True)
class Batch(ContinuousPair):
    """A Poisson batch: (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2), or against (1-q) N(0, s^2) + q N(-1, s^2).

    Here s is the noise over the clip norm and q the sample rate; the outcome is the sum over the clip norm, along the
    row that differs. The first for add_remove (Zhu, Dong, Wang 2022, theorem 11), and in the other order as well;
    the second, `opposite`, for replace (Lebeda, Regehr, Kamath, Steinke 2024), where the two orders are mirror images.
    """

    s: float
    q: float
    opposite: bool

    @property
    @override
    def symmetric(self) -> bool:
        return self.opposite

    @property
    @override
    def least(self) -> float:
        return float(self._loss(np.array([-1 - TAIL * self.s]))[0])

    @property
    @override
    def greatest(self) -> float:
        return float(self._loss(np.array([1 + TAIL * self.s]))[0])

    @cached_property
    @override
    def variance(self) -> float:
        x = np.linspace(-1 - TAIL * self.s, 1 + TAIL * self.s, 4001)
        density = (1 - self.q) * np.exp(-((x / self.s) ** 2) / 2) + self.q * np.exp(-(((x - 1) / self.s) ** 2) / 2)
        return float(self._loss(x) ** 2 @ density / density.sum())

    def _loss(self, x: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            stay, log_q = np.log1p(-self.q), math.log(self.q)
        out = np.logaddexp(stay, log_q + (x - 0.5) / self.s**2)
        return np.asarray(out - np.logaddexp(stay, log_q + (-x - 0.5) / self.s**2) if self.opposite else out)

    def _outcome(self, loss: Floats) -> Floats:
        """Return the x of each loss, which grows with it."""
        if not self.opposite:
            inner = np.expm1(loss) + self.q
            with np.errstate(divide="ignore", invalid="ignore"):
                x = 0.5 + self.s**2 * (np.log(inner) - math.log(self.q))
            return np.where(inner > 0, x, -np.inf)
        # With t = x / s^2 and r = (1-q) / q e^(1 / (2 s^2)), loss = log((r + e^t) / (r + e^-t)), so that
        # r sinh(loss / 2) = sinh(t - loss / 2).
        half = np.abs(loss) / 2
        with np.errstate(divide="ignore"):
            log = math.log1p(-self.q) - math.log(self.q) + 0.5 / self.s**2 + half + np.log(-np.expm1(-2 * half) / 2)
        inverse = np.where(log > 20, log + math.log(2), np.arcsinh(np.exp(np.minimum(log, 20))))
        return np.asarray(self.s**2 * np.sign(loss) * (half + inverse))

    @override
    def masses(self, cuts: Floats) -> tuple[Floats, Floats]:
        x, q = self._outcome(cuts), self.q
        stay, out = normal_masses(x, 0.0, self.s), normal_masses(x, 1.0, self.s)
        against = (1 - q) * stay + q * normal_masses(x, -1.0, self.s) if self.opposite else stay
        return (1 - q) * stay + q * out, against


def few_kinds(counts: Mapping[Event, int]) -> dict[Event, int]:
    """Return the events with at most 33 levels of noise among batches, each lowered to one, which costs more.

    A schedule of step sizes may give every step a noise of its own.
    """
    batches = [event for event in counts if isinstance(event, SubsampledGaussianEvent)]
    if len(batches) <= _MOST_KINDS:
        return dict(counts)
    low = min(event.noise_multiplier for event in batches)
    step = math.log(max(event.noise_multiplier for event in batches) / low) / _MOST_KINDS
    result: dict[Event, int] = {}
    for event, count in counts.items():
        kind = event
        if isinstance(event, SubsampledGaussianEvent) and step > 0:
            level = low * math.exp(step * math.floor(math.log(event.noise_multiplier / low) / step))
            kind = replace(event, noise_multiplier=min(level, event.noise_multiplier))
        result[kind] = result.get(kind, 0) + count
    return result


__all__ = ["SubsampledGaussianEvent", "few_kinds"]
