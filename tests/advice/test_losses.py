from __future__ import annotations

import math

import numpy as np
import pytest

from pymc_dp.accounting import Budget
from pymc_dp.advice.samplers import loss_of, noise_of, temperature_of
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.langevin import SGLD
from pymc_dp.step_methods.metropolis import BarkerMetropolis, PenaltyMetropolis
from pymc_dp.step_methods.ops import OPS
from tests.advice.conftest import N_ROWS, counts, logistic


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


def test_the_spread_of_a_draw_is_that_of_a_tempered_beta():
    # In large samples: variance about the truth of draws at temperature T, over that of the posterior.
    rng, rows, share, temperature = np.random.default_rng(3), 20_000, 0.3, 5.0
    ones = rng.binomial(rows, share, size=20_000)
    draws = rng.beta(1 + ones / temperature, 1 + (rows - ones) / temperature)
    ratio = np.mean((draws - share) ** 2) / (share * (1 - share) / rows)
    assert ratio == pytest.approx(1 + temperature, rel=0.05)


def test_nothing_is_lost_where_the_budget_pays_for_the_posterior():
    step = _bound(OPS(), counts(0.05, 0.95), Budget(10.0))
    assert loss_of(step, N_ROWS, "replace") == "the posterior itself: nothing is lost"


def test_gibbs_without_delta_leaves_little_but_the_prior():
    step = _bound(TemperedGibbs(), counts(0.05, 0.95), Budget(1.0))
    assert loss_of(step, N_ROWS, "replace") == "all but the prior: 2000 rows weigh less than one"
    assert noise_of(step, "noise") == f"noise (temperature {1 / step.beta:.4g})"


def test_the_number_of_rows_is_a_public_bound_under_add_remove():
    step = _bound(OPS(), logistic(neighbours="add_remove"))
    text = loss_of(step, 5000, "add_remove")
    assert "2000" not in text and f"at most {int(5000 / temperature_of(step))};" in text


def test_barker_loses_nothing_in_the_target_and_says_how_short_steps_are():
    step = _bound(BarkerMetropolis(), counts(0.05, 0.95), Budget(1.0))
    assert temperature_of(step) is None
    assert loss_of(step, N_ROWS, "replace") == (
        "not tempered; each step may move a row's log-likelihood by about 0.0002"
    )


def test_noise_of_the_penalty_method_is_told_for_a_step():
    step = _bound(PenaltyMetropolis(), counts(0.05, 0.95))
    reach = 2 * step.spending.ratio
    assert loss_of(step, N_ROWS, "replace") == (
        f"not tempered; a step that moves a row's log-likelihood by {reach:.2g} has noise of sd 2 on its log ratio, "
        "others in proportion"
    )
    assert step.spending.noise(reach) == pytest.approx(2)


def test_batches_add_no_more_than_is_told():
    step = _bound(SGLD(batch_size=500), counts(0.05, 0.95))
    text = loss_of(step, N_ROWS, "replace")
    told = float(text.split("at most ")[1].split("%")[0]) / 100
    rng, clip = np.random.default_rng(5), step.settings["clip_norm"]
    sizes = rng.binomial(N_ROWS, 500 / N_ROWS, size=20_000)  # every row pulls one way, as far as it may
    added = (step.step_size * N_ROWS / 500 * clip * sizes).var() / (2 * step.step_size)
    assert added == pytest.approx(told, rel=0.1)
    assert f"diffuse by {math.sqrt(2 * step.step_size * 1000):.2g}" in text


def test_trajectories_end_about_where_noise_lets_them():
    step = _bound(PrivateHMC(), counts(0.05, 0.95))
    text = loss_of(step, N_ROWS, "replace")
    told = float(text.split("about ")[1].split(" (")[0])
    spread = step.noise.ratio * 2 * step.limits.clamp * told
    assert text.startswith("not tempered; ") and 1 < spread < 1.4
    assert loss_of(_bound(PrivateHMC(clip_norm=0.1), counts(0.05, 0.95)), N_ROWS, "replace").startswith(
        "the target cha"
    )


def test_clamped_rows_are_told_of_every_sampler_that_fits():
    step = _bound(SGLD(), counts(0.05, 0.95))
    assert loss_of(step, N_ROWS, "replace", clamped=True).endswith("; rows are clamped: a pseudo-posterior")
    assert loss_of(None, N_ROWS, "replace", clamped=True) == ""
