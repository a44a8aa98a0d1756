"""How far a private posterior is from the one that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import arviz as az
import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.advice.gradients import default_release
from tests.gallery.entry import DELTA, EPSILON, Entry

CLOSE = 0.5
"""Posterior standard deviations that a median may be off."""
ERROR = 0.1
"""Those that chance of the samplers may move a median."""
CHAINS = {"chains": 2, "cores": 1, "progressbar": False}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two posteriors, parameter by parameter, of several elements the furthest.

    Medians are `apart` in standard deviations of the posterior that is not private, and standard deviations of the
    private one are `wider` times those; `error` is the largest Monte Carlo error of a distance.
    """

    apart: dict[str, float]
    wider: dict[str, float]
    error: float
    by: str


def compared(entry: Entry, seed: int) -> Comparison:
    """Sample a model privately, as a user would, and without privacy."""
    source = entry.model()
    model, domain = (source, entry.domain(source))
    if not isinstance(source, pm.Model):
        model, domain = dp.models.from_bambi(source, domain)
    private = dp.sample(model=model, domain=domain, epsilon=EPSILON, delta=DELTA, random_seed=seed, **CHAINS)
    plain = _plain(entry, model, seed, draws=500)
    if max(_errors(entry, plain).values()) > 0.7 * ERROR:
        plain = _plain(entry, model, seed, draws=2000)
    pairs = {
        name: (ours, theirs)
        for (name, ours), (_, theirs) in zip(_looked_at(entry, private), _looked_at(entry, plain), strict=True)
    }
    ours, theirs = _errors(entry, private), _errors(entry, plain)
    wider = {name: _spread(one) / _spread(other) for name, (one, other) in pairs.items()}
    return Comparison(
        apart={name: _apart(*pair) for name, pair in pairs.items()},
        wider={name: float(ratio[np.abs(np.log(ratio)).argmax()]) for name, ratio in wider.items()},
        error=max(float(np.hypot(ours[name] * wider[name].max(), theirs[name])) for name in pairs),
        by=release_of(model, domain, dp.Budget(EPSILON, DELTA)),
    )


def release_of(model: pm.Model, domain: dp.Domain, budget: dp.Budget) -> str:
    """Return what ``dp.sample`` releases of a model, or raise its error.

    Unlike ``dp.explain`` it looks at no sampler: to prove what one row can move takes minutes for some models.
    """
    return "gradients" if default_release(model, domain, budget).by_gradients else "statistics"


def _plain(entry: Entry, model: pm.Model, seed: int, *, draws: int) -> Any:
    """Sample without privacy: only what is compared."""
    with model:
        return pm.sample(draws, tune=max(500, draws // 2), compute_convergence_checks=False, random_seed=seed, **CHAINS)


def _looked_at(entry: Entry, sampled: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the draws of every parameter, a (chains, draws, elements) array, of scales their logarithms."""
    scales: tuple[tuple[Any, Callable[[Any], np.ndarray]], ...] = (
        (entry.locations, np.asarray),
        (entry.scales, np.log),
    )
    for names, scale in scales:
        for name in names:
            drawn = sampled["posterior"][name].to_numpy()
            yield name, scale(drawn.reshape(*drawn.shape[:2], -1))


def _spread(drawn: np.ndarray) -> np.ndarray:
    return drawn.reshape(-1, drawn.shape[-1]).std(axis=0)


def _apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    off = np.median(ours, axis=(0, 1)) - np.median(theirs, axis=(0, 1))
    return float(np.max(np.abs(off) / _spread(theirs)))


def _errors(entry: Entry, sampled: Any) -> dict[str, float]:
    """Monte Carlo errors of medians, in standard deviations of the same posterior."""
    return {
        name: float(np.max(az.mcse(drawn, method="median") / _spread(drawn)))
        for name, drawn in _looked_at(entry, sampled)
    }
