"""One mistake that would break a guarantee: where it stands, and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, get_args

Kind = Literal[
    "bound doubled",
    "bound halved",
    "bound left out",
    "charge after the read",
    "sum in floats",
    "factor left out",
    "label kept",
    "clip by value",
    "wrong relation",
    "noise reused",
    "other event",
    "value in a text",
]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A mistake, written as a change to one file.

    Attributes
    ----------
    name : str
        ``operation: what is wrong``, in a few words joined by dashes.
    operation : str
        By which something leaves the rows.
    kind : str
        One of `KINDS`.
    file : str
        Path from the root.
    old, new : str
        What stands there once, and what the fault writes instead.
    breaks : str
        What no longer holds, in a sentence.
    first : tuple of str
        Up to three test files or folders to run first.
    """

    name: str
    operation: str
    kind: Kind
    file: str
    old: str
    new: str
    breaks: str
    first: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Changes with the mistake itself; a result of another mistake of this name does not count."""
        return sha256("\0".join((self.file, self.old, self.new)).encode()).hexdigest()[:16]


__all__ = ["KINDS", "Fault", "Kind"]
