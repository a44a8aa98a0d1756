from __future__ import annotations

import math

import numpy as np
import pytest

from pymc_dp.accounting import Budget
from pymc_dp.advice.samplers import loss_of
from pymc_dp.step_methods.langevin import SGLD
from tests.advice.conftest import N_ROWS, counts


def _bound(step, case, budget=Budget(1.0, 1e-6)):  # noqa: B008  (a frozen value)
    preview = step.preview(*case, budget)
    assert preview.fits, preview.problem
    return preview.bound


def test_batches_add_no_more_than_is_told():
    step = _bound(SGLD(batch_size=500), counts(0.05, 0.95))
    text = loss_of(step, N_ROWS, "replace")
    told = float(text.split("at most ")[1].split("%")[0]) / 100
    rng, clip = np.random.default_rng(5), step.settings["clip_norm"]
    sizes = rng.binomial(N_ROWS, 500 / N_ROWS, size=20_000)  # every row pulls one way, as far as it may
    added = (step.step_size * N_ROWS / 500 * clip * sizes).var() / (2 * step.step_size)
    assert added == pytest.approx(told, rel=0.1)
    assert f"diffuse by {math.sqrt(2 * step.step_size * 1000):.2g}" in text
