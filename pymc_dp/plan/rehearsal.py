"""``dp.plan(statistics=dp.Gradients())``: noised gradients of made-up tables, and how well their intervals do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from pymc import Model

from pymc_dp._progress import Advance
from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.gradients.choice import Gradients
from pymc_dp.gradients.fit import Planned
from pymc_dp.gradients.interface import interface_of
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.row_parts import block_size, expected
from pymc_dp.gradients.simulated import interface_parameters
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.weights import refuse_weights
from pymc_dp.kernel.randomness import Insecure, use_insecure
from pymc_dp.plan.misfit import Misfit
from pymc_dp.plan.result import NOT_PRIVATE, Outcome, Recorder
from pymc_dp.plan.truths import row_count
from pymc_dp.rows.persons import Grouped
from pymc_dp.simulation.columns import loose_columns
from pymc_dp.simulation.misfit import drawn_as, misfits
from pymc_dp.simulation.prior import draw_prior, draws_at
from pymc_dp.simulation.rows import DrawRows, SimulatedTable, draw_tables, draw_tables_at
from pymc_dp.transforms.privatize import refuse_released

REPEATS = 20
ROUNDS, MOST_ROUNDS = 4, 25
"""Of Fisher scoring from the truth, to the posterior that is not private; the most, where rows are not of the model."""
ARRIVED = 0.05
"""Step of it, in posterior standard deviations, below which it has arrived."""
OTHERS = 12
"""Draws from the prior, of which rows that do not fit have their parameters."""
NARROWER = 10
NARROW = "columns ten times narrower"
CALIBRATED = 0.05
"""How far below what they claim intervals may cover in a rehearsal to be labelled calibrated."""
LEAST_WIDTH = 0.95
"""Of intervals over those without privacy: what is below is not noise of the rehearsal."""
HOW = (
    "in closed form: each likelihood is approximated by a normal in its parameters, and their prior by a normal with "
    "the mean and covariance of prior draws; bounded parameters are on the scale of their transform"
)


class Rehearsal:
    """Releases of noised gradients from tables that are drawn from the prior.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain or None
    methods : mapping of str to Gradients
    n_rows : int or None
        None: as many as the model has, or ``n_max``.

    Notes
    -----
    **Guarantee.** Reads no private value and spends nothing.
    """

    def __init__(
        self, model: Model, domain: Domain | None, methods: Mapping[str, Gradients], n_rows: int | None
    ) -> None:
        refuse_released(model)
        refuse_weights(domain)
        interface = interface_of(model, domain)
        self.n_rows, self.rows = row_count(interface.inspection, n_rows)
        self.interface = replace(interface, inspection=replace(interface.inspection, n_rows=self.n_rows))
        self.methods = methods
        self.covariates = {name: one for method in methods.values() for name, one in (method.columns or {}).items()}

    @property
    def names(self) -> list[str]:
        """Parts of the interface parameters."""
        return [part.name for part in self.interface.parts]

    @property
    def local(self) -> list[str]:
        """Methods that release one mode of several."""
        return [name for name, method in self.methods.items() if method.local]

    def budgets(self, losses: Sequence[float], delta: float) -> dict[tuple[str, float], Planned]:
        """Plan every release; δ must be > 0."""
        return {
            (name, loss): Planned.of(method, self.interface, Budget(loss, delta))
            for name, method in self.methods.items()
            for loss in losses
        }

    def run(
        self,
        planned: Mapping[tuple[str, float], Planned],
        interval: float,
        repeats: int,
        rng: np.random.Generator,
        advance: Advance,
    ) -> list[Outcome]:
        """Fit every release of every table, and the posterior that is not private beside them.

        Parameters
        ----------
        planned : mapping of (str, float) to Planned
            By method and ε.
        interval : float
        repeats : int
            Tables.
        rng : numpy.random.Generator
        advance : Advance
        """
        found, first = list[Outcome](), next(iter(planned.values()))
        prior = first.prior.divided(1 / first.limits.scale)
        for narrow in (False, True)[: self.passes]:
            tables = self._tables(repeats, rng, 1 / NARROWER if narrow else 1.0)
            plain = Recorder(self.names, interval)
            for table in tables:
                advance(1, NOT_PRIVATE)
                self.note(plain, *without_privacy(first, prior, table), table.truth)
            alone = plain.outcome(NOT_PRIVATE, inf, 0.0)
            found += [] if narrow else [alone]
            for (name, loss), one in planned.items():
                recorder, method = Recorder(self.names, interval), f"{name}, {NARROW}" if narrow else name
                for table in tables:
                    advance(1, f"{method}, ε = {loss:g}")
                    self.note(recorder, *privately(one, prior, table), table.truth)
                widths = alone.widths if narrow else None
                found.append(recorder.outcome(method, loss, one.budget.delta, widths))
        return found

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of misfit that rows of the model may have."""
        return misfits(self.interface.inspection, self.covariates)

    def run_misfits(
        self, planned: Mapping[tuple[str, float], Planned], repeats: int, rng: np.random.Generator, advance: Advance
    ) -> tuple[Misfit, ...]:
        """Release tables that do not fit the model, `repeats` in all, and compare with the posterior of the same rows.

        Parameters
        ----------
        planned, repeats, rng, advance
            As for `run`; tables are shared out among the kinds of misfit.
        """
        first = next(iter(planned.values()))
        prior = first.prior.divided(1 / first.limits.scale)
        others = _others(*interface_parameters(self.interface)[:1], rng)
        found = list[Misfit]()
        for place, kind in enumerate(self.kinds):
            count = len(range(place, repeats, len(self.kinds)))
            tables = self._tables(count, rng, drawn=drawn_as(kind, others)) if count else []
            plain = [without_privacy(first, prior, table, MOST_ROUNDS) for table in tables]
            advance(len(tables), kind)
            for (name, loss), one in planned.items():
                fits = []
                for table, alone in zip(tables, plain, strict=True):
                    advance(1, f"{name}, ε = {loss:g}, {kind}")
                    if np.isfinite(alone[0]).all():
                        fits.append((*privately(one, prior, table), *alone))
                if fits:
                    found.append(Misfit.of(kind, name, loss, fits))
        return tuple(found)

    @property
    def passes(self) -> int:
        """How often tables are drawn anew: twice where columns may fill a small part of their bounds."""
        return 2 if loose_columns(self.interface.inspection, self.covariates) else 1

    def _tables(
        self, count: int, rng: np.random.Generator, width: float = 1.0, drawn: DrawRows | None = None
    ) -> list[SimulatedTable]:
        """Draw tables, whose truths are interface parameters."""
        inspection, (model, at) = self.interface.inspection, interface_parameters(self.interface)
        asked: dict[str, Any] = {"n_rows": self.n_rows, "count": count, "rng": rng}
        tables = draw_tables(inspection, model, self.covariates, width=width, drawn_as=drawn, **asked)
        return _of_interface(tables, at)

    def tables_at(self, values: Mapping[str, Array], rng: np.random.Generator, caller: str) -> list[SimulatedTable]:
        """Draw a table for each of some values of the free variables; their truths are interface parameters."""
        inspection, (model, at) = self.interface.inspection, interface_parameters(self.interface)
        drawn = draws_at(model, values)
        tables = draw_tables_at(inspection, drawn, self.covariates, n_rows=self.n_rows, rng=rng, caller=caller)
        return _of_interface(tables, at)

    def note(self, recorder: Recorder, mean: Array, covariance: Array, truth: Array) -> None:
        """Note a normal posterior of the interface parameters."""
        sd = np.sqrt(np.diag(covariance))
        recorder.add_normal(*({name: one[place] for name, place in self._places()} for one in (mean, sd, truth)))

    def _places(self) -> Iterator[tuple[str, slice]]:
        for part in self.interface.parts:
            yield part.name, slice(part.start, part.start + part.size)


