"""Averages of fits, and the ε of a width between those simulated."""

import numpy as np
import pytest

from pymc_dp.plan.result import Recorder, least_epsilon


def test_fits_are_averaged():
    recorder = Recorder(["a"], 0.5)
    draws = np.linspace(0, 1, 101)[:, None]
    recorder.add([draws], {"a": np.array([0.5])})
    recorder.add([draws], {"a": np.array([0.9])})
    outcome = recorder.outcome("m", 1.0, 0.0)
    found = outcome.summary("a")
    assert (outcome.method, outcome.epsilon) == ("m", 1.0)
    assert found.width == pytest.approx(0.5) and found.width_error == pytest.approx(0.0)
    assert found.coverage == 0.5
    assert found.bias == pytest.approx(-0.2) and found.rmse == pytest.approx(np.sqrt((0 + 0.16) / 2))
    assert found.rmse_error == pytest.approx(0.08 / (2 * found.rmse))


def test_one_draw_has_an_error_and_no_interval():
    recorder = Recorder(["a"], 0.9)
    for truth in (0.0, 2.0):
        recorder.add([np.ones((1, 2))], {"a": np.full(2, truth)})
    found = recorder.outcome("m", 1.0, 0.0).summary("a")
    assert np.isnan(found.width) and np.isnan(found.coverage)
    assert (found.bias, found.rmse) == (0.0, 1.0)


def test_widths_are_interpolated_on_log_log_scale():
    epsilons = np.array([0.1, 1.0, 10.0])
    widths = 0.3 * epsilons**-0.7
    for epsilon in (0.2, 1.0, 7.0):
        assert least_epsilon(epsilons, widths, 0.3 * epsilon**-0.7) == pytest.approx(epsilon)


def test_nothing_is_said_beyond_what_was_simulated():
    assert least_epsilon([0.1, 1.0], [0.5, 0.2], 0.19) is None
    assert least_epsilon([0.1, 1.0], [0.5, 0.2], 0.9) == 0.1
    assert least_epsilon([0.1, 1.0], [np.nan, np.nan], 0.9) is None
