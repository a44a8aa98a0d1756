"""``pm.gp.HSGP`` and ``pm.gp.HSGPPeriodic`` with a basis that is placed by public bounds.

PyMC's own place the basis by the ``X`` that they see first, which are rows. The number that they compute stands in the
model as a constant, and nothing shows where it is from. Here it is made of public numbers by PyTensor's operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import rebuild, shape_of

FIRST = {"dirichlet": 1.0, "neumann": 0.0, "dirichlet-neumann": 0.5, "neumann-dirichlet": 0.5}
"""Number of the first basis function by boundary condition, as in PyMC's ``calc_eigenvalues``."""


class HSGP(pm.gp.HSGP):
    """A Hilbert space Gaussian process whose basis is placed by public bounds, not by rows.

    Parameters
    ----------
    m : sequence of int
        Number of basis functions per active dimension.
    bounds : sequence of (low, high)
        Public range of each column of ``X``, the same as in ``Domain(bounds=)``. Values outside are clamped.
    c : float, optional
        The box reaches `c` times as far from its centre as the bounds do.
    L : sequence of float, optional
        Half-width of the box per active dimension, at least that of the bounds. Give `c` or `L`.
    cov_func : pymc.gp.cov.Covariance
    **kwargs
        Other arguments of ``pm.gp.HSGP``.

    Raises
    ------
    ArgumentError
        If `bounds` does not have one pair per column of ``X``, or `L` does not reach the bounds.

    Notes
    -----
    It is used as ``pm.gp.HSGP``: `prior`, `prior_linearized` and `conditional` are the same.

    **Guarantee.** None by itself. `bounds`, `c` and `L` are assumed public, and the report lists the numbers.

    References
    ----------
    Solin, Särkkä (2020), doi 10.1007/s11222-019-09886-w; Riutort-Mayol et al. (2023), doi 10.1007/s11222-022-10167-2.

    Examples
    --------
    >>> with pm.Model():
    ...     cov_func = pm.gp.cov.Matern52(1, ls=0.3)
    ...     gp = HSGP(m=[3], c=1.5, bounds=[(0, 1)], cov_func=cov_func)
    ...     basis, sqrt_psd = gp.prior_linearized(np.linspace(0, 1, 5)[:, None])
    >>> basis.eval().shape
    (5, 3)
    """

    def __init__(
        self,
        m: Sequence[int],
        L: Sequence[float] | None = None,
        c: float | None = None,
        *,
        bounds: Sequence[tuple[float, float]],
        cov_func: pm.gp.cov.Covariance,
        **kwargs: Any,
    ) -> None:
        super().__init__(m, L, c, cov_func=cov_func, **kwargs)
        self._low, self._high = _ends(bounds, cov_func.input_dim)
        half = plain_function([], cov_func._slice((self._high - self._low)[None] / 2)[0])()[0]
        reach = np.array([_validate.number("L", each) for each in L]) if L is not None else c * half
        if (reach < half).any():
            raise ArgumentError(
                f"the half-width of the box, {reach.tolist()}, must be at least that of the bounds, {half.tolist()}. "
                "Give a larger L or c."
            )
        self._X_center, self._L = _vector((self._low + self._high) / 2), _vector(reach)

    def prior_linearized(self, X: Any) -> tuple[Variable, Variable]:
        """Return the basis, (n_rows, n_basis_vectors), and the square roots of its spectral density."""
        X = pt.clip(pt.as_tensor(X), _vector(self._low), _vector(self._high))
        found = super().prior_linearized(X)
        shape = (int(np.prod(self._m)), len(self._m))
        held = [var for var in ancestors(list(found), blockers=[X]) if isinstance(var, Constant)]
        arrays = [var for var in held if getattr(var.type, "ndim", 0)]
        numbers = {var: self._numbers() for var in arrays if shape_of(var) == shape}
        numbers |= {var: _vector(var.data) for var in arrays if var.type.ndim == 1 and var.type.dtype.startswith("int")}
        basis, sqrt_psd = rebuild(list(found), numbers)[0]
        return basis, sqrt_psd

    def _numbers(self) -> Variable:
        """Return π times the number of each basis function in each dimension: what is ``meshgrid`` in PyMC."""
        place, columns = pt.arange(int(np.prod(self._m))), []
        lengths = [self._m[axis] for axis in _axes(len(self._m))]
        for dimension, (count, boundary) in enumerate(zip(self._m, self._boundary, strict=True)):
            step = int(np.prod(lengths[_axes(len(self._m)).index(dimension) + 1 :]))
            columns.append(np.pi * (place // step % count + FIRST[boundary]))
        found: Variable = pt.stack(columns, axis=1)
        return found


class HSGPPeriodic(pm.gp.HSGPPeriodic):
    """A periodic Hilbert space Gaussian process that is centred by public bounds, not by rows.

    Parameters
    ----------
    m : int
        Number of basis functions.
    bounds : (low, high)
        Public range of ``X``, the same as in ``Domain(bounds=)``. Its middle is subtracted from ``X``.
    cov_func : pymc.gp.cov.Periodic
    **kwargs
        Other arguments of ``pm.gp.HSGPPeriodic``.

    Notes
    -----
    **Guarantee.** None by itself. `bounds` is assumed public, and the report lists the number.

    Examples
    --------
    >>> with pm.Model():
    ...     cov_func = pm.gp.cov.Periodic(1, period=12, ls=1.0)
    ...     gp = HSGPPeriodic(m=4, bounds=(0, 12), cov_func=cov_func)
    ...     (cosines, sines), psd = gp.prior_linearized(np.arange(12.0)[:, None])
    >>> cosines.eval().shape
    (12, 4)
    """

    def __init__(self, m: int, *, bounds: tuple[float, float], cov_func: pm.gp.cov.Periodic, **kwargs: Any) -> None:
        super().__init__(m, cov_func=cov_func, **kwargs)
        low, high = _ends([bounds], 1)
        self._X_center = _vector((low + high) / 2)


def _axes(n_dims: int) -> list[int]:
    """Return the order in which ``np.meshgrid`` nests dimensions, the outermost first."""
    return [1, 0, *range(2, n_dims)] if n_dims > 1 else [0]


def _ends(bounds: Any, n_columns: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    pairs = [_validate.pair(f"bounds[{place}]", pair) for place, pair in enumerate(_validate.several("bounds", bounds))]
    if len(pairs) != n_columns:
        raise ArgumentError(f"bounds must have a pair for each of the {n_columns} columns of X, got {len(pairs)}.")
    low, high = np.array(
        [[_validate.number(f"bounds[{place}]", end) for end in pair] for place, pair in enumerate(pairs)]
    ).T
    if (low >= high).any():
        raise ArgumentError(f"bounds must have low < high, got {pairs}.")
    return low, high


def _vector(numbers: np.ndarray[Any, Any]) -> Variable:
    """Return numbers as a vector that an operation makes of scalars: an array without a name may be made of rows."""
    found: Variable = pt.stack([pt.constant(number, dtype=str(numbers.dtype)) for number in numbers])
    return found


__all__ = ["HSGP", "HSGPPeriodic"]
