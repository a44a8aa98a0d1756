"""Packages that not everybody needs: imported where they are used, and named with what to install where they lack."""

from __future__ import annotations

import importlib
from typing import Any

EXTRAS = {
    "bambi": "bambi",
    "matplotlib": "plots",
    "psycopg": "postgres",
    "pyarrow": "parquet",
    "statsmodels": "datasets",
}
"""The extra of this package that brings each."""


def require(module: str, *, by: str) -> Any:
    """Import a `module` of an optional package, or say in one line what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if str(error.name).partition(".")[0] != package:  # it is there, and misses something itself
            raise
        wanted = f"'pymc-dp[{EXTRAS[package]}]'" if package in EXTRAS else package
        message = f"{by} needs {package}, which cannot be imported. Install it: pip install {wanted}"
        raise ImportError(message) from None


__all__ = ["EXTRAS", "require"]
