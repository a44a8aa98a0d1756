"""Gradient of the log density of a private model, accounting for the noise, beside the plug-in form."""

from __future__ import annotations

import numpy as np
import pytest
from bench_model import gradient
from bench_noise_aware import levels, private

# Every form is a release of the same made-up rows.
pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


@pytest.mark.benchmark(group="gradient, five levels")
@pytest.mark.parametrize("form", ["plug-in", "laplace", "gaussian"])
def test_gradient(benchmark, form):
    call = gradient(private(levels(), form))[0]
    benchmark(call)
    assert np.isfinite(np.concatenate([np.ravel(part) for part in call()])).all()
