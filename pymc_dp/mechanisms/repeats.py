"""Spending twice is seen: releases from the same columns in one process, counted by schema, never by value."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

from pymc_dp.errors import RepeatedReleaseWarning
from pymc_dp.inspection.findings import Inspection

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
PACKAGE = str(Path(__file__).parents[1])
_lock = threading.Lock()
_spent: dict[tuple[str, str, int | None], tuple[float, ...]] = {}


def note_release(inspection: Inspection, epsilon: float, *, warn: bool) -> None:
    """Remember a release, and warn if rows of the same columns were released before without a ledger.

    Columns count as the same if name, dtype and public number of rows agree: PyMC copies the arrays it is given, so
    neither identity nor (because no message may depend on values) content can tell. A ledger says which rows are meant,
    and silences the warning.
    """
    n_rows = inspection.n_rows if inspection.domain.n_max is None else None
    keys = [(observed.name, str(observed.leaf.type.dtype), n_rows) for observed in inspection.observed]
    if not warn:
        return
    with _lock:
        before = max((_spent.get(key, ()) for key in keys), key=sum, default=())
        for key in keys:
            _spent[key] = (*_spent.get(key, ()), epsilon)
    if before:
        times, names = len(before) + 1, ", ".join(observed.name for observed in inspection.observed)
        which = f"{_ORDINALS[times - 1]} release" if times <= len(_ORDINALS) else f"release number {times}"
        warnings.warn(
            f"{which} from these rows, ε={sum(before) + epsilon:g} in total (columns: {names}). Pass one "
            "dp.Ledger to every release from one table to have the cost added up and limited; if these are other "
            "rows, a ledger of their own says so.",
            RepeatedReleaseWarning,
            skip_file_prefixes=(PACKAGE,),
        )


def forget_releases() -> None:
    """Forget what was released in this process (for tests and for new tables with the same column names)."""
    with _lock:
        _spent.clear()
