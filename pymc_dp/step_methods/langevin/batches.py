"""Random batches of rows: how they are drawn, and what noise on the sum of their clipped gradients costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

from pymc_dp.accounting import Budget, SelfComposedEvent
from pymc_dp.accounting.calibrate import with_noise
from pymc_dp.accounting.events import SubsampledGaussianEvent
from pymc_dp.domain import Neighbours
from pymc_dp.errors import ArgumentError

Sampling = Literal["poisson", "without_replacement"]
SAMPLINGS: tuple[Sampling, ...] = ("poisson", "without_replacement")
USUAL_SIZE = 256
"""Rows per batch where nothing is asked for, and there are as many."""


def batch_size(asked: int | None, population: int) -> int:
    """Return the rows per batch: what was asked for, or the usual number, or all of fewer rows; both are public."""
    return min(USUAL_SIZE, population) if asked is None else asked


def require_delta(budget: Budget, sampler: str, instead: str = "") -> None:
    """Refuse a budget that no Gaussian mechanism keeps; `instead` says what to do without a delta."""
    if budget.delta == 0:
        raise ArgumentError(
            f"{sampler} adds Gaussian noise, which has no guarantee at delta=0. Give delta > 0, far below 1 / number "
            f"of rows{instead}."
        )


@final
@dataclass(frozen=True, kw_only=True)
class Batches:
    """Batches of one table, all drawn alike; every number here is public.

    Attributes
    ----------
    size : int
        Rows per batch, b: exactly so many without replacement, expected in a Poisson batch.
    population : int
        N: number of rows, or ``n_max`` where that is private.
    sampling : {"poisson", "without_replacement"}
    neighbours : {"replace", "add_remove"}
    sampler : str
        Name of the step method, for texts.
    """

    size: int
    population: int
    sampling: Sampling
    neighbours: Neighbours
    sampler: str

    def __post_init__(self) -> None:
        if self.size > self.population:
            what = "n_max" if self.neighbours == "add_remove" else "the number of rows"
            raise ArgumentError(
                f"batch_size={self.size} is above {what}, {self.population}. Give {self.sampler} a smaller batch_size."
            )
        if self.neighbours == "add_remove" and self.sampling != "poisson":
            raise ArgumentError(
                f"sampling={self.sampling!r} cannot be used with neighbours='add_remove': a batch of fixed size "
                "depends on the number of rows, and no curve is proved. Use sampling='poisson', or "
                "neighbours='replace'."
            )

    @property
    def rate(self) -> float:
        """Probability that a row is in a batch."""
        return self.size / self.population

    @property
    def scale(self) -> float:
        """Sum over all rows for a sum over a batch: by the expected size, never the realised one."""
        return self.population / self.size

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of accountants."""
        drawn: dict[str, Any] = {"sample_rate": self.rate}
        if self.sampling == "without_replacement":
            drawn = {"population": self.population, "batch_size": self.size}
        return {"sampling": self.sampling, "neighbours": self.neighbours, **drawn}

    def deviation(self, multiplier: float, clip_norm: float) -> float:
        """Noise on an estimated gradient, of a sum that gets noise of so many clip norms: z C N / b."""
        return multiplier * clip_norm * self.population / self.size

    def multiplier(self, sigma: float, clip_norm: float) -> float:
        """Noise on the sum of clipped gradients over the clip norm, rounded down; `sigma` is that on an estimate."""
        return sigma / self.deviation(1.0, clip_norm) * (1 - 1e-12)

    def event(self, multiplier: float, steps: int) -> SelfComposedEvent:
        """Return what so many steps cost, each with so much noise."""
        like = SubsampledGaussianEvent(noise_multiplier=1.0, **self.arguments)
        return SelfComposedEvent(event=with_noise(like, multiplier), count=steps)

    def __str__(self) -> str:
        return {
            "poisson": f"Poisson, {self.size} of {self.population} rows expected",
            "without_replacement": f"{self.size} of {self.population} rows without replacement",
        }[self.sampling]


__all__ = ["SAMPLINGS", "Batches", "Sampling", "batch_size", "require_delta"]
