"""For tests and demonstrations only: privacy noise that can be repeated, or left out.

Every release made inside these blocks carries ``guarantee="none"`` in its trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pymc_dp import _validate
from pymc_dp._random import public_generator
from pymc_dp.kernel.randomness import Insecure, use_insecure


@contextmanager
def insecure_randomness(seed: int) -> Iterator[None]:
    """Seed the privacy noise, so that a release can be repeated. Offers no privacy.

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> with insecure_randomness(1):
    ...     pass
    """
    with use_insecure(Insecure(public_generator(_validate.integer("seed", seed, 0)))):
        yield


@contextmanager
def without_noise() -> Iterator[None]:
    """Leave the privacy noise out: releases are exact sums. Offers no privacy.

    Examples
    --------
    >>> with without_noise():
    ...     pass
    """
    with use_insecure(Insecure(None)):
        yield
