"""``idata.dp`` exists as soon as the package is imported; what it needs is imported when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

if TYPE_CHECKING:
    from pymc_dp.trace.accessor import PrivacyAccessor


@xr.register_datatree_accessor("dp")
def privacy(tree: xr.DataTree) -> PrivacyAccessor:
    """Return what the trace says about its privacy."""
    from pymc_dp.trace.accessor import PrivacyAccessor

    return PrivacyAccessor(tree)


__all__ = ["privacy"]
