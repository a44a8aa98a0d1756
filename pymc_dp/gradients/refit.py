"""Noised gradients as a likelihood of a model: that they were released of, or another's with the same parameters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp._display import scalar_names, shorten
from pymc_dp.domain import Domain
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.gradients.interface import Interface, interface_of
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.private_model import Quadratic, observe_gradients, path_prior, whitened
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord, TableRecord
from pymc_dp.transforms.prior_model import prior_model_with
from pymc_dp.transforms.privatize import mark_private


@dataclass(frozen=True, kw_only=True, eq=False)
class Refit:
    """What noised gradients say about a model of another's.

    Attributes
    ----------
    interface : Interface
    quadratic : Quadratic
    record : ReleaseRecord
    prior : Prior or None
        None where it is improper.
    """

    interface: Interface
    quadratic: Quadratic
    record: ReleaseRecord
    prior: Prior | None

    @property
    def table(self) -> TableRecord:
        """The one table of the record."""
        (table,) = self.record.tables
        return table


def refit(model: Model, domain: Domain, record: ReleaseRecord, table: Array) -> Refit:
    """Match what was released with a model, whose rows are dummies: only their shapes count; priors may be others.

    Raises
    ------
    UnsupportedModelError
        If its likelihood depends on other parameters than those that were released.
    """
    interface = interface_of(model, domain)
    found, released = scalar_names(interface.parts), record.tables[0].cells
    if found != tuple(released):
        raise UnsupportedModelError(
            [
                Problem(
                    where="model",
                    what=f"its rows depend on {', '.join(shorten(found, 6))}, but gradients were released for "
                    f"{', '.join(shorten(list(released), 6))}",
                    remedy="Write the likelihood as in the release: priors may differ, names and shapes may not.",
                )
            ]
        )
    try:
        prior = path_prior(interface)
    except (UnsupportedModelError, np.linalg.LinAlgError):  # an improper prior is fine for a posterior
        prior = None
    record = replace(record, left_out=interface.inspection.dropped)
    return Refit(interface=interface, quadratic=Quadratic.from_table(table), record=record, prior=prior)


def observe_refit(new: Model, refit: Refit, parameters: Variable) -> None:
    """Let what was released stand for rows in a model that has the priors of the parameters."""
    table = refit.table
    new.add_coords({table.cell_dim: table.cells, table.column_dim: table.columns})
    observe_gradients(new, table, parameters, refit.quadratic)


def in_good_coordinates(new: Model, refits: Sequence[Refit]) -> Model:
    """Return a model in coordinates that fit what noised gradients say, where there are such."""
    prior = refits[0].prior
    if prior is not None:
        with suppress(np.linalg.LinAlgError):  # a release that was paid for is never lost
            return whitened(new, refits[0].interface, [one.quadratic for one in refits], prior)
    return new


def observed_alone(made: Refit) -> Model:
    """Return a private model with the priors of an interface's, in which what was released stands for the rows."""
    new, (parameters,) = prior_model_with(made.interface.inspection, [made.interface.flat])
    observe_refit(new, made, parameters)
    new = in_good_coordinates(new, [made])
    mark_private(new, made.record, {made.table.name: made.quadratic.table})
    return new


__all__ = ["Refit", "in_good_coordinates", "observe_refit", "observed_alone", "refit"]
