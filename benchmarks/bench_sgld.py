"""Steps of private SGLD per second, logistic regression, beside a loop written by hand for it in JAX, turn by turn.

Both use what cores are free; where others are at work too, seconds of all cores together say more than the clock.
The library's loop is the kernel's, which writes every row's gradient out, whatever the model is. Beside it: rows that
come or go, which are mapped one by one; ten times the rows; and the whole of ``dp.sample``.
"""

from __future__ import annotations

import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
from _measure import Report, in_turn

import pymc_dp as dp
from pymc_dp.domain import Domain
from pymc_dp.step_methods.langevin import SGLD

N_ROWS, N_COLUMNS = 32561, 100
STEPS, CALLS = 2000, 1000  # steps per call; calls that are paid for
CLIP, STEP_SIZE = 1.0, 1e-6


def make_rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(N_ROWS, N_COLUMNS)) / np.sqrt(N_COLUMNS)
    truth = rng.normal(size=N_COLUMNS)
    return x, (rng.random(N_ROWS) < 1 / (1 + np.exp(-x @ truth))).astype(np.int64)


def model_of(x: np.ndarray, y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=N_COLUMNS)
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ b, observed=y)
    return model


def library(
    x: np.ndarray, y: np.ndarray, batch: int, sampling: str = "poisson", neighbours: str = "replace", **options
):
    """The step itself knows nothing of logistic regression."""
    with model_of(x, y), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = SGLD(
            batch_size=batch,
            clip_norm=CLIP,
            step_size=STEP_SIZE,
            sampling=sampling,
            steps_per_draw=STEPS,
            epsilon=1000.0,
            delta=1e-5,
            domain=Domain(neighbours=neighbours, n_max=len(y) if neighbours == "add_remove" else None),
            **options,
        )
    step.setup_chain(np.random.default_rng(0), 0, CALLS)
    point = {"b": np.zeros(N_COLUMNS)}
    return lambda: step.step(point)


def sampled(x: np.ndarray, y: np.ndarray, batch: int):
    """As many steps by ``dp.sample``, kept every hundredth, with its trace; planned and compiled anew each time."""
    step = SGLD(batch_size=batch, clip_norm=CLIP, step_size=STEP_SIZE, steps_per_draw=100)
    quiet = {"quiet": True, "compute_convergence_checks": False}

    def run(draws: int):
        with model_of(x, y), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"step": step, "tune": 0, "chains": 1, "cores": 1, "domain": Domain(), **quiet}
            dp.sample(draws, epsilon=1000.0, delta=1e-5, progressbar=False, **options)

    return run


def by_hand(x: np.ndarray, y: np.ndarray, batch: int):
    """One fused float32 loop; batches drawn with replacement, which is fastest and has no proved curve."""
    rows, labels = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    scale = N_ROWS / batch

    @jax.jit
    def run(b, key):
        def move(_, state):
            b, key = state
            key, batch_key, noise_key = jax.random.split(key, 3)
            places = jax.random.randint(batch_key, (batch,), 0, N_ROWS)
            taken = rows[places]
            residual = labels[places] - jax.nn.sigmoid(taken @ b)
            norms = jnp.abs(residual) * jnp.sqrt((taken * taken).sum(axis=1))
            total = (residual * jnp.minimum(1.0, CLIP / norms)) @ taken
            noise = jax.random.normal(noise_key, b.shape)
            return b + STEP_SIZE * (scale * total - b) + jnp.sqrt(2 * STEP_SIZE) * noise, key

        return jax.lax.fori_loop(0, STEPS, move, (b, key))[0]

    start, key = jnp.zeros(N_COLUMNS, jnp.float32), jax.random.key(0)
    return lambda: run(start, key).block_until_ready()


