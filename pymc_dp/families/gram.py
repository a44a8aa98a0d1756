"""What one row of a regression adds to a release: products of its clamped numbers, as whole numbers on one grid.

Polynomials of the linear predictor that stand in for the log-likelihood of a row, and how far they are off.

A Bernoulli or Poisson response has the log-likelihood A(η) + y B(η): A is approximated by a quadratic and B by a line,
in Chebyshev polynomials on [-R, R], so that sums of products are all that it needs to know of the rows.

References
----------
Huggins, Adams, Broderick (2017), PASS-GLM: polynomial approximate sufficient statistics for scalable Bayesian GLM
inference, Advances in Neural Information Processing Systems 30, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pytensor.tensor as pt

from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.gram import Regression
from pymc_dp.kernel.gram_sums import Regressed, Scaled

FINEST_BITS = 20
"""Of the grid of one number: products of two of them have twice as many."""
SUM_BITS = 62
"""Sums of products stay below two to that power."""
MOST_PREDICTORS = 20
"""Private predictors whose products are unknown numbers of the model; of more, noised gradients are released."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """One array of the table, clamped and scaled: ``t = (x - centre) / half``.

    Attributes
    ----------
    name : str
    centres, halves : tuple of float
        One per column, in units of the array: where t is 0, and what t counts in.
    ball : bool
        Whether the vector of all t of a row has a Euclidean norm of at most 1 (centres are 0 then, and all halves the
        public norm). Else every t lies in [-1, 1] by itself.
    """

    name: str
    centres: tuple[float, ...]
    halves: tuple[float, ...]
    ball: bool = False

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.centres)

    @property
    def names(self) -> tuple[str, ...]:
        """One text per column."""
        return (self.name,) if self.width == 1 else tuple(f"{self.name}[{i}]" for i in range(self.width))


@dataclass(frozen=True, kw_only=True)
class GramSums:
    """A row in cell c, with numbers t (of all sources, d of them) and u (the response), adds some of their products.

    In this order, with one integer each, in steps of ``4**-bits``:

    - 1 to the size of its cell, unless sizes are public;
    - t_1, ..., t_d (unless they are public) and u to the sums of its cell, where there is a `constant`;
    - t_i t_j for i <= j (unless public), t_1 u, ..., t_d u, and u² where there is a `square`: to sums over all cells,
      or, with `apart`, to those of its cell.

    Attributes
    ----------
    sources : tuple of Source
    response : Source
        Of one column.
    cells : tuple of str
        Texts of the cells.
    sizes_known : bool
        Whether the number of rows of every cell is public; with one cell, whether the number of rows is.
    known : bool
        Whether all sources, and so the cells, are public: a row can change its response alone.
    longest : (float, float) or None
        Of the public rows that are `known`, the largest sums of |t| and of t²; None: as large as bounds allow.
    constant, square, apart : bool
    bits : int
        A number t is held as ``rint(2**bits t)``, toward zero in a ball; so that it stays within.
    """

    sources: tuple[Source, ...]
    response: Source
    cells: tuple[str, ...] = ("all rows",)
    sizes_known: bool = True
    known: bool = False
    longest: tuple[float, float] | None = None
    constant: bool = True
    square: bool = True
    apart: bool = False
    bits: int = FINEST_BITS
    kind: Literal["gram"] = "gram"

    @property
    def width(self) -> int:
        """Number of predictors d."""
        return sum(source.width for source in self.sources)

    def reading(self, *, second: bool = False) -> Regressed:
        """Return how the kernel reads a row."""
        balls = tuple(source.width for source in self.sources if source.ball and source.width > 1)
        products = Regression(
            balls=balls,
            boxes=self.width - sum(balls),
            cells=len(self.cells),
            sizes=not self.sizes_known,
            known=self.known,
            constant=self.constant,
            square=self.square,
            apart=self.apart,
            bits=self.bits,
            longest=self.longest,
        )
        scaled = [Scaled(one.centres, one.halves, one.ball) for one in (*self.sources, self.response)]
        return Regressed(tuple(scaled[:-1]), scaled[-1], products)

    @property
    def step(self) -> float:
        """Grid step of every sum; sums are pure numbers."""
        return float(4.0**-self.bits)

    @property
    def centres(self) -> np.ndarray:
        """(d,) array: where each predictor is 0 here, in its own units."""
        return np.array([item for source in self.sources for item in source.centres], dtype=float)

    @property
    def halves(self) -> np.ndarray:
        """(d,) array: what each predictor is counted in."""
        return np.array([item for source in self.sources for item in source.halves], dtype=float)

    @property
    def names(self) -> tuple[str, ...]:
        """One text per predictor."""
        return tuple(name for source in self.sources for name in source.names)

    def scaled(self, intercepts: Any, slopes: Any, dispersion: Any, *, normal: bool) -> tuple[Any, Any, Any]:
        """Return coefficients of the scaled predictors, from natural ones: arrays or tensors.

        With `normal`, the response is scaled too.
        """
        intercepts, slopes = intercepts + (slopes * self.centres).sum(axis=-1), slopes * self.halves
        if not normal:
            return intercepts, slopes, dispersion
        (centre,), (half,) = self.response.centres, self.response.halves
        return (intercepts - centre) / half, slopes / half, dispersion / half

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where the parts lie in the released vector: "sizes", "first" (cell by cell) and "second"."""
        n_cells = len(self.cells)
        sizes = 0 if self.sizes_known else n_cells
        first = n_cells * self.per_cell if self.constant else 0
        second = self.products * (n_cells if self.apart else 1)
        return {
            "sizes": slice(0, sizes),
            "first": slice(sizes, sizes + first),
            "second": slice(sizes + first, sizes + first + second),
        }

    @property
    def per_cell(self) -> int:
        """Sums of first order of one cell: those of t, and that of u at last."""
        return (0 if self.known else self.width) + 1

    @property
    def products(self) -> int:
        """Sums of second order: t_i t_j by rows of the upper triangle, then t_j u, then u²."""
        d = self.width
        return (0 if self.known else d * (d + 1) // 2) + d + self.square

    @property
    def count(self) -> int:
        """Number of sums."""
        return self.parts["second"].stop

    @property
    def labels(self) -> tuple[str, ...]:
        """One text per sum. Names stand for centred and scaled numbers."""
        x, y = self.names, self.response.name
        i, j = np.triu_indices(len(x))
        pairs = [] if self.known else [f"{x[a]} {x[b]}" if a != b else f"{x[a]}^2" for a, b in zip(i, j, strict=True)]
        second = [*pairs, *(f"{name} {y}" for name in x), *([f"{y}^2"] if self.square else [])]
        first = [*([] if self.known else x), y] if self.constant else []
        many = len(self.cells) > 1
        within = [f", {cell}" if many else "" for cell in self.cells]
        sizes = [] if self.sizes_known else [f"rows{cell}" for cell in within]
        ends = within if self.apart else [""]
        return (
            *sizes,
            *(f"sum {name}{cell}" for cell in within for name in first),
            *(f"sum {name}{cell}" for cell in ends for name in second),
        )


def grid_bits(n_rows: int) -> int:
    """Bits of the finest grid on which sums over this (public) number of rows fit."""
    return min(FINEST_BITS, (SUM_BITS - max(int(n_rows), 1).bit_length()) // 2)


LIKELIHOODS = Literal["normal", "bernoulli", "poisson"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Response:
    """Likelihood of the response.

    Attributes
    ----------
    likelihood : {"normal", "bernoulli", "poisson"}
    mean : callable
        Linear predictor to probability or rate: an elementwise function of tensors. Not used for a normal response,
        whose mean is the linear predictor.
    """

    likelihood: LIKELIHOODS
    mean: Callable[[Any], Any] = lambda eta: eta


CHEBYSHEV_NODES = 64
GRID = 2001


def _means(response: Response, eta: Array) -> Array:
    argument = pt.vector("eta")
    found: Array = plain_function([argument], response.mean(argument))(eta)
    return found


def has_means(response: Response, reach: float) -> bool:
    """Whether a likelihood has a rate, or a probability, for all ``|η| <= reach``: its link may be none, or a line."""
    means = _means(response, np.linspace(-reach, reach, GRID))
    return bool(np.all(means >= 0) and np.all(means <= (1 if response.likelihood == "bernoulli" else np.inf)))


def row_terms(response: Response, eta: Array) -> tuple[Array, Array]:
    """A and B of the log-likelihood ``A(η) + y B(η)`` of a row, without what is free of η."""
    mean = _means(response, eta)
    if response.likelihood == "bernoulli":
        p = np.clip(mean, 1e-15, 1 - 1e-15)
        return np.log1p(-p), np.log(p) - np.log1p(-p)
    rate = np.clip(mean, 1e-300, None)
    return -rate, np.log(rate)


def quadratic(response: Response, reach: float) -> tuple[Array, Array]:
    """Coefficients, constant first, of the quadratic for A and of the line for B on ``|η| <= reach``."""
    x = np.cos(np.pi * (np.arange(CHEBYSHEV_NODES) + 0.5) / CHEBYSHEV_NODES)
    found = []
    for values, degree in zip(row_terms(response, reach * x), (2, 1), strict=True):
        basis = np.cos(np.outer(np.arange(degree + 1), np.arccos(x)))
        series = 2 * basis @ values / CHEBYSHEV_NODES
        series[0] /= 2
        power = np.polynomial.chebyshev.cheb2poly(series)
        found.append(power / reach ** np.arange(len(power)))
    return found[0], found[1]


def quadratic_error(response: Response, source: Source, reach: float) -> float:
    """Worst error in nats of the quadratic for one row whose linear predictor is within `reach`; 0 for a normal one.

    The error is linear in y: it is worst at an end of the bounds.
    """
    if response.likelihood == "normal":
        return 0.0
    eta = np.linspace(-reach, reach, GRID)
    errors = [
        np.polynomial.polynomial.polyval(eta, fitted) - values
        for fitted, values in zip(quadratic(response, reach), row_terms(response, eta), strict=True)
    ]
    (centre,), (half,) = source.centres, source.halves
    return max(float(np.abs(errors[0] + y * errors[1]).max()) for y in (centre - half, centre + half))


__all__ = [
    "MOST_PREDICTORS",
    "GramSums",
    "Response",
    "Source",
    "grid_bits",
    "has_means",
    "quadratic",
    "quadratic_error",
]
