"""Trying to disprove a claimed privacy loss: black-box runs, quadrature, fuzzing, canaries. A pass is no proof."""

from pymc_dp.audit.black_box import Audit, audit
from pymc_dp.audit.confidence import clopper_pearson
from pymc_dp.audit.quadrature import Comparison, PrivacyLoss, compare_with_event, density_loss, privacy_loss, product
from pymc_dp.audit.sensitivity import WorstPair, fuzz_sensitivity
from pymc_dp.audit.taint import Planted, contains_canary, differing, plant

__all__ = [
    "Audit",
    "Comparison",
    "Planted",
    "PrivacyLoss",
    "WorstPair",
    "audit",
    "clopper_pearson",
    "compare_with_event",
    "contains_canary",
    "density_loss",
    "differing",
    "fuzz_sensitivity",
    "plant",
    "privacy_loss",
    "product",
]
