"""Distances between places on the Earth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final, override

import numpy as np

from pymc_dp import _validate
from pymc_dp.errors import DomainError
from pymc_dp.kernel.relations import named, times
from pymc_dp.metrics.metric import ROUNDING, Extent, Metric, checked_weight

EARTH = 6371.0088
"""Mean radius of the Earth, in km."""


@final
@dataclass(frozen=True)
class Geographic(Metric):
    """The great-circle distance between two points, in km, on a sphere of the Earth's mean radius.

    Parameters
    ----------
    latitude, longitude : str
        Names of two columns of degrees. Latitudes need bounds away from the poles.
    weight : float
        Units of ρ per km: 0.1 makes ρ = 1 of 10 km.

    Examples
    --------
    >>> metric = Geographic("lat", "lon")
    >>> vienna, graz = {"lat": [48.208], "lon": [16.373]}, {"lat": [47.071], "lon": [15.438]}
    >>> print(metric.distance(vienna, graz).round(1))
    [144.5]
    """

    latitude: str
    longitude: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        if _validate.text("latitude", self.latitude) == _validate.text("longitude", self.longitude):
            raise DomainError(f"latitude and longitude must be two columns, got {self.latitude!r} for both.")
        object.__setattr__(self, "weight", checked_weight("weight", self.weight))

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        return self.latitude, self.longitude

    def band(self, extents: Mapping[str, Extent]) -> tuple[float, float, float, float]:
        """Return, in radians: the latitude furthest from the equator, the nearest to it, and both ranges' lengths.

        Raises
        ------
        DomainError
            If latitudes are not bounded within (-90, 90).
        """
        lat, lon = extents[self.latitude], extents[self.longitude]
        if not (-90 <= lat.low <= lat.high <= 90 and math.isfinite(lon.high - lon.low)):
            raise DomainError(
                f"Geographic({self.latitude!r}, {self.longitude!r}) needs public bounds in degrees, latitudes within "
                f"(-90, 90): these are ({lat.low:g}, {lat.high:g}) and ({lon.low:g}, {lon.high:g}). Give "
                f"Domain(bounds={{{self.latitude!r}: (south, north), {self.longitude!r}: (west, east)}})."
            )
        furthest = max(abs(lat.low), abs(lat.high))
        nearest = 0.0 if lat.low <= 0 <= lat.high else min(abs(lat.low), abs(lat.high))
        ranges = lat.high - lat.low, lon.high - lon.low
        return tuple(math.radians(angle) for angle in (furthest, nearest, *ranges))  # type: ignore[return-value]

    @override
    def diameter(self, extents: Mapping[str, Extent]) -> float:
        _, nearest, high, wide = self.band(extents)
        chord = math.sin(min(high, math.pi) / 2) ** 2 + (math.cos(nearest) * math.sin(min(wide, math.pi) / 2)) ** 2
        return self.weight * EARTH * 2 * math.asin(min(1.0, math.sqrt(chord) * ROUNDING)) * ROUNDING

    def steepest(self, latitude: float, longitude: float, extents: Mapping[str, Extent]) -> float:
        """Return a Lipschitz constant per unit of ρ of what is Lipschitz in degrees of latitude and of longitude.

        Notes
        -----
        Of two places that are h and w radians apart in latitude and longitude, neither beyond latitude φ, the angle σ
        between them has ``sin²(σ/2) >= sin²(h/2) + cos²φ sin²(w/2)`` (haversine formula), and ``σ/2 >= sin(σ/2)``. As
        sin(t)/t falls, ``sin(h/2) >= s h/2`` with s that of the whole range H of latitudes, and so for longitudes: ``σ²
        >= (s_H h)² + (cos φ s_W w)²``, and by Cauchy-Schwarz ``a h + b w <= σ √((a/s_H)² + (b/(cos φ s_W))²)``. Where
        longitudes go around the Earth, s_W is 0: places of far apart longitudes are the same.
        """
        furthest, _, high, wide = self.band(extents)
        shrunk = [_sinc(high / 2), _sinc(wide / 2) * max(0.0, math.cos(furthest)) / ROUNDING]
        degree = math.pi / 180
        terms = [
            0.0 if slope == 0 else slope / (degree * share) if share > 1e-9 else math.inf
            for slope, share in zip((latitude, longitude), shrunk, strict=True)
        ]
        return math.hypot(*terms) / (self.weight * EARTH) * ROUNDING

    @override
    def distance(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> np.ndarray:
        (one, east), (two, west) = (
            [np.radians(np.asarray(row[name], dtype=np.float64)) for name in self.columns] for row in (first, second)
        )
        square = np.sin((one - two) / 2) ** 2 + np.cos(one) * np.cos(two) * np.sin((east - west) / 2) ** 2
        found: np.ndarray = self.weight * EARTH * 2 * np.arcsin(np.sqrt(np.clip(square, 0, 1)))
        return found

    def __str__(self) -> str:
        return times(self.weight, f"km between ({named(self.latitude)}, {named(self.longitude)})")


def _sinc(angle: float) -> float:
    """sin(t)/t for t in [0, π], from below; 0 beyond."""
    if angle >= math.pi:
        return 0.0
    return math.sin(angle) / angle / ROUNDING if angle > 1e-6 else 1 - angle**2


__all__ = ["EARTH", "Geographic"]
