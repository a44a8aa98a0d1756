"""What one row may do: given by the user, or proved, and then nothing is cut."""

import re

import numpy as np
import pymc as pm
import pytensor
import pytest

from pymc_dp.accounting import Budget
from pymc_dp.step_methods.hamiltonian import PrivateHMC
from pymc_dp.step_methods.hamiltonian.settings import HamiltonianNoise
from pymc_dp.step_methods.metropolis.ratios import ClampedRatio, ProvedRatio
from tests.step_methods.hamiltonian.models import UNIT_ROWS, domain, held, logistic, normal, table, take


@pytest.fixture(scope="module")
def proved():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        return held(logistic(*table()), domain_options=UNIT_ROWS)


def looked(model, relation="replace", domain_options=None, **settings):
    """Limits found without compiling anything."""
    found = PrivateHMC(**settings).preview(model, domain(relation, **(domain_options or {})), Budget(1.0, 1e-6))
    return found.bound.limits if found.fits else found.problem


def place(step, values):
    return step.places.at(np.asarray(values, dtype=float))


def test_a_proved_norm_clips_no_row_and_cuts_no_ratio(proved, rng):
    assert proved.limits.proved and isinstance(proved.limits.ratio, ProvedRatio)
    assert proved.limits.clip_norm == pytest.approx(np.sqrt(2), rel=1e-5)
    assert proved.limits.target == "the posterior, not tempered"
    x, y = table()
    take(proved, x, y)
    one, other = rng.normal(size=(2, 3))

    def rows(at):
        return -np.logaddexp(0, -(2 * y - 1) * (at[0] + x @ at[1:]))

    expected = rows(other).sum() - rows(one).sum()
    assert proved.limits.ratio.moved(place(proved, one), place(proved, other)) == pytest.approx(expected, rel=1e-9)
    slope = (1 / (1 + np.exp((2 * y - 1) * (one[0] + x @ one[1:]))) * (2 * y - 1))[:, None] * np.column_stack(
        [np.ones(len(x)), x]
    )
    np.testing.assert_allclose(proved.gradient.of_rows(one), slope.sum(axis=0), rtol=1e-9)


def test_units_scale_the_proved_norm():
    limits = looked(logistic(*table()), domain_options=UNIT_ROWS, scale={"a": 3.0, "b": 0.5})
    assert limits.clip_norm == pytest.approx(np.hypot(3.0, 0.5), rel=1e-5)


@pytest.mark.slow
def test_a_given_norm_is_also_the_clamp_unless_one_is_given():
    step = held(normal([0.0, 2.0]), clip_norm=0.3, scale=2.0)
    ratio = step.limits.ratio
    assert isinstance(ratio, ClampedRatio) and not step.limits.proved and "the target changes" in step.limits.target
    here, there = place(step, [0.0]), place(step, [0.5])
    assert ratio.reach(here, there) == pytest.approx(2 * 0.3 * 0.25)
    assert ratio.moved(here, there) == pytest.approx(-0.3 * 0.25 + 0.3 * 0.25)
    wider = looked(normal([0.0, 2.0]), clip_norm=0.3, clamp=9.0, scale=2.0)
    assert wider.clip_norm == 0.3 and wider.ratio.reach(here, there) == pytest.approx(2 * 9.0 * 0.25)


def test_under_add_remove_a_row_moves_half_as_much(proved):
    here, there = place(proved, np.zeros(3)), place(proved, [0.6, 0.0, 0.8])
    for relation, rows in (("replace", 2), ("add_remove", 1)):
        limits = looked(logistic(*table()), relation, clip_norm=0.3)
        assert limits.gradient_sensitivity == rows * 0.3
        assert limits.ratio.reach(here, there) == pytest.approx(rows * 0.3)


def test_a_clamp_above_the_proved_norm_leaves_the_posterior_alone():
    model = logistic(*table())
    assert looked(model, domain_options=UNIT_ROWS, clamp=2.0).proved
    assert not looked(model, domain_options=UNIT_ROWS, clamp=1.0).proved


def test_models_without_a_proof_are_refused_with_the_remedy():
    bounded = {"bounds": {"y": (-3.0, 3.0)}}
    assert re.match(r".*no bound of the gradient.*Give clip_norm", looked(normal([0.0]), domain_options=bounded))
    assert "Give clip_norm" in looked(logistic(*table()))  # rows of any length
    with pm.Model() as model:
        pm.Poisson("y", 1.0 + pm.Poisson("k", 2.0), observed=np.array([1, 2]))
    assert "k: it is discrete" in looked(model, clip_norm=1.0)


def test_first_steps_shrink_with_noise_and_rows(proved):
    little, much = (HamiltonianNoise(gradient=z, ratio=z, n_leapfrog=3) for z in (0.1, 1e3))
    limits = proved.limits
    assert limits.first_step(much, 100, 3) < limits.first_step(little, 100, 3)
    assert limits.first_step(little, 10**6, 3) == pytest.approx(limits.first_step(little, 10**4, 3) / 10)
    spread = much.ratio * 2 * limits.clamp * limits.farthest(much)
    assert 1 < spread < 1.5
