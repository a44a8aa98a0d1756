"""What is kept, by topic: each entry is computed on its own, so that a test can look at one of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pymc_dp as dp
from pymc_dp.kernel.accounting.events.base import KINDS
from pymc_dp.release.paid import forget_releases
from tests.golden.plain import Json, plain

FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Topic:
    """One file of findings.

    Attributes
    ----------
    name : str
        Of the file, without its ending.
    entries : mapping of str to callable
        What computes each entry; nothing here is compiled.
    quick : collection of str
        Entries that the quick tests compare; the slow ones compare all.
    """

    name: str
    entries: Mapping[str, Callable[[], Json]]
    quick: Collection[str]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json"

    def found(self, name: str) -> Json:
        """Compute one entry."""
        forget_releases()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return plain(self.entries[name]())


def or_refusal(compute: Callable[..., Json], *given: object, **named: object) -> Callable[[], Json]:
    """Return what computes an entry; where the package refuses, its text is the entry."""
    return partial(_or_refusal, compute, *given, **named)


def _or_refusal(compute: Callable[..., Json], *given: object, **named: object) -> Json:
    try:
        return compute(*given, **named)
    except dp.errors.PrivacyError as error:
        text = str(error)
        for other in KINDS.values():  # events of examples are registered where their tests were collected
            text = text if other.__module__.startswith("pymc_dp.") else text.replace(f", {other.__name__}", "")
        return {"refused": type(error).__name__, "text": text.splitlines()}


__all__ = ["FOLDER", "Topic", "or_refusal"]
