"""NUTS of PyMC, nutpie, NumPyro and BlackJAX: which of them runs, and what each takes.

What a sampler does not take it refuses when it is called, and then the budget is spent.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import pymc as pm
from pymc.sampling import mcmc
from pytensor.compile.mode import get_mode
from pytensor.link.jax.linker import JAXLinker
from pytensor.link.numba.linker import NumbaLinker

from pymc_dp import _validate
from pymc_dp._versions import version_of
from pymc_dp.errors import ArgumentError

Check = Callable[[str, Any], Any]
NEEDS = {"nutpie": "nutpie", "blackjax": "blackjax", "numpyro": "numpyro"}
"""Packages of samplers that are not PyMC's own."""
LEAST: tuple[int, ...] = getattr(mcmc, "NUTPIE_MIN_VERSION", (0, 16, 10))
"""Version of nutpie below which PyMC does not call it."""


def whole(low: int) -> Check:
    """Return a check that a number is whole, and not below another."""
    return lambda name, value: _validate.integer(name, value, low)


def between(low: float, high: float) -> Check:
    """Return a check that a number lies between two others."""

    def check(name: str, value: object) -> float:
        number = _validate.number(name, value)
        if not low < number < high:
            raise ArgumentError(f"{name} must lie between {low:g} and {high:g}, both excluded, got {number}.")
        return number

    return check


def _one_of(*known: str) -> Check:
    return lambda name, value: _validate.choice(name, value, known)


def _depths(name: str, value: object) -> Any:
    """Return one depth, or that of the tuning and that of the draws."""
    if not isinstance(value, tuple):
        return _validate.integer(name, value)
    if len(value) != 2:
        raise ArgumentError(f"{name} must be a whole number, or two: of the tuning and of the draws, got {value!r}.")
    return tuple(_validate.integer(name, item) for item in value)


POSITIVE = between(0, math.inf)
SETTINGS: dict[str, dict[str, Check]] = {
    "pymc": {
        "target_accept": between(0, 1),
        "max_treedepth": whole(1),
        "early_max_treedepth": whole(1),
        "step_scale": POSITIVE,
        "Emax": POSITIVE,
        "gamma": POSITIVE,
        "k": between(0.5, 1),
        "t0": whole(0),
        "adapt_step_size": _validate.flag,
    },
    "nutpie": {
        "target_accept": between(0, 1),
        "maxdepth": whole(1),
        "mindepth": whole(0),
        "max_energy_error": POSITIVE,
        "initial_step": POSITIVE,
        "adaptation": _one_of("diag", "draw_diag", "low_rank"),
        "mass_matrix_switch_freq": whole(1),
        "store_divergences": _validate.flag,
    },
    "numpyro": {
        "target_accept": between(0, 1),
        "max_tree_depth": _depths,
        "step_size": POSITIVE,
        "adapt_step_size": _validate.flag,
        "adapt_mass_matrix": _validate.flag,
        "dense_mass": _validate.flag,
        "find_heuristic_step_size": _validate.flag,
        "regularize_mass_matrix": _validate.flag,
        "jitter": _validate.flag,
        "chain_method": _one_of("parallel", "sequential", "vectorized"),
    },
    "blackjax": {
        "target_accept": between(0, 1),
        "max_num_doublings": whole(1),
        "initial_step_size": POSITIVE,
        "is_mass_matrix_diagonal": _validate.flag,
        "jitter": _validate.flag,
        "chain_method": _one_of("parallel", "vectorized"),
    },
}
"""Settings of each sampler, as ``nuts={...}`` takes them; a mass matrix is PyMC's `init`, or adapted."""
OWN_WORDS = {"nutpie": "maxdepth", "numpyro": "max_tree_depth", "blackjax": "max_num_doublings"}
"""What each sampler calls `max_treedepth`."""
COMPILED = ("mode", "gradient_backend")
"""What nutpie takes of `compile_kwargs`."""


def installed(name: str, value: str, needs: Mapping[str, str]) -> str:
    """Return a value that needs a package, where it is installed."""
    needed = [needs[value]] if value in needs else []
    needed += ["jax"] * (value in ("blackjax", "numpyro"))
    for package in needed:
        if importlib.util.find_spec(package) is None:
            raise ArgumentError(f"{name}={value!r} needs the package {package}, which is not installed. Leave it out.")
    return value


def sampler(name: str, value: object) -> str:
    """Return `nuts_sampler` as ``pm.sample`` takes it, where PyMC can call it."""
    found = installed(name, _validate.choice(name, value, ("pymc", *NEEDS)), NEEDS)
    if found == "nutpie" and not mcmc.NUTPIE_INSTALLED:
        raise ArgumentError(f"{name}='nutpie': nutpie was installed after PyMC was imported. Start Python anew.")
    if found == "nutpie" and not _is_new_enough():
        least = ".".join(map(str, LEAST))
        raise ArgumentError(
            f"{name}='nutpie' needs nutpie {least} or later, which PyMC {pm.__version__} asks for, not "
            f"{version_of('nutpie')}. Install it: pip install 'nutpie>={least}'"
        )
    return found


