"""``dp.Ledger``, which gives back releases that it keeps: what they are made of is known to a higher layer."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pymc_dp.accounting.ledger import RELEASES, Ledger

if TYPE_CHECKING:
    from pymc_dp.released import Release


def _read(written: Mapping[str, Any]) -> Release:
    found: Release = import_module("pymc_dp.released").Release.from_dict(written, "The ledger")
    return found


RELEASES.read = _read

__all__ = ["Ledger"]
