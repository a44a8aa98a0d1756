"""Exact inference on a private model by data augmentation."""

from pymc_dp.step_methods.augmentation.augmentation import DataAugmentation

__all__ = ["DataAugmentation"]
