"""d3p: variational inference by DP-SGD (DPSVI), a normal guide with a diagonal covariance.

Where ε is for persons, one example of a batch is a person with an array of rows.
"""

from __future__ import annotations

import functools

import d3p.random as strong
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from _job import Job, Peer, with_constant
from d3p.dputil import approximate_sigma
from d3p.minibatch import subsample_batchify_data
from d3p.svi import DPSVI
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoDiagonalNormal

CLIP, N_DRAWS = 1.0, 500
SHARE, STEPS, SIZE = 0.1, {False: 400, True: 30}, {False: 0.03, True: 0.1}


@functools.cache
def noise(epsilon: float, delta: float, share: float, steps: int) -> float:
    """For one row replaced, by d3p's Fourier accountant."""
    return approximate_sigma(target_eps=epsilon, delta=delta, q=share, num_iter=steps, force_smaller=True)[0]


def _model(x, y, *, kind: str, n: int):
    spread = 2.0 if kind != "linear" and x.shape[-1] <= 20 else 1.0
    w = numpyro.sample("w", dist.Normal(0, spread).expand([x.shape[-1]]).to_event(1))
    sd = numpyro.sample("sd", dist.HalfNormal(1.0)) if kind == "linear" else 1.0
    with numpyro.plate("rows", n, subsample_size=len(x)):
        law = dist.Normal(x @ w, sd) if kind == "linear" else dist.Bernoulli(logits=x @ w)
        if kind == "persons":
            law, y = law.mask(y >= 0).to_event(1), jnp.maximum(y, 0)
        numpyro.sample("y", law, obs=y)


@functools.lru_cache(maxsize=4)
def _trainer(kind: str, n: int, one: tuple[int, ...], batch: int, multiplier: float, small: bool):
    """Guide, what reads its parameters, the start, which depends on no row, and a compiled loop."""
    guide = AutoDiagonalNormal(functools.partial(_model, kind=kind, n=n))
    svi = DPSVI(
        _model,
        guide,
        numpyro.optim.Adam(SIZE[small]),
        Trace_ELBO(),
        clipping_threshold=CLIP,
        dp_scale=multiplier,
        kind=kind,
        n=n,
    )

    def train(x, y, state, key):
        start, get = subsample_batchify_data((x, y), batch)
        _, batches = start(key)
        move = lambda step, state: svi.update(state, *get(step, batches))[0]  # noqa: E731
        return jax.lax.fori_loop(0, STEPS[small], move, state)

    # One start for all tables: an audit would take another one for what the rows have done. The key is replaced.
    state = svi.init(strong.PRNGKey(0), jnp.zeros((batch, *one)), jnp.zeros((batch, *one[:-1])))
    return guide, svi, state, jax.jit(train)


def fit(job: Job, x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    rows, answers = jnp.asarray(with_constant(job, x), jnp.float32), jnp.asarray(y, jnp.float32)
    n, batch = len(rows), max(1, round(SHARE * len(rows)))
    multiplier = noise(job.epsilon, job.delta, batch / n, STEPS[job.small])
    guide, svi, state, train = _trainer(job.kind, n, rows.shape[1:], batch, multiplier, job.small)
    noise_key, batch_key, draw_key = strong.split(strong.PRNGKey(), 3)
    found = svi.get_params(train(rows, answers, state._replace(rng_key=noise_key), batch_key))
    if job.small:
        return np.asarray(found["auto_loc"])[None]
    key = strong.convert_to_jax_rng_key(draw_key)
    draws = guide.sample_posterior(key, found, sample_shape=(N_DRAWS,))["w"]
    return np.asarray(draws)


PEERS = (
    Peer(
        name="DP-SVI, d3p",
        neighbours="replace",
        fits={"logistic": fit, "linear": fit, "persons": fit},
        packages=("d3p", "jax", "numpyro"),
        intervals=True,
    ),
)
