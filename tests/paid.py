"""Releases as a charge would make them: for tests of what is drawn, not of when."""

from pymc_dp.release import plan
from pymc_dp.release.tables import Drawn, ReleasePlan
from pymc_dp.rows.gate import opened_gate


def draw_release(planned: ReleasePlan) -> Drawn:
    """Read the rows and add the noise, as if the budget had been charged."""
    with opened_gate():
        return plan.draw_release(planned)
