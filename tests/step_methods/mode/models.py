"""Models with candidates, their log joint densities written out once more, and steps that hold their rows."""

from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.mode import CandidateMode

N_MAX = 1000


def domain(relation="replace", **options):
    return Domain(neighbours=relation, n_max=N_MAX if relation == "add_remove" else None, **options)


def bound(model, given, public, epsilon=1.0, delta=0.0, *, read=True, make=CandidateMode):
    """A step with a budget that holds the rows, and what it is charged."""
    specification = make(given)
    step, event = specification.bound(specification.inspect(model, public), Budget(epsilon, delta), chains=1, steps=1)
    if read:
        with opened_gate():
            step.load()
    return step, event.event
