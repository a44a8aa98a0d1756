"""Likelihood families that can be released as statistics. A new family is one file and one entry here."""

from pymc_dp.families.bernoulli import Bernoulli
from pymc_dp.families.categorical import Categorical
from pymc_dp.families.family import CountFamily, Family, MomentFamily
from pymc_dp.families.normal import Normal
from pymc_dp.families.poisson import Poisson

FAMILIES: dict[str, Family] = {
    family.distribution: family for family in (Bernoulli(), Categorical(), Poisson(), Normal())
}

__all__ = ["FAMILIES", "CountFamily", "Family", "MomentFamily"]
