"""Whether JAX can evaluate a private model: asked before it is paid for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pymc
from pymc import Model
from pymc.sampling.parallel import _cpu_count

from pymc_dp.errors import ArgumentError

BY_JAX = ("numpyro", "blackjax")
"""Samplers whose densities JAX evaluates."""


def asked_for(options: Mapping[str, Any]) -> str:
    """Return the argument of ``pm.sample`` by which JAX evaluates the density; nothing where there is none."""
    mode = (options.get("compile_kwargs") or {}).get("mode")
    given = {name: options.get(name) for name in ("nuts_sampler", "backend")} | {"compile_kwargs": mode}
    return next((f"{name}={it!r}" for name, it in given.items() if it in (*BY_JAX, "jax", "JAX")), "")


def devices_for(options: Mapping[str, Any], chains: int | None, cores: int | None) -> int:
    """Return how many devices of JAX the chains take: BlackJAX one for each, unless they are vectorized."""
    if options.get("nuts_sampler") != "blackjax" or (options.get("nuts") or {}).get("chain_method") == "vectorized":
        return 1
    return chains or max(2, cores or min(4, _cpu_count()))  # as in pm.sample


def require_jax(model: Model, argument: str, devices: int = 1) -> None:
    """Raise where JAX cannot evaluate the density of a model of a simulated release, on so many devices.

    Raises
    ------
    ArgumentError
        With what JAX has no form of, or where BlackJAX is one that PyMC cannot call.
    """
    import jax
    from pymc.sampling.jax import get_jaxified_logp

    if "blackjax" in argument:
        import blackjax

        if not hasattr(blackjax.progress_bar, "gen_scan_fn"):
            raise ArgumentError(
                f"{argument} needs blackjax below 1.6, which PyMC {pymc.__version__} was written for, not "
                f"{version('blackjax')}. Install it: pip install 'blackjax<1.6'"
            )
        if (there := jax.local_device_count()) < devices:  # PyMC asks for many, if JAX has not looked at its own before
            raise ArgumentError(
                f"{argument} needs a device of JAX for each of {devices} chains, and there is {there}. Write "
                "nuts={'chain_method': 'vectorized'}, nuts_sampler='numpyro', or `import pymc.sampling.jax` before "
                "anything is computed by JAX."
            )
    start = model.initial_point(0)
    try:
        jax.eval_shape(jax.grad(get_jaxified_logp(model)), [start[value.name] for value in model.value_vars])
    except Exception as error:  # which kind depends on the operation; nothing private was computed
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise ArgumentError(
            f"{argument} is not possible for this model: JAX cannot evaluate its density ({reason}). Leave it out, or "
            'write nuts_sampler="nutpie".'
        ) from None


__all__ = ["BY_JAX", "asked_for", "devices_for", "require_jax"]
