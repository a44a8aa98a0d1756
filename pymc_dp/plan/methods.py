"""The methods that a plan compares, each by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.gradients.choice import Gradients
from pymc_dp.networks import FourierUpdates, LaplaceUpdates
from pymc_dp.release.noise import NOISES
from pymc_dp.release.statistics import Statistics


def named_methods(noise: Any, statistics: Any, delta: float) -> dict[str, Statistics]:
    """Return the methods asked for: by kind of noise, or as Statistics.

    By default, Laplace noise, and Gaussian noise where there is a δ for it.
    """
    if statistics is None:
        kinds = noise if noise is not None else ["laplace", *(["gaussian"] if delta else [])]
        kinds = [kinds] if isinstance(kinds, str) else _validate.several("noise", kinds)
        if not kinds:
            raise ArgumentError(f"noise must name at least one of {', '.join(map(repr, NOISES))}.")
        return {kind: Statistics(noise=kind) for kind in kinds}
    if noise is not None:
        raise ArgumentError("noise= and statistics= both say what to compare. Give one.")
    if isinstance(statistics, Statistics):
        statistics = [statistics]
    named = dict(statistics) if isinstance(statistics, Mapping) else _named(statistics)
    if not named:
        raise ArgumentError("statistics must hold at least one dp.Statistics.")
    for name, method in named.items():
        if not isinstance(method, Statistics) or not isinstance(name, str):
            raise ArgumentError(
                f"statistics must be dp.Statistics, a list of them or a mapping of names to them; got "
                f"{_validate.shown(method)} under {_validate.shown(name)}."
            )
        if isinstance(method.mechanism, FourierUpdates):
            raise ArgumentError(
                f"dp.plan simulates tables, but {method.mechanism!r} releases coefficients. Compare "
                "dp.networks.LaplaceUpdates() instead; dp.explain(model) tells the noise of both."
            )
    return named


def _named(statistics: Sequence[Any]) -> dict[str, Any]:
    """Name methods by their noise and by what is not the default; a number tells apart what still looks alike."""
    named: dict[str, Any] = {}
    for method in _validate.several("statistics", statistics):
        if not isinstance(method, Statistics):
            raise ArgumentError(f"statistics must be dp.Statistics or a list of them, got {_validate.shown(method)}.")
        share = f", {', '.join(f'{name} {part:g}' for name, part in method.share.items())}" if method.share else ""
        joint = f", {method.mechanism!r}" if isinstance(method.mechanism, LaplaceUpdates) else ""
        name = base = f"{method.noise}{'' if method.noise_aware else ', plug-in'}{share}{joint}"
        while name in named:
            name = f"{base} ({sum(other.startswith(base) for other in named) + 1})"
        named[name] = method
    return named


def gradient_methods(statistics: Any) -> dict[str, Gradients] | None:
    """Return methods that release gradients by their names; None where exact sums are asked for.

    Raises
    ------
    ArgumentError
        For a mixture.
    """
    if isinstance(statistics, Gradients):
        return {"gradients": statistics}
    if not isinstance(statistics, Mapping | list | tuple):
        return None
    held = list(statistics.values()) if isinstance(statistics, Mapping) else list(statistics)
    count = sum(isinstance(one, Gradients) for one in held)
    if not count:
        return None
    if count < len(held):
        raise ArgumentError(
            "dp.Gradients and dp.Statistics are rehearsed on tables that are simulated in different ways: call "
            "dp.plan once for each."
        )
    names = list(statistics) if isinstance(statistics, Mapping) else [repr(one) for one in held]
    return dict(zip(names, held, strict=True))


__all__ = ["gradient_methods", "named_methods"]
