"""What a model can reach, for tests that look for rows in it."""

from pymc import Model
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.inspection.rows import unwrap


def reachable_arrays(model: Model) -> list[Variable]:
    """Every constant and shared variable."""
    ends = [*model.basic_RVs, *model.deterministics, *model.potentials, *model.data_vars, *model.rvs_to_values.values()]
    return [
        var
        for var in ancestors(ends)
        if var.owner is None and unwrap(var) is var and (hasattr(var, "data") or isinstance(var, SharedVariable))
    ]