def _of_interface(
    tables: Sequence[SimulatedTable], at: Callable[[Array, Sequence[tuple[int, ...]]], Array]
) -> list[SimulatedTable]:
    """Return tables with interface parameters as their truths."""
    truths = at(np.array([table.truth for table in tables]), tables[0].shapes)
    return [replace(table, truth=truth) for table, truth in zip(tables, truths, strict=True)]


def privately(planned: Planned, prior: Prior, table: SimulatedTable) -> tuple[Array, Array]:
    """Return mean and covariance of the private posterior of a made-up table, with simulated noise."""
    with use_insecure(Insecure(np.random.default_rng(table.seed))):
        found = planned.walk(owned(table.rows, planned.interface.inspection.domain))
    return planned.quadratic(found).posterior(prior.mean, prior.precision)


def owned(rows: Sequence[Array], domain: Domain) -> Sequence[Array] | Grouped:
    """Return made-up rows as those of persons, with as many rows each as count, where ε protects persons."""
    if domain.unit is None:
        return rows
    count = len(rows[0])
    return Grouped(list(rows), np.append(np.arange(0, count, domain.unit.max_rows), count))


def without_privacy(planned: Planned, prior: Prior, table: SimulatedTable, most: int = ROUNDS) -> tuple[Array, Array]:
    """Return mean and covariance of the posterior given the rows themselves: Fisher scoring from the truth.

    Of up to `most` rounds, at least `ROUNDS`. Where more are allowed, and none arrives, the mean is NaN.
    """
    at, arrived = table.truth, most == ROUNDS
    for turn in range(most):
        slope, curvature = _summed(planned, at, table.rows)
        covariance = np.linalg.inv(prior.precision + curvature)
        before, at = at, covariance @ (prior.precision @ prior.mean + curvature @ at + slope)
        arrived = arrived or bool((np.abs(at - before) < ARRIVED * np.sqrt(np.diag(covariance))).all())
        if arrived and turn + 1 >= ROUNDS:
            break
    return at if arrived else np.full_like(at, np.nan), covariance


