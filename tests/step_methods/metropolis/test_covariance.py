"""Public shapes of proposals: arrays, released traces, and what is refused."""

import numpy as np
import pytest
import xarray as xr

from pymc_dp.errors import ArgumentError
from pymc_dp.step_methods.metropolis import BarkerMetropolis
from pymc_dp.step_methods.metropolis.arguments import covariance_of
from pymc_dp.testing import insecure_randomness
from tests.step_methods.metropolis.models import bernoulli, normal, sample


@pytest.mark.slow
def test_traces_that_nothing_paid_for_are_refused():
    draws = xr.Dataset({"p": (("chain", "draw"), np.linspace(0.1, 0.9, 8)[None])})
    with pytest.raises(ArgumentError, match="nothing paid for"):
        covariance_of(xr.DataTree.from_dict({"posterior": draws}))
    seeded = xr.DataTree.from_dict({"posterior": draws, "privacy": xr.Dataset(attrs={"guarantee": "none"})})
    with pytest.raises(ArgumentError, match="seeded or left out"):
        covariance_of(seeded)
    with insecure_randomness(1):
        covariance_of(seeded)
    paid = xr.DataTree.from_dict({"posterior": draws, "privacy": xr.Dataset()})
    with pytest.raises(ArgumentError, match=r"without the free variables \['mu', 'sigma'\]"):
        sample(normal([0.0, 1.0]), 5, epsilon=1.0, step=BarkerMetropolis(covariance=paid))
    with pytest.raises(ArgumentError, match="not positive definite"):
        same = xr.DataTree.from_dict({"posterior": draws * 0 + 0.5, "privacy": xr.Dataset()})
        sample(bernoulli([0, 1]), 5, epsilon=1.0, step=BarkerMetropolis(covariance=same))
