"""Arguments of ``pm.sample``, each with its check: what PyMC would refuse is refused before anything is charged."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import multiprocessing
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from multiprocessing.context import BaseContext
from typing import Any, get_args

import numpy as np
import pymc as pm
from pymc import Model
from pymc.progress_bar import ProgressBarOptions
from pymc.sampling.mcmc import assign_step_methods
from pymc.step_methods import STEP_METHODS
from pymc.util import get_random_generator
from pytensor.compile.mode import Mode, get_mode
from rich.theme import Theme

from pymc_dp import _validate, nuts_samplers
from pymc_dp.errors import ArgumentError
from pymc_dp.nuts_samplers import NEEDS, Check, installed, whole

OWN_ARGUMENTS = (
    *("draws", "epsilon", "delta", "step", "statistics", "domain", "ledger", "model", "tune", "chains", "cores"),
    *("random_seed", "progressbar", "rows", "label"),
)
"""Arguments of ``dp.sample`` that have a name of their own."""
FIXED_ARGUMENTS = {
    "initvals": "a start value computed from rows would show in the trace; give initval= in the model, where it is "
    "listed",
    "return_inferencedata": "an ArviZ trace is what carries the guarantee",
    "trace": "the trace is rebuilt from an allow-list",
    "nuts_sampler_kwargs": "PyMC gives it up; write nuts={...}",
}
INITS = (
    *("auto", "adapt_diag", "jitter+adapt_diag", "jitter+adapt_diag_grad", "advi+adapt_diag", "advi", "advi_map"),
    *("map", "jitter+map", "adapt_full", "jitter+adapt_full"),
)
BACKENDS = {"numba": "numba", "c": "pytensor", "jax": "jax", "pytorch": "torch", "mlx": "mlx"}


def needs_epsilon[**P, Found](function: Callable[P, Found]) -> Callable[P, Found]:
    """Let a function whose other arguments may have any name say which of them was to be ``epsilon``."""

    @wraps(function)
    def asking(*args: P.args, **kwargs: P.kwargs) -> Found:
        if "epsilon" not in kwargs:
            near = difflib.get_close_matches("epsilon", kwargs, n=1, cutoff=0.7)
            meant = f" {near[0]}= is no argument: did you mean epsilon=?" if near else ""
            raise ArgumentError(f"epsilon is missing, the privacy loss of the trace.{meant} Write epsilon=1.0, say.")
        return function(*args, **kwargs)

    return asking


Homes = Callable[[], Mapping[str, str]]
"""Returns how to write what is an argument of something else, by its name there."""


def checked(options: Mapping[str, Any], *, own_step: bool, homes: Homes = dict) -> dict[str, Any]:
    """Return arguments for ``pm.sample``, each checked as far as that is possible without a model.

    Parameters
    ----------
    options : mapping of str to object
        What was given beside the arguments that have a name.
    own_step : bool
        Whether a step of this package samples: settings of PyMC's samplers mean nothing, and nobody may look at its
        states before they are released.
    homes : Homes

    Raises
    ------
    ArgumentError
        Naming the argument, and what it may be.
    """
    found: dict[str, Any] = {}
    nuts: dict[str, Any] = {}
    for name, value in options.items():
        _require_known(name, own_step, homes)
        if name in NUTS:
            nuts[name] = NUTS[name](name, value)
        elif name in STEPS:
            found[name] = _step_settings(name, value, external=options.get("nuts_sampler") in NEEDS)
        else:
            found[name] = (ALWAYS | FREE)[name](name, value)
    if twice := sorted(set(nuts) & set(found.get("nuts", {}))):
        raise ArgumentError(f"{twice[0]} is given twice: by itself and in nuts={{...}}. Give it once.")
    if nuts:  # where every sampler of PyMC finds them
        found["nuts"] = {**found.get("nuts", {}), **nuts}
    _require_consistent(found)
    if (sampler := found.get("nuts_sampler")) in NEEDS:
        nuts_samplers.require_taken(found, sampler)
        if "nuts" in found:
            found["nuts"] = nuts_samplers.settings(sampler, found["nuts"])
    return found


def seed(value: Any) -> Any:
    """Return `random_seed` as ``pm.sample`` takes it."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    try:
        if isinstance(value, bool | np.bool_) or (isinstance(value, int) and value == -1):
            raise ValueError
        get_random_generator(value).spawn(1)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"random_seed must be a whole number >= 0, a sequence of these, a numpy Generator, or None, got {value!r}."
        ) from None
    return value


