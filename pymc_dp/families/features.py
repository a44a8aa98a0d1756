"""What one row adds to a release beside counts and powers: any bounded numbers computed from it, as integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.stated_sums import StatedSums
from pymc_dp.families.statistic import BoundedMoments, ExposedCounts, LevelCounts, made_up
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.readings import Numbers
from pymc_dp.kernel.shapes import GRID


@dataclass(frozen=True, kw_only=True)
class Transform:
    """A function of one number, of the name by which the kernel knows it.

    Attributes
    ----------
    of_array : callable
        Value and argument to a NumPy array.
    of_tensor : callable
        The same for PyTensor.
    label : str
        Text of it, with ``{x}`` and ``{a}``.
    turn : callable or None
        Where it turns, as a function of its argument: its extremes over an interval lie there or at the ends.
    """

    of_array: Callable[[Any, float], Any]
    of_tensor: Callable[[Any, float], Any]
    label: str
    turn: Callable[[float], float] | None = None


TRANSFORMS: dict[str, Transform] = {
    "identity": Transform(of_array=lambda x, a: x, of_tensor=lambda x, a: x, label="{x}"),
    "log": Transform(of_array=lambda x, a: np.log(x), of_tensor=lambda x, a: pt.log(x), label="log {x}"),
    "log_rest": Transform(
        of_array=lambda x, a: np.log1p(-x), of_tensor=lambda x, a: pt.log1p(-x), label="log(1 - {x})"
    ),
    "reciprocal": Transform(of_array=lambda x, a: 1 / x, of_tensor=lambda x, a: 1 / x, label="1/{x}"),
    "power": Transform(of_array=lambda x, a: x**a, of_tensor=lambda x, a: x**a, label="{x}^{a:g}"),
    "distance": Transform(
        of_array=lambda x, a: abs(x - a),
        of_tensor=lambda x, a: pt.abs(x - a),
        label="|{x} - {a:g}|",
        turn=lambda a: a,
    ),
    "cos": Transform(of_array=lambda x, a: np.cos(x), of_tensor=lambda x, a: pt.cos(x), label="cos {x}"),
    "sin": Transform(of_array=lambda x, a: np.sin(x), of_tensor=lambda x, a: pt.sin(x), label="sin {x}"),
    "square": Transform(
        of_array=lambda x, a: (x - a) ** 2,
        of_tensor=lambda x, a: (x - a) ** 2,
        label="({x} - {a:g})^2",
        turn=lambda a: a,
    ),
    "log_square": Transform(
        of_array=lambda x, a: (np.log(x) - a) ** 2,
        of_tensor=lambda x, a: (pt.log(x) - a) ** 2,
        label="(log {x} - {a:g})^2",
        turn=np.exp,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One number of a row: ``k = clip(rint((f(x) - centre) / unit), -reach, reach)``, x the clamped value.

    Whatever the arithmetic of f does, no row is ever further from 0 than `reach`.

    Attributes
    ----------
    transform : str
        Key of `TRANSFORMS`, or "product": of two entries of a row of several, less the middles of their bounds.
    argument : float
        Exponent or location, where it has one.
    columns : tuple of int
        Entry of a row that it is computed from; two for a product.
    centre, unit : float
        Origin and grid step, in units of f.
    reach : int
        In grid steps.
    """

    transform: str
    argument: float = 0.0
    columns: tuple[int, ...] = (0,)
    centre: float
    unit: float
    reach: int

    @property
    def half_width(self) -> float:
        """Largest distance of f from the centre."""
        return self.unit * self.reach

    def of_rows(self, rows: Array, middle: float) -> Array:
        """Return f of unclamped rows, (n_rows, width): (n_rows,) array; `middle` is that of the bounds."""
        first, *second = (rows[:, column] for column in self.columns)
        if self.transform == "product":
            return (first - middle) * (second[0] - middle)
        return np.asarray(TRANSFORMS[self.transform].of_array(first, self.argument))

    def label(self, names: Sequence[str]) -> str:
        """Text of it, with the names of the entries of a row."""
        x = [names[column] for column in self.columns]
        if self.transform == "product":
            found = f"{x[0]} {x[1]}" if x[0] != x[1] else f"{x[0]}^2"
        elif self.transform == "square" and self.argument == 0:
            found = f"{x[0]}^2"
        else:
            found = TRANSFORMS[self.transform].label.format(x=x[0], a=self.argument).replace("- -", "+ ")
        return f"sum {found}" if self.centre == 0 else f"sum ({found} - {self.centre:g})".replace("- -", "+ ")


