"""DP-SGD by hand in JAX: per-row gradients by `vmap`, float32, batches by Poisson's scheme, PLD accounting.

Where ε is for persons, they are what a batch is drawn of, and what is clipped is the sum of a person's gradients.

The noise is `jax.random`'s, which is not cryptographic, and float32: what one would write, not what one should publish.
"""

from __future__ import annotations

import functools
import secrets

import jax
import jax.numpy as jnp
import numpy as np
from _job import Job, Peer, Rates, rates, with_constant
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, calibrate_dp_mechanism
from dp_accounting.pld import PLDAccountant

CLIP = 1.0


def _loss(w, row, y, kind):
    """Of one row, or of all rows of a person."""
    score = row @ w
    if kind == "linear":
        return (score - y) ** 2 / 2
    return jnp.where(y >= 0, jax.nn.softplus(score) - y * score, 0.0).sum()


@functools.cache
def noise_multiplier(epsilon: float, delta: float, share: float, steps: int) -> float:
    def event(multiplier: float):
        return SelfComposedDpEvent(PoissonSampledDpEvent(share, GaussianDpEvent(multiplier)), steps)

    return calibrate_dp_mechanism(PLDAccountant, event, epsilon, delta)


@functools.partial(jax.jit, static_argnames=("kind", "settings", "width"))
def _train(x, y, key, multiplier, kind, settings: Rates, width: int):
    n, d = x.shape[0], x.shape[-1]
    gradient = jax.vmap(jax.grad(_loss), (None, 0, 0, None))

    def move(step, state):
        w, total, key = state
        key, batch_key, noise_key = jax.random.split(key, 3)
        taken = jax.random.uniform(batch_key, (n,)) < settings.share
        # Batches of more rows than `width` lose some, which no run here is known to have had: ten sds are left.
        places = jnp.nonzero(taken, size=width, fill_value=0)[0]
        held = jnp.arange(width) < taken.sum()
        each = gradient(w, x[places], y[places], kind)
        short = jnp.minimum(1.0, CLIP / jnp.maximum(jnp.linalg.norm(each, axis=1), 1e-12))
        noised = (each * (held * short)[:, None]).sum(axis=0) + CLIP * multiplier * jax.random.normal(noise_key, (d,))
        w = w - settings.size * noised / (settings.share * n)
        return w, total + jnp.where(step >= settings.steps // 2, w, 0.0), key

    start = jnp.zeros(d, jnp.float32)
    _, total, _ = jax.lax.fori_loop(0, settings.steps, move, (start, start, key))
    return total / (settings.steps - settings.steps // 2)


def fit(
    job: Job, x: np.ndarray, y: np.ndarray, seed: int, settings: Rates | None = None, noise: float = 1.0
) -> np.ndarray:
    """Mean of the last half of the steps; `noise` times as much noise as the claim needs."""
    settings = settings or rates(job)
    rows = jnp.asarray(with_constant(job, x), jnp.float32)
    n, share = len(rows), settings.share
    width = min(n, int(np.ceil(n * share + 10 * np.sqrt(n * share))) + 1)
    multiplier = noise * noise_multiplier(job.epsilon, job.delta, share, settings.steps)
    key = jax.random.key(secrets.randbits(63))
    return np.asarray(_train(rows, jnp.asarray(y, jnp.float32), key, multiplier, job.kind, settings, width))[None]


PEERS = (
    Peer(
        name="DP-SGD by hand, JAX",
        neighbours="add or remove",
        fits={"logistic": fit, "linear": fit, "persons": fit},
        packages=("jax", "dp-accounting"),
    ),
    # Whether the audit would find anything.
    Peer(
        name="control: a tenth of that noise",
        neighbours="add or remove",
        fits={"logistic": functools.partial(fit, noise=0.1)},
    ),
)
