"""Noised counts as one scalar operation: log probability and cumulants, each the slope of the one before."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.assumptions.core import ASSUMPTION_INFER_REGISTRY, FactState, register_assumption
from pytensor.gradient import DisconnectedType, grad_not_implemented
from pytensor.scalar.basic import ScalarOp, exp, float64, switch
from pytensor.scalar.math import sigmoid
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dp.inspection.rows import Array
from pymc_dp.transforms.released_logp import held

KINDS = ("laplace", "gaussian")
"""Of noise, in the order of their numbers in the kernels."""
LEAST, MOST = -700.0, 34.0
"""Of the logarithm of a rate or of odds: beyond, exponentials and whole numbers are no longer exact."""
NARROW = 1 / 64
"""Least scale of noise: there is no noise at whole numbers from there on."""


class NoisedCount(ScalarOp):
    """Log probability of a noised count x, then mean, variance and third cumulant of the exact count given x.

    Inputs are x; eta, the logarithm of the rate of a Poisson count or of the odds of a binomial one; the trials n,
    negative for a Poisson count; number (in `KINDS`) and scale of the noise; and its log probability at zero. In an
    exponential family the log probability has slope ``mean - E[count]`` in eta, the mean has the variance for its
    slope, and the variance the third cumulant: gradients need no other computation.
    """

    nin = 6
    nout = 4

    def __init__(self) -> None:
        super().__init__(output_types_preference=_floats, name="noised_count")
        import_module("pymc_dp.transforms.released_logp_numba")  # numba takes long to import

    @override
    def __reduce__(self) -> Any:
        return type(self), ()

    @property
    def function(self) -> Any:
        """The compiled kernel."""
        from pymc_dp.transforms.count_kernels import noised_count

        return noised_count

    @override
    def impl(self, *inputs: Any) -> tuple[Any, ...]:
        return tuple(np.float64(item) for item in self.function(*[float(item) for item in inputs]))

    @override
    def pullback(self, inputs: Any, outputs: Any, grads: Any) -> list[Any]:
        _, eta, n, *_ = inputs
        _, mean, variance, third = outputs
        expected = switch(n < 0, exp(eta), n * sigmoid(eta))
        slopes = (mean - expected, variance, third)
        known = [
            grad * slope
            for grad, slope in zip(grads[:3], slopes, strict=True)
            if not isinstance(grad.type, DisconnectedType)
        ]
        total = known[0]
        for item in known[1:]:
            total = total + item
        return [total if i == 1 else grad_not_implemented(self, i, item) for i, item in enumerate(inputs)]


class NoisedCounts(Elemwise):
    """`NoisedCount` of arrays.

    What PyTensor's rules say of an elementwise operation, they say of its one output. They would fail on four, where
    one is within the logarithm of a product; nothing is assumed of these.
    """


def _nothing_known(*given: Any) -> list[FactState]:
    return [FactState.UNKNOWN] * NoisedCount.nout


for _key in [_key for _key, _op in ASSUMPTION_INFER_REGISTRY if _op is Elemwise]:
    register_assumption(_key, NoisedCounts)(_nothing_known)


def _floats(*_: Any) -> tuple[Any, ...]:
    return (float64,) * 4


Scale = float | Array
"""Of noise: one for all counts, or one for each."""


def noised_poisson(value: TensorVariable, rate: TensorVariable, kind: str, scale: Scale) -> list[TensorVariable]:
    """Return log probability, mean, variance and third cumulant of Poisson counts behind noised ones."""
    eta = pt.log(pt.clip(rate, np.exp(LEAST), np.exp(MOST)))
    return _noised(value, eta, np.float64(-1.0), kind, scale)


def noised_binomial(
    value: TensorVariable, p: TensorVariable, n: Array | TensorVariable, kind: str, scale: Scale
) -> list[TensorVariable]:
    """Return the same of binomial counts of `n` trials, which depend on no parameter."""
    safe = pt.clip(p, np.exp(LEAST), 1 - 1e-16)
    return _noised(value, pt.log(safe) - pt.log1p(-safe), held(n), kind, scale)


def _noised(value: Any, eta: Any, n: Any, kind: str, scale: Scale) -> list[TensorVariable]:
    number, wide, log_zero = noise_numbers(kind, scale)
    return NoisedCounts(NoisedCount())(value, eta, n, np.float64(number), held(wide), held(log_zero), return_list=True)


def noise_numbers(kind: str, scale: Scale) -> tuple[float, Any, Any]:
    """Return the number of the kind of noise, its scale, and its log probability at zero, of one scale or of each."""
    number, wide = KINDS.index(kind), np.maximum(scale, NARROW)
    log_zero = np.array([_log_zero(number, float(one)) for one in np.ravel(wide)]).reshape(np.shape(wide))
    return (float(number), float(wide), float(log_zero)) if np.ndim(wide) == 0 else (float(number), wide, log_zero)


def log_noise(distance: Any, kind: str, scale: float) -> Any:
    """Log probability of noise of this size, on whole numbers: an array or a tensor, as `distance` is one."""
    _, wide, log_zero = noise_numbers(kind, scale)
    return log_zero - (abs(distance) / wide if kind == "laplace" else 0.5 * (distance / wide) ** 2)


@cache
def _log_zero(number: int, scale: float) -> float:
    from pymc_dp.transforms.count_kernels import log_mass_at_zero

    return log_mass_at_zero(number, scale)


__all__ = ["KINDS", "NARROW", "NoisedCount", "log_noise", "noise_numbers", "noised_binomial", "noised_poisson"]
