import numpy as np
import pymc as pm
import pytest

from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.proofs import branch_and_bound, conditional_ranges
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.gibbs import TemperedGibbs
from tests.step_methods.quick import interpreted

pytest_runtest_protocol = interpreted(__file__, slow=True)


@pytest.fixture(autouse=True)
def _short_searches(monkeypatch) -> None:
    """Bounds of short searches are bounds as well."""
    monkeypatch.setattr(conditional_ranges, "MOST_BOXES", 2_000)
    monkeypatch.setattr(branch_and_bound, "MOST_INFINITE", 2_000)


def bound(model, public=None, epsilon=1.0, delta=0.0, *, steps=1, chains=1, read=True, **settings):
    """A step with its rows, and the event that pays for it."""
    inspection = TemperedGibbs().inspect(model, public)
    step, event = TemperedGibbs(**settings).bound(inspection, Budget(epsilon, delta), chains=chains, steps=steps)
    if read:
        with opened_gate():
            step.load()
    return step, event


def scans(step, count, rng, point=None):
    """States of `count` scans as constrained values, without PyMC's loop."""
    step.generator = rng
    point = {k: np.asarray(v) for k, v in step.prior_model.initial_point().items()} if point is None else point
    found = []
    for _ in range(count):
        point = step.advance(point)
        found.append(step.scan.points.values(point))
    return {name: np.array([item[name] for item in found]) for name in found[0]}


def domain(relation, **options):
    return Domain(neighbours=relation, n_max=1000 if relation == "add_remove" else None, **options)


def normal(rows, mean=None, sd=None, bounds=(-3.0, 3.0), relation="replace"):
    """Normal rows; mean and sd are truncated or uniform unless given."""
    with pm.Model() as model:
        mean = pm.Truncated("mean", pm.Normal.dist(0.0, 1.0), -2.0, 2.0) if mean is None else mean
        sd = pm.Uniform("sd", 0.5, 2.0) if sd is None else sd() if callable(sd) else sd
        pm.Normal("y", mean, sd, observed=pm.Data("d", np.asarray(rows, dtype=float)))
    return model, domain(relation, bounds={"y": bounds})