def progressbar(value: object, options: Mapping[str, Any] | None = None) -> Any:
    """Return `progressbar` as ``pm.sample`` takes it beside checked arguments; no bar where it cannot be drawn."""
    if isinstance(value, bool | np.bool_):
        found: Any = bool(value)
    else:
        found = _validate.choice("progressbar", value, get_args(ProgressBarOptions))
    drawn = importlib.util.find_spec("matplotlib") is not None and nuts_samplers.has_bar(options or {})
    return found if drawn else False


def require_fitting(options: Mapping[str, Any], model: Model, added: Iterable[str] = ()) -> None:
    """Raise for arguments that do not fit the model that is to be sampled.

    Parameters
    ----------
    options : mapping
        What `checked` returned.
    model : pymc.Model
        The model without its rows; with or without the release.
    added : iterable of str
        Names of variables that the release will add.

    Raises
    ------
    ArgumentError
    """
    names = [*(str(var.name) for var in model.unobserved_RVs), *added]
    for name in options.get("var_names") or ():
        if name not in names:
            raise ArgumentError(
                f"var_names holds {name!r}, which is no variable of the model that is sampled (known: {names}): it may "
                f"have been computed from rows.{_validate.nearest(name, names)} Leave it out."
            )
    continuous = all(var.dtype.startswith("float") for var in model.value_vars)
    external = options.get("nuts_sampler") in NEEDS
    if external and not continuous:
        raise ArgumentError(
            f"nuts_sampler={options['nuts_sampler']!r} needs a model without discrete variables. Leave it out."
        )
    nuts_samplers.require_taken(options, nuts_samplers.chosen(options, continuous=continuous))
    if settings := sorted(set(options) & set(STEPS)):
        chosen = ["nuts"] if continuous else [step.name for step in assign_step_methods(model)[1]]
        for name in settings:
            if name not in chosen:
                raise ArgumentError(
                    f"{name}={options[name]!r} is for a sampler that PyMC does not choose for this model; it chooses "
                    f"{', '.join(chosen)}. Leave it out."
                )


def _require_known(name: str, own_step: bool, homes: Homes) -> None:
    if name in FIXED_ARGUMENTS:
        raise ArgumentError(f"{name}= is not accepted: {FIXED_ARGUMENTS[name]}. Leave it out.")
    if name == "callback" and own_step:
        raise ArgumentError(
            "callback= is not accepted where step= holds the rows: it would see states before they are released. "
            "Leave it out."
        )
    known = [*ALWAYS, *([] if own_step else [*FREE, *NUTS, *STEPS])]
    if name in known:
        return
    if name in FREE or name in NUTS or name in STEPS:
        raise ArgumentError(
            f"{name}= is a setting of PyMC's own samplers, which do not run where step= is given. Leave it out."
        )
    way_out = _validate.nearest(name, [*OWN_ARGUMENTS, *known]) or " help(dp.sample) has all that are."
    if home := homes().get(name):
        way_out = f" {name} goes into {home}."
    raise ArgumentError(f"{name}= is no argument of dp.sample or pm.sample.{way_out}")


def _require_consistent(found: Mapping[str, Any]) -> None:
    """Raise for arguments that exclude each other."""
    sampler = found.get("nuts_sampler")
    if sampler not in (None, "pymc"):
        for name in ("callback", "init", *(set(STEPS) - {"nuts"})):
            if name in found and found[name] not in (None, "auto"):
                raise ArgumentError(
                    f"{name}={found[name]!r} has no effect on nuts_sampler={sampler!r}. Leave one of them out."
                )
    backend, compiled = found.get("backend"), found.get("compile_kwargs")
    if backend is not None and "mode" in (compiled or {}):
        raise ArgumentError(f"backend={backend!r} and compile_kwargs['mode'] say the same. Give one of them.")


# --- one check for each argument --------------------------------------------------------------------------------------


