"""Without noise the private model is the model itself, up to a constant: each likelihood, index and relation."""

import zlib

import numpy as np
import pytest

import pymc_dp as dp
from tests.transforms.zoo import BOUNDS, indexed_model, log_likelihoods, points, privatize, table

PLUG_IN = dp.Statistics(noise_aware=False)
# Values are rounded to half_width * 2**-30: 60 rows, half width <= 5.7, sd >= 0.1 give 60 (5.7/0.1)^2 2**-31 < 1e-4.
GRID_TOLERANCE = 1e-4
COUNT_TOLERANCE = 1e-9
DOMAINS = {
    "replace": dp.Domain(bounds=BOUNDS, public=["region"]),
    "add_remove": dp.Domain(bounds=BOUNDS, neighbours="add_remove", n_max=1000),
}


@pytest.fixture(scope="module")
def zoo():
    """The model with every likelihood and index, scattered parameters, and its own log likelihoods there."""
    rng = np.random.default_rng(zlib.crc32(__name__.encode()))
    model = indexed_model(table(rng))
    at = points(model, rng)
    return model, at, log_likelihoods(model, at)


def assert_constant(original, released, at_least=1.0):
    assert original.keys() == released.keys()
    for name, values in original.items():
        continuous = name.startswith(("mean", "scale", "both"))
        assert np.ptp(values) > at_least, f"{name} does not depend on its parameters, so nothing is compared"
        assert np.ptp(values - released[name]) < (GRID_TOLERANCE if continuous else COUNT_TOLERANCE), name


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("relation", DOMAINS)
def test_plug_in_differs_by_a_constant(zoo, relation):
    model, at, original = zoo
    with dp.testing.without_noise():
        private = privatize(model, domain=DOMAINS[relation], statistics=PLUG_IN)
    assert_constant(original, log_likelihoods(private, at))


@pytest.mark.slow
def test_rows_outside_count_as_clamped_rows(rng):
    """The release of any table is the release of its clamped table, so that clamping is all that happens to it."""
    columns = table(rng)
    wild = {name: values.copy() for name, values in columns.items()}
    wild["value"][:5] = [np.inf, -np.inf, 1e300, -7.0, 5.5]
    columns["value"][:5] = [5, -1, 5, -1, 5]
    wild["count"][:3], columns["count"][:3] = [-4, 2**31 - 1, 10], [2, 9, 9]
    wild["a"][:4], columns["a"][:4] = [-1, 3, 2**31 - 1, -(2**31)], 0
    wild["level"][:3], columns["level"][:3] = [-1, 4, 2**31 - 1], 0
    wild["binary"][:2], columns["binary"][:2] = [2, -1], 0
    wild["rating"][:2], columns["rating"][:2] = [0, 99], [1, 5]
    with dp.testing.without_noise():
        for domain in DOMAINS.values():
            outside, inside = (privatize(indexed_model(table), domain=domain).dp_tables for table in (wild, columns))
            for name, values in inside.items():
                np.testing.assert_array_equal(outside[name], values, err_msg=name)