def chosen(options: Mapping[str, Any], *, continuous: bool = True) -> str:
    """Return the sampler by NUTS that ``pm.sample`` runs with these arguments, by PyMC's own rule.

    PyMC takes nutpie by itself where it is installed and new enough, nothing asks for what PyMC's own NUTS alone has
    (`init`, `callback`), and the mode of PyTensor is one of Numba or JAX.

    Parameters
    ----------
    options : mapping
        What `checked` returned.
    continuous : bool
        Whether all free variables of the model are, so that nothing but NUTS runs.
    """
    if given := options.get("nuts_sampler"):
        return str(given)
    apt = (
        continuous
        and mcmc.NUTPIE_INSTALLED
        and options.get("init", "auto") == "auto"
        and options.get("callback") is None
        and isinstance(_linker(options), NumbaLinker | JAXLinker)
        and _is_new_enough()
    )
    return "nutpie" if apt else "pymc"


def settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for `nuts_sampler`, one that is not PyMC's own, in its own words and each checked.

    Raises
    ------
    ArgumentError
        Naming the setting, and what to write.
    """
    known, depth = SETTINGS[name], OWN_WORDS[name]
    if "max_treedepth" in given and depth in given:
        raise ArgumentError(f"max_treedepth is given twice: {name} calls it {depth}. Give it once.")
    found = {}
    for key, value in given.items():
        own = depth if key == "max_treedepth" else key
        if own in known:
            found[own] = known[own](f"nuts[{key!r}]", value)
        elif key in SETTINGS["pymc"]:
            raise ArgumentError(_not_taken(key, f"nuts_sampler={name!r}"))
        else:
            raise ArgumentError(
                f"nuts holds {key!r}, which is no setting for nuts_sampler={name!r} (known: {', '.join(known)})."
                f"{_validate.nearest(key, known)} Leave it out."
            )
    return found


def require_taken(options: Mapping[str, Any], name: str) -> None:
    """Raise for arguments that the sampler does not take which runs.

    Parameters
    ----------
    options : mapping
        What `checked` returned.
    name : str
        Of the sampler: `chosen`.

    Raises
    ------
    ArgumentError
    """
    written = f"nuts_sampler={name!r}"
    if name == "nutpie" and not options.get("nuts_sampler"):
        written = "nutpie, which PyMC takes by itself where it is installed,"
        for key in options.get("nuts") or ():
            if key != "max_treedepth" and key not in SETTINGS["nutpie"]:
                raise ArgumentError(_not_taken(key, written))
    compiled = options.get("compile_kwargs") or {}
    if name == "nutpie":
        _require_by_numba(options, compiled, written)
    elif name == "pymc" and "gradient_backend" in compiled:
        raise ArgumentError("compile_kwargs['gradient_backend'] is for nutpie, and PyMC's own NUTS runs. Leave it out.")
    if name in ("numpyro", "blackjax") and options.get("idata_kwargs"):
        key = next(iter(options["idata_kwargs"]))
        raise ArgumentError(
            f"idata_kwargs[{key!r}] is not taken by {written}. Leave it out, or write nuts_sampler='pymc'."
        )


def has_bar(options: Mapping[str, Any]) -> bool:
    """Whether the sampler can draw its bar: BlackJAX needs a package for it, and has none for vectorized chains."""
    if options.get("nuts_sampler") != "blackjax":
        return True
    if importlib.util.find_spec("fastprogress") is None or not version_of("fastprogress").startswith("1.0."):
        return False
    return (options.get("nuts") or {}).get("chain_method") != "vectorized"


def _require_by_numba(options: Mapping[str, Any], compiled: Mapping[str, Any], written: str) -> None:
    """Raise for what nutpie does not compile a private model with."""
    for key in compiled:
        if key not in COMPILED:
            raise ArgumentError(
                f"compile_kwargs[{key!r}] is not taken by {written.removesuffix(',')}. Leave it out, or write "
                "nuts_sampler='pymc'."
            )
    backend, mode = options.get("backend"), compiled.get("mode")
    if compiled.get("gradient_backend") == "jax":
        what = "compile_kwargs['gradient_backend']='jax'"
    elif isinstance(_linker(options), JAXLinker):
        what = f"backend={backend!r}" if backend else f"compile_kwargs['mode']={mode!r}" if mode else "PyTensor's JAX"
    else:
        return
    raise ArgumentError(
        f"{what} is not possible with {written} since a private model holds numbers without names. Write "
        "nuts_sampler='numpyro', which samples by JAX, or backend='numba'."
    )


def _not_taken(key: str, written: str) -> str:
    return (
        f"{key}= is a setting of PyMC's own NUTS; {written} does not take it. Write nuts_sampler='pymc', or leave it "
        "out."
    )


def _linker(options: Mapping[str, Any]) -> Any:
    """Return PyTensor's linker of the functions that PyMC compiles."""
    backend = options.get("backend")
    mode = (options.get("compile_kwargs") or {}).get("mode")
    return get_mode({"c": "cvm"}.get(backend, backend) if backend else mode).linker


def _is_new_enough() -> bool:
    numbers = [re.match(r"\d+", part) for part in version_of("nutpie").split(".")[:3]]
    return tuple(int(number[0]) for number in numbers if number) >= LEAST


__all__ = ["NEEDS", "SETTINGS", "between", "chosen", "has_bar", "installed", "require_taken", "sampler"]
__all__ += ["settings", "whole"]