def feature(
    transform: str, low: float, high: float, *, argument: float = 0.0, column: int = 0, whole: bool = False
) -> Feature:
    """Return a feature of values in [low, high], centred in the middle of what it can be.

    Parameters
    ----------
    whole : bool
        Whether f is a whole number: its grid is then exact.
    """
    known = TRANSFORMS[transform]
    if transform in ("cos", "sin"):
        least, most = -1.0, 1.0
    else:
        turns = [] if known.turn is None else [min(max(float(known.turn(argument)), low), high)]
        ends = [float(known.of_array(np.float64(x), argument)) for x in (low, high, *turns)]
        least, most = min(ends), max(ends)
    half = (most - least) / 2
    centre = least + half
    if whole:
        unit = 1.0 if (most - least) % 2 == 0 else 0.5
        return Feature(
            transform=transform,
            argument=argument,
            columns=(column,),
            centre=centre,
            unit=unit,
            reach=round(half / unit),
        )
    return Feature(
        transform=transform, argument=argument, columns=(column,), centre=centre, unit=half / GRID, reach=GRID
    )


def product(first: int, second: int, half_widths: Sequence[float]) -> Feature:
    """Return the product of two entries of a row (or the square of one), less the middles of their bounds.

    A square lies in [0, h²]: it is centred at h²/2.
    """
    size = half_widths[first] * half_widths[second]
    if first == second:
        return Feature(transform="product", columns=(first, second), centre=size / 2, unit=size / GRID, reach=GRID // 2)
    return Feature(transform="product", columns=(first, second), centre=0.0, unit=size / GRID, reach=GRID)


def curve(low: float, high: float, *, log: bool = False) -> tuple[Feature, Feature]:
    """Return g and g² about the middle of what g can be, g the value or its logarithm."""
    ends = (float(np.log(low)), float(np.log(high))) if log else (low, high)
    half = (ends[1] - ends[0]) / 2
    middle = ends[0] + half
    line = Feature(transform="log" if log else "identity", centre=middle, unit=half / GRID, reach=GRID)
    square = Feature(
        transform="log_square" if log else "square",
        argument=middle,
        centre=half**2 / 2,
        unit=half**2 / GRID,
        reach=GRID // 2,
    )
    return line, square


Pairing = Literal["apart", "circle", "curve", "products"]


@dataclass(frozen=True, kw_only=True)
class BoundedFeatures:
    """A row adds one integer per feature.

    Attributes
    ----------
    low, high : float
        Public bounds of every entry of a row.
    features : tuple of Feature
    pairing : {"apart", "circle", "curve", "products"}
        What is known of several features together: nothing; (cos, sin); (g, g²) of one centred number; entries of a
        row about the middle of the bounds and all their products.
    names : tuple of str
        Of the entries of a row.
    """

    low: float
    high: float
    features: tuple[Feature, ...]
    pairing: Pairing = "apart"
    names: tuple[str, ...] = ("x",)
    kind: Literal["features"] = "features"

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per feature."""
        return tuple(feature.label(self.names) for feature in self.features)

    @property
    def steps(self) -> tuple[float, ...]:
        """Grid step of each feature, in its own units."""
        return tuple(feature.unit for feature in self.features)

    @property
    def scales(self) -> tuple[float, ...]:
        """Largest distance of each feature from its centre, in its own units."""
        return tuple(feature.half_width for feature in self.features)

    @property
    def shifts(self) -> tuple[float, ...]:
        """What is subtracted from each feature of a row, in its own units: its centre."""
        return tuple(feature.centre for feature in self.features)

    def of_rows(self, values: Array) -> Array:
        """Return the features of unclamped rows: (n_rows, n_features), in their own units, not all of them finite."""
        rows, middle = values.reshape(len(values), self.width), (self.low + self.high) / 2
        with np.errstate(all="ignore"):
            return np.stack([feature.of_rows(rows, middle) for feature in self.features], axis=-1)

    def simulated_mean(self, rng: np.random.Generator, count: int) -> Array:
        """Mean statistic of made-up rows, nothing subtracted: (n_features,) array."""
        return np.asarray(self.of_rows(made_up(rng, self.low, self.high, count, self.width)).mean(axis=0))

    def projected(self, sums: Array, n: Array, noise: Array) -> Array:
        """Return the sums of `n` rows nearest to given ones, one by one, per cell: no further than every row can be.

        Parameters
        ----------
        sums : (n_cells, n_features) array
            In units of the features, centres subtracted.
        n : (n_cells,) array
        noise : (n_features,) array
            Scale of the noise.
        """
        least, most = -np.outer(n, self.scales), np.outer(n, self.scales)
        if self.pairing == "products":
            return self._projected_products(np.clip(sums, least, most), n, noise)
        if self.pairing != "curve":
            return np.clip(sums, least, most)
        line = np.clip(sums[:, 0], least[:, 0], most[:, 0])
        below = np.zeros(len(n))
        np.divide(line**2, n, out=below, where=n > 0)  # squares of one number are no less than that
        below = np.minimum(below + noise[1] - n * self.features[1].centre, most[:, 1])
        return np.stack([line, np.clip(sums[:, 1], below, most[:, 1])], axis=-1)

    def _projected_products(self, sums: Array, n: Array, noise: Array) -> Array:
        """Let products leave a covariance that is positive definite: no variance, in any direction, below the noise."""
        d = self.width
        rows, columns = np.triu_indices(d)
        first = sums[:, :d]
        products = sums[:, d:] + np.outer(n, self.shifts[d:])
        matrices = np.empty((len(n), d, d))
        matrices[:, rows, columns] = matrices[:, columns, rows] = products
        about = np.einsum("ci,cj,c->cij", first, first, 1 / np.maximum(n, 1))
        values, vectors = np.linalg.eigh(matrices - about)
        values = np.maximum(values, noise[d:].max())
        matrices = np.einsum("cij,cj,ckj->cik", vectors, values, vectors) + about
        found = np.concatenate([first, matrices[:, rows, columns] - np.outer(n, self.shifts[d:])], axis=1)
        return np.where(n[:, None] > 0, found, 0.0)

    @property
    def width(self) -> int:
        """Entries of a row."""
        return len(self.names)

    def reading(self, *, second: bool = False) -> Numbers:
        """Return how the kernel reads a row: of a curve and of products, what is not squared or multiplied."""
        firsts = {"curve": 1, "products": self.width}.get(self.pairing, len(self.features))
        read = self.features[:firsts]
        return Numbers(
            low=self.low,
            high=self.high,
            width=self.width,
            functions=tuple((one.transform, one.argument, one.columns[0]) for one in read),
            centres=tuple(one.centre for one in read),
            units=tuple(one.unit for one in read),
            reaches=tuple(one.reach for one in read),
            together=self.pairing,
        )


SumStatistic = BoundedMoments | BoundedFeatures | StatedSums
RowStatistic = LevelCounts | SumStatistic | ExposedCounts


__all__ = ["TRANSFORMS", "BoundedFeatures", "Feature", "RowStatistic", "SumStatistic", "curve", "feature", "product"]
