"""The private model of one budget with its release held open: fitted to one simulated release after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pymc import Model

from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.plan.batches import at_points, components, density_terms
from pymc_dp.plan.chains import Chain
from pymc_dp.plan.grids import Grids
from pymc_dp.plan.truths import Truths
from pymc_dp.plan.unnoised import UnnoisedDensity
from pymc_dp.release.record import make_tables
from pymc_dp.release.tables import ReleasePlan, TablePlan
from pymc_dp.transforms.density import ReleaseDensity
from pymc_dp.transforms.observed import held
from pymc_dp.transforms.privatize import observe, prepare, sizes_seen


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """One released table of a private model.

    Attributes
    ----------
    value : shared variable
        The released table.
    seen : shared variable or None
        Sizes of its groups as another table shows them, where one does.
    """

    table: TablePlan
    density: ReleaseDensity
    value: Any
    seen: Any


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenModel:
    """A private model, and what its releases are put into."""

    model: Model
    plan: ReleasePlan
    held: tuple[Held, ...]
    noise_aware: bool

    def hold(self, release: Mapping[str, Array]) -> None:
        """Make a release the observed values of the model."""
        for item in self.held:
            value = release[item.table.name]
            if not self.noise_aware:
                value = item.density.project(value)
            item.value.set_value(np.ascontiguousarray(value, dtype=np.float64))
            if item.seen is not None:
                seen, _ = sizes_seen(item.table, self.plan, release)
                item.seen.set_value(np.asarray(seen, dtype=np.float64))


def open_model(
    inspection: Inspection, plan: ReleasePlan, release: Mapping[str, Array], *, exact: bool = False
) -> OpenModel:
    """Build the private model of a plan around one release.

    Parameters
    ----------
    inspection, plan
    release : mapping of str to (n_cells, n_statistics) array
    exact : bool
        Without noise: the posterior that is not private.
    """
    new, parameters = prepare(inspection, plan)
    noise_aware = plan.statistics.noise_aware and not exact
    found = []
    for table, described, given in zip(plan.tables, make_tables(plan), parameters, strict=True):
        seen, noise = sizes_seen(table, plan, release) if noise_aware else (None, 0.0)
        sizes: Any = None if seen is None else held(seen)
        kind = UnnoisedDensity if exact else ReleaseDensity
        density = kind.of(table, noise_aware=noise_aware, seen=sizes, noise=noise)
        if exact:
            density = replace(density, scales=np.zeros(len(table.labels)))
        observe(new, described, given, density, release[table.name])
        value = new.rvs_to_values[new[table.name]]
        found.append(Held(table=table, density=density, value=value, seen=sizes))
    opened = OpenModel(model=new, plan=plan, held=tuple(found), noise_aware=noise_aware)
    opened.hold(release)
    return opened


class Fit:
    """Draws of the posterior of any release of one plan, by grids where they will do, else by NUTS.

    Parameters
    ----------
    opened : OpenModel
        Holding the release of the first truth.
    truths : Truths
    """

    def __init__(self, opened: OpenModel, truths: Truths) -> None:
        self.opened = opened
        # Variances of the noise, where they are free variables, come after those of the model itself.
        beside = [(len(item.density.sizes.bound), item.density.latent) for item in opened.held if item.density.latent]
        rng, self.count = np.random.default_rng(0), truths.points.shape[1]
        noise = [np.log(rng.exponential(size=(len(truths.points), cells * sums))) for cells, sums in beside]
        shapes, points = [*truths.shapes, *beside], np.concatenate([truths.points, *noise], axis=1)
        terms = density_terms(opened.model, shapes)
        self.grids = Grids.of(terms, components(terms, points), points)
        self.chain = None
        if self.grids is None:
            self.chain = Chain(opened.model, np.median(points, axis=0), shapes)

    @property
    def how(self) -> str:
        """In words."""
        return "on a grid" if self.chain is None else "by NUTS"

    def draws(self, release: Mapping[str, Array], seed: int) -> Array:
        """Return draws of the posterior of a release, (n_draws, n_elements): of the elements of a truth."""
        self.opened.hold(release)
        if self.grids is not None:
            return self.grids.draws()[:, : self.count]
        assert self.chain is not None
        return self.chain.draws(seed)[:, : self.count]


def outputs_of(opened: OpenModel, names: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> Any:
    """Return variables of a model as a function of points of its value variables."""
    graphs = opened.model.replace_rvs_by_values([opened.model[name] for name in names])
    return at_points(opened.model, graphs, shapes)


__all__ = ["Fit", "OpenModel", "open_model", "outputs_of"]
