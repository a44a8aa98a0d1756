"""A model without its likelihood: same priors, no row anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.shared import kept_while_shared
from pymc_dp.transforms._graph import clone_without_rows, everything_reached


def prior_model(inspection: Inspection) -> Model:
    """Return the inspected model without observed variables, row-level data and everything computed from them.

    Parameters
    ----------
    inspection : Inspection
        Without problems.

    Returns
    -------
    pymc.Model
        Free variables, their order, dims, transforms and priors are those of the model.
    """
    return prior_model_with(inspection, [])[0]


shared_prior_model = kept_while_shared(prior_model)
"""The same model, made once for each inspection. Callers share it, so none of them may change it."""


def prior_model_with(inspection: Inspection, parameters: Sequence[Variable]) -> tuple[Model, list[Variable]]:
    """Return the prior model and graphs over its free variables: `parameters`, free of rows, carried over."""
    inspection.require()
    kept = [det.name for det in inspection.model.deterministics if det.name not in inspection.dropped]
    new, moved = clone_without_rows(
        inspection.model, deterministics=kept, data=inspection.kept_data, parameters=parameters
    )
    if inspection.hidden & everything_reached(new, moved):
        raise PrivacyError("Private data would stay within reach of the private model; this is an error of pymc_dp.")
    return new, moved
