"""Exact inference on a private model by imagining its rows."""

from pymc_dp.step_methods.augmentation.augmentation import DataAugmentation

__all__ = ["DataAugmentation"]
