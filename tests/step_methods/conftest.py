from collections.abc import Iterator

import numpy as np
import pymc as pm
import pytest

from pymc_dp.release.paid import forget_releases


@pytest.fixture(autouse=True)
def _no_history() -> Iterator[None]:
    forget_releases()
    yield
    forget_releases()


def bernoulli(answers, low=0.05, high=0.95, groups=None):
    """Truncated Beta-Bernoulli, in groups or not."""
    with pm.Model() as model:
        shape = None if groups is None else 2
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), low, high, shape=shape)
        held = p if groups is None else p[pm.Data("group", np.asarray(groups))]
        pm.Bernoulli("y", held, observed=np.asarray(answers, dtype=int))
    return model
