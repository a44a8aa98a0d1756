"""What each of several releases says about a model, and the model of all of them together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal, override

from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord, make_tables
from pymc_dp.release.several import renamed
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import Drawn, ReleasePlan, TablePlan
from pymc_dp.release.written import released_rows
from pymc_dp.released.release import Release
from pymc_dp.transforms.bins import table_parameters
from pymc_dp.transforms.prior_model import clone_without_rows, everything_reached
from pymc_dp.transforms.privatize import mark_private, observe_tables, warn_of_bounds
from pymc_dp.transforms.published_model import PublishedModel
from pymc_dp.transforms.trial import Trial

if TYPE_CHECKING:
    from pymc_dp.gradients.refit import Refit  # Numba, which most users of releases never need


@dataclass(frozen=True, kw_only=True, eq=False)
class Part(ABC):
    """One release, matched with the likelihoods that it is about.

    Attributes
    ----------
    record : ReleaseRecord
        Its tables have the names that they get in the new model.
    values : mapping of str to array
        By these names.
    parameters : sequence of Variable
        Graphs over the free variables of the model.
    dropped, kept_data : tuple of str
        Deterministics that stay behind, and data that the new model needs.
    hidden : frozenset of Variable
        What the new model must not reach.
    """

    record: ReleaseRecord
    values: Mapping[str, Array]
    parameters: Sequence[Variable]
    dropped: tuple[str, ...]
    kept_data: tuple[str, ...]
    hidden: frozenset[Variable]

    @abstractmethod
    def observe(self, new: Model, parameters: Sequence[Variable]) -> None:
        """Add the tables to a model that has these parameters."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SumsPart(Part):
    """Noised sums of rows."""

    drawn: Drawn
    lengths: tuple[int, ...]

    @classmethod
    def of(
        cls,
        inspection: Inspection,
        tables: Sequence[TablePlan],
        release: Release,
        names: Mapping[str, str],
        *,
        noise_aware: bool,
    ) -> SumsPart:
        """Take what was planned; `names` are those of the tables in the release by those of the likelihoods."""
        plan = ReleasePlan(
            tables=tuple(tables),
            neighbours=inspection.domain.neighbours,
            relation=inspection.domain.relation,
            statistics=Statistics(noise=tables[0].kind, noise_aware=noise_aware),
            epsilon=release.epsilon,
            delta=release.delta,
        )
        records = {table.name: table for table in release.record.tables}
        own = [names.get(table.name, table.name) for table in tables]
        of_network = release.of_network
        kept = [renamed(made, own[0]) for made in make_tables(plan)] if of_network else [records[name] for name in own]
        values = {
            table.name: release.tables[name][released_rows(records[name].plan, table)]
            for table, name in zip(tables, own, strict=True)
        }
        per_table = [table_parameters(table) for table in tables]
        inspection.require()
        exact = release.record.guarantee == "exact"
        guarantee: Literal["exact", "none"] = "exact" if exact else "none"
        return cls(
            record=replace(release.record, tables=tuple(kept), noise_aware=noise_aware, left_out=inspection.dropped),
            values={name: values[table.name] for table, name in zip(tables, own, strict=True)},
            parameters=[parameter for parameters in per_table for parameter in parameters],
            dropped=inspection.dropped,
            kept_data=inspection.kept_data,
            hidden=inspection.hidden,
            drawn=Drawn(plan=plan, values=values, guarantee=guarantee),
            lengths=tuple(map(len, per_table)),
        )

    @override
    def observe(self, new: Model, parameters: Sequence[Variable]) -> None:
        left = iter(parameters)
        for table in self.record.tables:
            new.add_coords({table.cell_dim: table.cells, table.column_dim: table.columns})
        observe_tables(new, [list(islice(left, length)) for length in self.lengths], self.drawn, self.record)


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientsPart(Part):
    """Noised gradients."""

    refit: Refit

    @classmethod
    def of(cls, refit: Refit) -> GradientsPart:
        """Take what was matched."""
        inspection = refit.interface.inspection
        inspection.require()
        return cls(
            record=refit.record,
            values={refit.table.name: refit.quadratic.table},
            parameters=[refit.interface.flat],
            dropped=inspection.dropped,
            kept_data=inspection.kept_data,
            hidden=inspection.hidden,
            refit=refit,
        )

    @override
    def observe(self, new: Model, parameters: Sequence[Variable]) -> None:
        from pymc_dp.gradients.refit import observe_refit

        observe_refit(new, self.refit, parameters[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedPart(Part):
    """Tables that others noised."""

    cells: PublishedModel

    @classmethod
    def of(cls, cells: PublishedModel) -> PublishedPart:
        """Take what was matched."""
        return cls(
            record=cells.record,
            values=cells.values,
            parameters=cells.parameters,
            dropped=cells.dropped,
            kept_data=cells.kept_data,
            hidden=cells.hidden,
            cells=cells,
        )

    @override
    def observe(self, new: Model, parameters: Sequence[Variable]) -> None:
        self.cells.observe(new, parameters)


def joined(model: Model, parts: Sequence[Part], record: ReleaseRecord) -> Model:
    """Return a model with the priors of another one and the tables of all parts: their densities multiply.

    Notes
    -----
    **Guarantee.** That of the releases: it is made from them and from what is no row of the model.
    """
    dropped = {name for part in parts for name in part.dropped}
    hidden = frozenset[Variable]().union(*(part.hidden for part in parts))
    wanted = {name for part in parts for name in part.kept_data}
    new, moved = clone_without_rows(
        model,
        deterministics=[det.name for det in model.deterministics if det.name not in dropped],
        data=[var.name for var in model.data_vars if var.name in wanted and var not in hidden],
        parameters=[parameter for part in parts for parameter in part.parameters],
    )
    if hidden & everything_reached(new, moved):
        raise PrivacyError("Private data would stay within reach of the private model; this is an error of pymc_dp.")
    left = iter(moved)
    for part in parts:
        part.observe(new, list(islice(left, len(part.parameters))))
    if refits := [part.refit for part in parts if isinstance(part, GradientsPart)]:
        from pymc_dp.gradients.refit import in_good_coordinates

        new = in_good_coordinates(new, refits)
    mark_private(new, record, {name: value for part in parts for name, value in part.values.items()})
    _warn(new, parts)
    return new


def _warn(new: Model, parts: Iterable[Part]) -> None:
    """Say where a bound does not fit what was released, and where a density is not finite."""
    others = [part for part in parts if not isinstance(part, GradientsPart)]
    for part in others:
        if isinstance(part, SumsPart):
            warn_of_bounds(part.drawn)
    if others:
        Trial().check(new)


__all__ = ["GradientsPart", "Part", "PublishedPart", "SumsPart", "joined"]
