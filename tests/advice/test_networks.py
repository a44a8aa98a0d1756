"""What `dp.explain` says of a network: a drawing, and what each mechanism would cost."""

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.advice.samplers import network_parts
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import plan_release
from pymc_dp.release.statistics import Statistics
from tests.networks import COLLIDER, network_model


@pytest.mark.parametrize(
    ("call", "mechanism"),
    [
        ("no mechanism", None),
        ("LaplaceUpdates()", dp.networks.LaplaceUpdates()),
        ("FourierUpdates()", dp.networks.FourierUpdates()),
    ],
)
def test_the_noise_of_a_count_is_what_is_told(call, mechanism):
    """Cells of tables that are made of coefficients have noise from all of them, by the weights that make them."""
    inspection = inspect(network_model(COLLIDER, 100, {"b": 3})).sums
    _, table = network_parts(inspection, 0.5)
    (told,) = [row[3] for row in table.rows if row[0] == call]
    plan = plan_release(inspection, Statistics(mechanism=mechanism), 0.5)
    if call != "FourierUpdates()":
        found = [np.sqrt(2) * scale for table in plan.tables for scale in table.scales]
    else:
        weights = np.concatenate([plan.tables[0].sums.table_weights(place)[0] for place in range(4)])
        found = np.sqrt(2) * plan.tables[0].scales * np.sqrt((weights**2).sum(axis=1))
    ends = [float(item) for item in told.split(" to ")]
    assert [min(found), max(found)] == pytest.approx([ends[0], ends[-1]], rel=0.01)
