"""How JAX evaluates `FiniteGradient`, which has to stay in graphs whose derivatives JAX takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from pytensor.link.jax.dispatch import jax_funcify

from pymc_dp.inspection.cumulative import FiniteGradient


@jax_funcify.register(FiniteGradient)
def finite_gradient(op: FiniteGradient, **_: Any) -> Callable[[Any], Any]:
    """Return what passes on, and a derivative that is no finite number as 0."""
    passed = jax.custom_vjp(lambda x: x)
    passed.defvjp(lambda x: (x, None), lambda _, g: (jnp.where(jnp.isfinite(g), g, 0.0),))
    return passed


__all__ = ["finite_gradient"]
