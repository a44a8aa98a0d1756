"""The event of stochastic-gradient samplers: a clipped sum over a random batch, with Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final, override

from pymc_dp import _validate
from pymc_dp.accounting.elementary import Event, GaussianEvent, multiplier
from pymc_dp.errors import ArgumentError

# A sampler goes with a relation. Others (batches of fixed size under add_remove, batches cut from one shuffle) have no
# proved curve here, and must not borrow that of another sampler.
SUPPORTED = (("poisson", "replace"), ("poisson", "add_remove"), ("without_replacement", "replace"))

_MOST_KINDS = 32  # of batches whose curves are computed one by one


@final
@dataclass(frozen=True, kw_only=True)
class SubsampledGaussianEvent(Event):
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
    >>> step.whole
    GaussianEvent(noise_multiplier=4.0)
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
        multiplier(self.whole.noise_multiplier, "sensitivity")

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
    def whole(self) -> GaussianEvent:
        """The same step on all rows, with the noise in terms of the sensitivity; it costs at least as much.

        The one place where noise over clip norm becomes noise over sensitivity. A replaced row moves the sum by 2 clip
        norms, an added one by 1. dp_accounting's Renyi curves read std / sensitivity, its distributions std / clip
        norm; under replace the two differ by 2.

        It costs at least as much because Renyi and hockey-stick divergences are jointly (quasi-)convex: with the batch
        of the other rows coupled, the step is a mixture of steps where the row is in the batch and where it is not.
        """
        sensitivity = 2 if self.neighbours == "replace" else 1
        return GaussianEvent(noise_multiplier=self.noise_multiplier / sensitivity)

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
