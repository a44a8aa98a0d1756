"""Versions of what a release was made with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = {"pymc_dp": "pymc-dp", "PyMC": "pymc", "ArviZ": "arviz", "OpenDP": "opendp"}
"""Names in texts, and those of distributions."""


def version_of(distribution: str) -> str:
    """Return the version of an installed distribution, "" of one that is run from a folder."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def versions() -> dict[str, str]:
    """Return the versions of all that a release was made with.

    Examples
    --------
    >>> list(versions())
    ['pymc_dp', 'PyMC', 'ArviZ', 'OpenDP', 'Python']
    """
    found = {name: version_of(distribution) for name, distribution in PACKAGES.items()}
    return {**found, "Python": platform.python_version()}


__all__ = ["version_of", "versions"]
