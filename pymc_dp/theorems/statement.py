"""What a theorem says about given numbers, and whether that is a proof of differential privacy."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError


@final
@dataclass(frozen=True, kw_only=True)
class Privacy:
    """A proof of (ε, δ)-differential privacy, for data sets at distance `distance` at most.

    Its numbers may enter a budget whose neighbours are at that distance or nearer: ``Budget(proof.epsilon,
    proof.delta)``.

    Parameters
    ----------
    epsilon : float
        Finite, >= 0; for everything that the theorem speaks of together.
    delta : float
        In [0, 1).
    distance : float
        Largest ρ(x, y) for which it holds, > 0: 1 for one row under the Hamming distance.

    Examples
    --------
    >>> Privacy(epsilon=0.5, delta=0.0, distance=1.0)
    Privacy(epsilon=0.5, delta=0.0, distance=1.0)
    """

    epsilon: float
    delta: float
    distance: float

    def __post_init__(self) -> None:
        if _validate.number("epsilon", self.epsilon) < 0:
            raise ArgumentError(f"epsilon must be >= 0, got {self.epsilon}.")
        _validate.delta(self.delta)
        positive("distance", self.distance)


@final
@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a theorem says about given numbers. It is not a number, so no budget or event accepts it by mistake.

    Attributes
    ----------
    value : float
        The bound, in `unit`.
    unit : str
        What `value` is a number of.
    claim : str
        What is bounded, in one sentence.
    source : str
        Author, year, theorem.
    reason : str
        Why the statement says nothing; empty where it says something.
    proof : Privacy or None
        The statement as a proof of (ε, δ); None where it is none, whatever `value` looks like.
    relation : {"<=", ">="}
        Whether `value` bounds from above or from below.

    Examples
    --------
    >>> found = Statement(value=1.7, unit="probability", claim="a distance", source="nobody", reason="it is above 1")
    >>> found.vacuous, found.proof
    (True, None)
    >>> print(found)
    VACUOUS (it is above 1): a distance <= 1.7 probability [nobody]. No proof of (ε, δ).
    """

    value: float
    unit: str
    claim: str
    source: str
    reason: str = ""
    proof: Privacy | None = None
    relation: Literal["<=", ">="] = "<="

    def __post_init__(self) -> None:
        if self.reason and self.proof is not None:
            raise ArgumentError(f"A statement that says nothing ({self.reason}) proves nothing. Leave out its proof.")

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: a probability of 1 or more, or a theorem whose conditions are not met."""
        return bool(self.reason)

    def __str__(self) -> str:
        head = f"VACUOUS ({self.reason}): " if self.vacuous else ""
        tail = "No proof of (ε, δ)." if self.proof is None else f"Proves {_said(self.proof)}."
        return f"{head}{self.claim} {self.relation} {self.value:.6g} {self.unit} [{self.source}]. {tail}"


def _said(proof: Privacy) -> str:
    return f"ε = {proof.epsilon:.6g}, δ = {proof.delta:.6g} at distances up to {proof.distance:.6g}"


def positive(name: str, value: object) -> float:
    """Return a finite number > 0."""
    result = _validate.number(name, value)
    if result <= 0:
        raise ArgumentError(f"{name} must be > 0, got {result}.")
    return result


def counted(name: str, value: object) -> int:
    """Return a whole number >= 1 that a float can be multiplied with."""
    return _validate.integer(name, value, 1, _validate.LARGEST)


def probability(name: str, value: object) -> float:
    """Return a probability in (0, 1)."""
    result = _validate.number(name, value)
    if not 0 < result < 1:
        raise ArgumentError(f"{name} must lie in (0, 1), got {result}.")
    return result


def extended(name: str, value: object) -> float:
    """Return a number, or infinity."""
    return math.inf if isinstance(value, float) and value == math.inf else _validate.number(name, value)


MOST = Fraction(sys.float_info.max)


def product_up(*factors: float) -> float:
    """Return a float that is not below the product of numbers >= 0, each read as the decimal that it prints.

    It is inf where no float is as large.
    """
    exact = math.prod(map(_decimal, factors), start=Fraction(1))
    value = float(exact) if exact < MOST else math.inf
    if math.isinf(value):
        return value
    while _decimal(value) < exact:
        value = math.nextafter(value, math.inf)
    return value


def _decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))


def upwards(value: float, operations: int = 16) -> float:
    """Return a float above what `value` would be without the rounding of so many operations on positive numbers."""
    if not math.isfinite(value) or not value:
        return value
    return value * (1 + operations * 2.0**-52) + operations * math.ulp(0.0)  # of the least floats only the second adds


__all__ = ["Privacy", "Statement", "counted", "extended", "positive", "probability", "product_up", "upwards"]
