from __future__ import annotations

import math

import numpy as np
import pytest

from pymc_dp.accounting import Budget
from pymc_dp.advice.samplers import loss_of, temperature_of
from pymc_dp.step_methods.langevin import SGLD
from pymc_dp.step_methods.ops import OPS
from tests.advice.conftest import N_ROWS, counts


def _bound(step, case, budget=Budget(1.0, 1e-6)):  # noqa: B008  (a frozen value)
    preview = step.preview(*case, budget)
    assert preview.fits, preview.problem
    return preview.bound


def test_one_sample_is_as_wide_as_with_n_over_t_rows():
    step = _bound(OPS(), counts(0.05, 0.95), Budget(1.0))
    temperature = 2 * math.log(19)
    assert temperature_of(step) == pytest.approx(temperature)
    text = loss_of(step, N_ROWS, "replace")
    assert f"as wide as the posterior of {int(N_ROWS / temperature)} of 2000 rows" in text
    assert f"√(1 + T) = {math.sqrt(1 + temperature):.2g} posterior sd" in text


def test_batches_add_no_more_than_is_told():
    step = _bound(SGLD(batch_size=500), counts(0.05, 0.95))
    text = loss_of(step, N_ROWS, "replace")
    told = float(text.split("at most ")[1].split("%")[0]) / 100
    rng, clip = np.random.default_rng(5), step.settings["clip_norm"]
    sizes = rng.binomial(N_ROWS, 500 / N_ROWS, size=20_000)  # every row pulls one way, as far as it may
    added = (step.step_size * N_ROWS / 500 * clip * sizes).var() / (2 * step.step_size)
    assert added == pytest.approx(told, rel=0.1)
    assert f"diffuse by {math.sqrt(2 * step.step_size * 1000):.2g}" in text
