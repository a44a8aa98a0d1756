"""Which rows of persons count: a function of random keys, and of each person's rows among themselves."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from pymc_dp.kernel.errors import PrivacyError
from pymc_dp.kernel.randomness import secure_keys

Array = npt.NDArray[Any]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
DIGEST = "S16"


def kept_rows(owners: Array, most: int) -> Array:
    """Return which rows are kept, (n_rows,) of bool: at most `most` of each person, chosen at random.

    Parameters
    ----------
    owners : (n_rows,) array
        Whose row it is: whole numbers, or texts. Rows that are nobody's are left out, see `somebody`.
    most : int

    Notes
    -----
    **Which ones.** Every row gets a fresh key, 64 bits from the operating system, which nobody sees and nothing keeps.
    Those rows of a person are kept whose keys are smallest; the first ones of the table where keys are equal.

    **Guarantee.** Take a table and the same with one more person. The keys are independent of the rows and all alike,
    so that every row of the others may be thought of as having the same key in both tables. Given the keys, which rows
    of a person are kept depends on the keys of that person's rows and on their order among themselves: the same rows of
    all others are kept in both, and at most `most` of the one person. So for each value of the keys the release is of
    two tables that differ by at most `most` rows, which its noise is made for; a mixture over keys, whose distribution
    is the same for both, is as private. It holds whatever numbers stand for persons: those of all others may change
    with one more person, as those of `pandas.factorize` do. A hash in place of the keys would see these numbers, and
    rows of everybody would move.
    """
    who, codes = np.unique(identified(owners), return_inverse=True)
    codes = codes.ravel()
    order = np.lexsort((secure_keys(len(codes)), codes))
    starts = np.searchsorted(codes[order], np.arange(len(who)))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    kept = np.zeros(len(owners), dtype=bool)
    kept[order[rank < most]] = True
    return kept & somebody(owners)


def somebody(owners: Array) -> Array:
    """Return which rows are somebody's, (n_rows,) of bool: a number below 0 is nobody's, as of `pandas.factorize`."""
    return owners >= 0 if owners.dtype.kind == "i" else np.ones(len(owners), dtype=bool)


def identified(owners: Array) -> Array:
    """Return whole numbers, one to one, or digests of texts: equal ones are of equal texts (BLAKE2, 128 bits).

    Whatever a text holds it has a digest, and so has any object, by its text: an error would tell of it.
    """
    if owners.dtype.kind in "iuS":
        return owners if owners.dtype.kind == "S" else bits_of(owners)
    if owners.dtype.kind not in "UO":
        raise PrivacyError("Ids of persons must be whole numbers or texts.")
    digests: dict[bytes, bytes] = {}
    found = np.empty(len(owners), dtype=DIGEST)
    for place, one in enumerate(owners.tolist()):
        text = one if type(one) is bytes else str(one).encode(errors="surrogatepass")
        if text not in digests:
            digests[text] = blake2b(text, digest_size=16).digest()
        found[place] = digests[text]
    return found


def bits_of(values: Array) -> Array:
    """Return whole numbers as 64 bits, one to one."""
    return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)


def mixed(values: Array) -> Array:
    """Mix 64 bits: the last step of splitmix64 (Steele, Lea, Flood 2014, doi 10.1145/2714064.2660195), one to one."""
    values = (values ^ (values >> np.uint64(30))) * FIRST
    values = (values ^ (values >> np.uint64(27))) * SECOND
    return values ^ (values >> np.uint64(31))