def by_vmap(x: np.ndarray, y: np.ndarray, batch: int):
    """The same loop with per-row gradients from `jax.vmap(jax.grad(...))`, as one writes it for any model."""
    rows, labels = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    scale = N_ROWS / batch

    def logp(b, row, label):
        score = row @ b
        return label * score - jax.nn.softplus(score)

    @jax.jit
    def run(b, key):
        def move(_, state):
            b, key = state
            key, batch_key, noise_key = jax.random.split(key, 3)
            places = jax.random.randint(batch_key, (batch,), 0, N_ROWS)
            each = jax.vmap(jax.grad(logp), (None, 0, 0))(b, rows[places], labels[places])
            norms = jnp.sqrt((each * each).sum(axis=1))
            total = (each * jnp.minimum(1.0, CLIP / norms)[:, None]).sum(axis=0)
            noise = jax.random.normal(noise_key, b.shape)
            return b + STEP_SIZE * (scale * total - b) + jnp.sqrt(2 * STEP_SIZE) * noise, key

        return jax.lax.fori_loop(0, STEPS, move, (b, key))[0]

    start, key = jnp.zeros(N_COLUMNS, jnp.float32), jax.random.key(0)
    return lambda: run(start, key).block_until_ready()


def bench(rng: np.random.Generator, batch: int) -> bool:
    x, y = make_rows(rng)
    times = in_turn(
        {
            "Poisson": library(x, y, batch, "poisson"),
            "without replacement": library(x, y, batch, "without_replacement"),
            "float32": library(x, y, batch, dtype="float32"),
            "rows that come or go": library(x, y, batch, neighbours="add_remove"),
            "JAX by hand": by_hand(x, y, batch),
            "JAX by vmap": by_vmap(x, y, batch),
        },
        repeats=7,
    )
    report = Report(f"Steps per second, logistic regression, n = {N_ROWS}, d = {N_COLUMNS}, batch {batch}")
    for name in times.seconds:
        report.add(name, f"{STEPS / times.median(name):,.0f} (best {STEPS / times.least(name):,.0f})")
    for name, least in (
        ("Poisson", 0.6),
        ("without replacement", 0.6),
        ("float32", 0.6),
        ("rows that come or go", 0.2),
    ):
        median, best = times.ratio("JAX by hand", name)
        of_cores = times.ratio_of_cores("JAX by hand", name)
        report.add(
            f"{name}, over JAX by hand",
            f"{median:.2f} (best over best {best:.2f}, seconds of cores {of_cores:.2f})",
            f">= {least}",
            met=median >= least,
        )
    median, best = times.ratio("JAX by vmap", "Poisson")
    report.add("Poisson, over JAX by vmap", f"{median:.2f} (best over best {best:.2f})")
    return report.finish()


def flat_in_rows(rng: np.random.Generator, batch: int = 256) -> bool:
    """Batches of the same size out of ten times the rows: what is left is waiting for memory."""
    x, y = make_rows(rng)
    many = np.tile(x, (10, 1)), np.tile(y, 10)
    runs = {
        f"{name}, {sampling}": library(*rows, batch, sampling)
        for sampling in ("poisson", "without_replacement")
        for name, rows in (("n", (x, y)), ("10 n", many))
    }
    times = in_turn(runs, repeats=7)
    report = Report(f"Ten times the rows, d = {N_COLUMNS}, batch {batch}: seconds over seconds")
    for sampling in ("poisson", "without_replacement"):
        median, best = times.ratio(f"10 n, {sampling}", f"n, {sampling}")
        report.add(sampling, f"{median:.2f} (best over best {best:.2f})", "<= 1.5", met=best <= 1.5)
    return report.finish()


def whole(rng: np.random.Generator, batch: int = 256, draws: int = 2000) -> bool:
    """What so many more draws take, beside the bare loop for as many steps: planning and compiling cancel."""
    x, y = make_rows(rng)
    bare, run = library(x, y, batch), sampled(x, y, batch)
    run(10)
    times = in_turn(
        {
            "bare": lambda: [bare() for _ in range(draws * 100 // STEPS)],
            "few": lambda: run(10),
            "many": lambda: run(10 + draws),
        },
        repeats=5,
    )
    ratio = (times.least("many") - times.least("few")) / times.least("bare")
    report = Report(f"dp.sample beside the bare loop, {draws * 100} steps, batch {batch}")
    report.add("seconds over seconds", f"{ratio:.2f}", "<= 1.3", met=ratio <= 1.3)
    return report.finish()


if __name__ == "__main__":
    met = [bench(np.random.default_rng(1), batch) for batch in (256, 1024, 4096)]
    met += [flat_in_rows(np.random.default_rng(2)), whole(np.random.default_rng(3))]
    sys.exit(not all(met))
