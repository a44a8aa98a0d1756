"""Where privacy randomness comes from: the operating system, unless a test says otherwise."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.errors import PrivacyError


@dataclass(frozen=True)
class Insecure:
    """Replacement of the secure noise inside a test: a seeded generator, or no noise at all where it is None."""

    rng: np.random.Generator | None


_insecure: ContextVar[Insecure | None] = ContextVar("pymc_dp_insecure", default=None)


def insecure() -> Insecure | None:
    """Return the replacement that is in force, or None where noise is secure."""
    return _insecure.get()


def secure_keys(count: int) -> npt.NDArray[np.uint64]:
    """Return `count` whole numbers of 64 random bits each: from the operating system, unless a test says otherwise.

    Inside ``testing.without_noise`` they are the same ones each time.
    """
    replacement = _insecure.get()
    if replacement is None:
        return np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)
    rng = np.random.default_rng(0) if replacement.rng is None else replacement.rng.spawn(1)[0]
    return np.frombuffer(rng.bytes(8 * count), dtype=np.uint64)


@contextmanager
def use_insecure(replacement: Insecure) -> Iterator[None]:
    """Draw privacy noise from `replacement` inside the block; every release made there has guarantee "none"."""
    token = _insecure.set(replacement)
    try:
        yield
    finally:
        _insecure.reset(token)


def secure_generator(stream: int | None = None) -> np.random.Generator:
    """Return a new generator for privacy randomness: AES-128 in counter mode under a key from the operating system.

    Parameters
    ----------
    stream : int, optional
        Which of several that run side by side, in processes of their own perhaps; only seeded ones look at it.

    Returns
    -------
    numpy.random.Generator
        About 1e8 normals per second; compiled loops take it too. Not for two threads at once.

    Raises
    ------
    PrivacyError
        Inside ``testing.without_noise``: a sampler without randomness makes no sense.

    Notes
    -----
    Make it where a chain starts, in the process that runs the chain: a forked copy would repeat itself. Inside
    ``testing.insecure_randomness`` every call returns the next child of the seeded generator, so that chains differ and
    can be repeated; what is drawn then has no guarantee.

    **Guarantee.** Whoever cannot tell AES-128 from random bits cannot tell the draws from draws of true randomness,
    up to the 53 bits of a float64. Class of what is drawn from it: arithmetic float64.

    References
    ----------
    Dworkin (2001), NIST SP 800-38A, counter mode, doi 10.6028/NIST.SP.800-38A; Salmon, Moraes, Dror, Shaw (2011), doi
    10.1145/2063384.2063405.

    Examples
    --------
    >>> 0 <= secure_generator().random() < 1
    True
    """
    replacement = _insecure.get()
    if replacement is None:
        from randomgen import AESCounter  # imported at first use: a fifth of a second

        return np.random.Generator(AESCounter(key=secrets.randbits(128)))
    if replacement.rng is None:
        raise PrivacyError(
            "A sampler cannot run inside testing.without_noise(): all it does is draw. Use "
            "testing.insecure_randomness(seed) to repeat a run."
        )
    if stream is None:
        return replacement.rng.spawn(1)[0]
    child = replacement.rng.bit_generator.seed_seq.spawn(1)[0]  # type: ignore[attr-defined]
    return np.random.default_rng([int(child.generate_state(1, np.uint64)[0]), stream])


def derived_generator(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator like `secure_generator`, under a key of 256 bits that `rng` draws."""
    from randomgen import AESCounter

    seed = np.random.SeedSequence([int(word) for word in rng.integers(0, 2**32, size=8)], pool_size=8)
    return np.random.Generator(AESCounter(seed))