def _others(model: Model, rng: np.random.Generator) -> list[dict[str, Array]]:
    """Draw from the prior, by the names of free variables."""
    drawn = draw_prior(model, rng, OTHERS).values
    return [{name: one[place] for name, one in drawn.items()} for place in range(OTHERS)]


def _summed(planned: Planned, at: Array, columns: Sequence[Array]) -> tuple[Array, Array]:
    """Sum of scores, and of what the model says about their variances."""
    rows, size = planned.simulated.rows, len(at)
    slope, curvature, step = np.zeros(size), np.zeros((size, size)), block_size(rows)
    with np.errstate(all="ignore"):
        for start in range(0, len(columns[0]), step):
            chunk = [column[start : start + step] for column in columns]
            found = expected(rows, chunk, at, np.ones(size))
            jacobian, moments = found.of_rows(found.jacobian), found.of_rows(found.responses.moments)
            own = np.einsum("nq,nqd->nd", found.observed, jacobian)
            bent = np.matmul(jacobian.transpose(0, 2, 1), np.matmul(moments, jacobian))
            kept = np.isfinite(own).all(axis=1) & np.isfinite(bent).all(axis=(1, 2))
            slope += own[kept].sum(axis=0)
            curvature += bent[kept].sum(axis=0)
    return slope, curvature


def labels(outcomes: Sequence[Outcome], interval: float, local: Sequence[str] = ()) -> tuple[str, ...]:
    """Say of which budgets intervals may be called calibrated.

    Those that cover enough, all parameters together, and are nowhere narrower than intervals without privacy, which
    know more: where they are, coverage by chance, or by the prior, shows nothing. None of a `local` method, whose one
    mode need not be that of the parameters that were drawn.
    """
    found = []
    for outcome in outcomes[1:]:
        covered = float(np.mean(np.concatenate([np.ravel(one) for one in outcome.covered.values()])))
        plain = outcome.plain or outcomes[0].widths
        narrow = [name for name, widths in outcome.widths.items() if widths.mean() < LEAST_WIDTH * plain[name].mean()]
        says = f"{interval:.0%} intervals cover {covered:.0%} in this rehearsal"
        at = f"{outcome.method} at ε = {outcome.epsilon:g}"
        if outcome.method.removesuffix(f", {NARROW}") in local:
            found.append(
                f"{at}: no calibrated label. The release is local, about one mode of several, and the parameters that "
                f"were drawn may be of another; {says}."
            )
        elif covered < interval - CALIBRATED:
            found.append(
                f"{at}: no calibrated label. {says}, less than {interval - CALIBRATED:.0%}: take more rows, a larger "
                "ε, or fewer parameters."
            )
        elif narrow:
            found.append(
                f"{at}: no calibrated label. Intervals of {', '.join(narrow)} are narrower than those without privacy: "
                "take tighter bounds, or say how columns are distributed, dp.Gradients(columns=...)."
            )
        else:
            found.append(f"{at}: calibrated, as {says}.")
    return tuple(found)


__all__ = ["REPEATS", "Rehearsal", "labels", "privately", "without_privacy"]