def _or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _names(name: str, value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ArgumentError(f"{name} must be a list of names of variables, got {value!r}.")
    names = list(value)
    if not names or not all(isinstance(item, str) for item in names) or len(set(names)) < len(names):
        raise ArgumentError(f"{name} must name variables, at least one and each once, got {names!r}.")
    return names


def _theme(name: str, value: object) -> Any:
    if not isinstance(value, Theme | str):
        raise ArgumentError(f"{name} must be a rich Theme, a text of CSS or None, got {value!r}.")
    return value


def _callback(name: str, value: object) -> Any:
    problem = f"{name} must be a function of (trace, draw) or None, got {value!r}."
    if not callable(value):
        raise ArgumentError(problem)
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return value
    try:
        signature.bind(trace=None, draw=None)
    except TypeError:
        raise ArgumentError(problem) from None
    return value


def _context(name: str, value: object) -> Any:
    if isinstance(value, BaseContext):
        return value
    return _validate.choice(name, value, multiprocessing.get_all_start_methods())


def _threads(name: str, value: object) -> Any:
    return value if value == "auto" else _validate.integer(name, value)


def _init(name: str, value: object) -> str:
    return _validate.choice(name, value.lower() if isinstance(value, str) else value, INITS)


def _backend(name: str, value: object) -> str:
    return installed(name, _validate.choice(name, value, BACKENDS), BACKENDS)


def _compiled(name: str, value: object) -> dict[str, Any]:
    found = _settings(name, value, COMPILED)
    for key in set(found) - {"mode"}:
        found[key] = COMPILED[key](f"{name}[{key!r}]", found[key])
    mode = found.get("mode")
    if mode is not None and not _is_mode(mode):
        raise ArgumentError(
            f"{name}['mode'] must be a mode of PyTensor, such as 'NUMBA' or 'FAST_COMPILE', got {mode!r}."
        )
    if isinstance(mode, str):
        installed(f"{name}['mode']", mode.lower(), BACKENDS)
    return found


def _is_mode(value: object) -> bool:
    try:
        return isinstance(get_mode(value), Mode)
    except Exception:  # PyTensor raises what it happens on
        return False


def _converted(name: str, value: object) -> dict[str, Any]:
    if isinstance(value, Mapping) and "log_likelihood" in value:
        raise ArgumentError(
            f"{name} holds 'log_likelihood': that of rows would show them, and is not paid for. Leave it out; that of "
            "the release is free, pm.compute_log_likelihood(idata.copy(), model=dp.condition(model, "
            "dp.Release.of(idata)))."
        )
    found = _settings(name, value, ("include_transformed",))
    return {key: _validate.flag(f"{name}[{key!r}]", item) for key, item in found.items()}


def _settings(name: str, value: object, known: Iterable[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{name} must map names to values, got {value!r}.")
    known = list(known)
    for key in value:
        if key not in known:
            raise ArgumentError(
                f"{name} holds {key!r}, which is not accepted here (known: {', '.join(known)})."
                f"{_validate.nearest(key, known)} Leave it out."
            )
    return dict(value)


def _step_settings(name: str, value: object, *, external: bool) -> dict[str, Any]:
    if name == "nuts" and external:  # whose own settings PyMC passes on
        return _settings(name, value, value if isinstance(value, Mapping) else ())
    if name == "nuts":
        return {key: NUTS[key](f"{name}[{key!r}]", item) for key, item in _settings(name, value, NUTS).items()}
    return _settings(name, value, STEPS[name])


def _keywords(step: type) -> tuple[str, ...]:
    """Settings of one of PyMC's samplers, without what ``pm.sample`` passes itself."""
    own = ("self", "vars", "model", "initial_point", "compile_kwargs", "rng", "blocked", "args", "kwargs")
    return tuple(name for name in inspect.signature(step.__init__).parameters if name not in own)  # type: ignore[misc]


COMPILED: dict[str, Check] = {
    "mode": lambda _, value: value,
    "on_unused_input": lambda name, value: _validate.choice(name, value, ("raise", "warn", "ignore")),
    "accept_inplace": _validate.flag,
    "allow_input_downcast": _or_none(_validate.flag),
    "profile": _validate.flag,
    "gradient_backend": lambda name, value: _validate.choice(name, value, ("pytensor", "jax")),
}
ALWAYS: dict[str, Check] = {
    "progressbar_theme": _or_none(_theme),
    "quiet": _validate.flag,
    "var_names": _or_none(_names),
    "discard_tuned_samples": _validate.flag,
    "compute_convergence_checks": _validate.flag,
    "keep_warning_stat": _validate.flag,
    "idata_kwargs": _or_none(_converted),
    "callback": _or_none(_callback),
    "mp_ctx": _or_none(_context),
    "blas_cores": _or_none(_threads),
}
"""Arguments that mean something whatever step samples."""
FREE: dict[str, Check] = {
    "nuts_sampler": _or_none(nuts_samplers.sampler),
    "init": _init,
    "jitter_max_retries": whole(0),
    "n_init": whole(1),
    "compile_kwargs": _or_none(_compiled),
    "backend": _or_none(_backend),
}
"""Arguments that choose among PyMC's own samplers."""
NUTS = nuts_samplers.SETTINGS["pymc"]
"""Settings of PyMC's own NUTS; its mass matrix is set by `init`."""
STEPS: dict[str, tuple[str, ...]] = {step.name: _keywords(step) for step in STEP_METHODS} | {pm.NUTS.name: ()}
"""Settings of each of PyMC's samplers, as the mapping ``pm.sample(<name>={...})`` takes."""

__all__ = ["ALWAYS", "FIXED_ARGUMENTS", "FREE", "NUTS", "OWN_ARGUMENTS", "STEPS"]
__all__ += ["checked", "needs_epsilon", "progressbar", "require_fitting", "seed"]
