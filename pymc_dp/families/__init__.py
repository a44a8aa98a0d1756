"""Likelihood families that can be released as statistics: one file for each, with everything that is known of it."""

from pymc_dp.families.bernoulli import Bernoulli
from pymc_dp.families.beta import Beta
from pymc_dp.families.binomial import Binomial
from pymc_dp.families.categorical import Categorical
from pymc_dp.families.dirichlet import Dirichlet
from pymc_dp.families.exponential import Exponential
from pymc_dp.families.family import (
    FAMILIES,
    CountFamily,
    Family,
    MomentFamily,
    VectorFamily,
    names,
    register,
)
from pymc_dp.families.gamma import Gamma
from pymc_dp.families.geometric import Geometric
from pymc_dp.families.half_normal import HalfNormal
from pymc_dp.families.inverse_gamma import InverseGamma
from pymc_dp.families.laplace import Laplace
from pymc_dp.families.log_normal import LogNormal
from pymc_dp.families.multinomial import Multinomial
from pymc_dp.families.mv_normal import MvNormal
from pymc_dp.families.negative_binomial import NegativeBinomial
from pymc_dp.families.normal import Normal
from pymc_dp.families.poisson import Poisson
from pymc_dp.families.von_mises import VonMises
from pymc_dp.families.weibull import Weibull

register(
    Bernoulli(),
    Categorical(),
    Binomial(),
    Poisson(),
    Geometric(),
    NegativeBinomial(),
    Normal(),
    LogNormal(),
    HalfNormal(),
    Laplace(),
    Exponential(),
    Gamma(),
    InverseGamma(),
    Weibull(),
    Beta(),
    VonMises(),
    Multinomial(),
    MvNormal(),
    Dirichlet(),
)

__all__ = ["FAMILIES", "CountFamily", "Family", "MomentFamily", "VectorFamily", "names", "register"]
