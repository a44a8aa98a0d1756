"""Bins of magnitudes are exact for every float; the range that noised counts show is wide enough and no wider."""

import math

import numpy as np
import pytest

from pymc_dp.kernel.noise import LAPLACE
from pymc_dp.release.magnitudes import LEAST, MOST, Magnitudes

FLOATS, WHOLE = Magnitudes(whole=False), Magnitudes(whole=True)
STRANGE = [np.nan, -np.nan, np.inf, -np.inf, 5e-324, -5e-324, 1.8e308, -1.8e308, -0.0, 0.0, 2.0**-1022, 1e300, 1e-300]


def edges(bins):
    """Ends of all bins > 0, written down another way."""
    return [factor * 2.0**power for power in range(bins.least, MOST) for factor in (1.0, 1.5)] + [2.0**MOST]


def expected(bins, value):
    if math.isnan(value):
        return bins.count
    size = sum(edge <= abs(value) for edge in edges(bins)[:-1])
    return bins.of_a_sign + (-size if value < 0 else size)


def counted(bins, values):
    return np.bincount(bins.places(values), minlength=bins.count + 1)[: bins.count]


@pytest.mark.parametrize("bins", [FLOATS, WHOLE])
def test_every_float_has_the_bin_of_its_size(bins, rng):
    ends = np.array(edges(bins))
    near = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, np.inf)])
    values = np.concatenate([STRANGE, near, -near, rng.normal(size=200) * 2.0 ** rng.uniform(-60, 80, 200)])
    assert bins.places(values).tolist() == [expected(bins, value) for value in values.tolist()]
    assert counted(bins, values).sum() == len(values) - 2


def shown(bins, values, scale=0.01, outside=0.0, noise=0):
    return bins.range_of(counted(bins, np.asarray(values)) + noise, scale, outside)


@pytest.mark.parametrize(
    ("bins", "values", "ends"),
    [
        (FLOATS, [5.0] * 9, (4.0, 6.0)),
        (FLOATS, [-5.0] * 9, (-6.0, -4.0)),
        (FLOATS, [-1.2] * 9 + [7.0] * 9, (-1.5, 8.0)),
        (FLOATS, [0.0] * 9 + [7.0] * 9, (0.0, 8.0)),
        (FLOATS, [0.0] * 9 + [-7.0] * 9, (-8.0, 0.0)),
        (FLOATS, [0.0] * 9, (-(2.0**LEAST), 2.0**LEAST)),
        (FLOATS, [1.0] * 9 + [100.0] * 9, (0.5, 128.0)),
        (FLOATS, [-1.0] * 9 + [-100.0] * 9, (-128.0, -0.5)),
        (FLOATS, [np.inf] * 9, (1.5 * 2.0 ** (MOST - 1), 2.0**MOST)),
        (WHOLE, [0] * 9, (0.0, 1.0)),
        (WHOLE, [1] * 9, (1.0, 2.0)),
        (WHOLE, [0] * 9 + [5] * 9, (0.0, 5.0)),
        (WHOLE, [-7] * 9 + [5] * 9, (-7.0, 5.0)),
        (WHOLE, [1] * 9 + [20] * 9, (1.0, 23.0)),
        (FLOATS, [], None),
    ],
)
def test_the_range_is_that_of_bins_that_stand_out(bins, values, ends):
    found = shown(bins, values)
    assert found == ends and (found is None or "-0.0" not in repr(found))


def test_what_is_far_out_and_rare_is_left_out_where_it_is_asked_for():
    values = np.concatenate([np.linspace(1, 9, 1000), np.full(4, 1e6)])
    assert shown(FLOATS, values, outside=0.005)[1] == 12.0
    assert shown(FLOATS, values, outside=0.003)[1] == 2.0**20


def test_noise_alone_shows_a_range_as_rarely_as_is_said(rng):
    scale, runs = 20.0, 3000
    found = sum(
        shown(FLOATS, [], scale, 0.005, LAPLACE.simulated(rng, scale, FLOATS.count)) is not None for _ in range(runs)
    )
    assert found <= 10  # 3 are expected at most
