"""The real tables: what is hard about each of them, its rows, and the model that is fitted to it.

Bounds and units are public: what somebody who never saw the rows would write down. None was computed from rows.
"""

from benchmarks.real import from_folder, from_packages, from_r  # noqa: F401
from benchmarks.real.table import TABLES, Table

__all__ = ["TABLES", "Table"]
