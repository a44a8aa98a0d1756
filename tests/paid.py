"""Releases as a charge would make them: for tests of what is drawn, not of when."""

from pytensor.graph.basic import Variable

from pymc_dp.kernel.account import Rehearsal
from pymc_dp.release import plan
from pymc_dp.release.tables import Drawn, ReleasePlan
from pymc_dp.rows.gate import opened_gate
from pymc_dp.rows.passes import Passes
from pymc_dp.rows.source import RowsOfModel, StoredSource


def draw_release(planned: ReleasePlan, beside: Passes | None = None, owner: Variable | None = None) -> Drawn:
    """Read the rows and add the noise, as if the budget had been charged."""
    paid = plan.charge_release(planned, Rehearsal(planned.relation), "test")
    source = RowsOfModel(planned.asked, owner) if beside is None else StoredSource(planned.asked, beside)
    with opened_gate():
        return plan.draw_release(planned, paid, source)
