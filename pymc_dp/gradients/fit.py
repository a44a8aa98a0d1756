"""The way from a model to a release of noised gradients, and to the private model that holds it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import cpu_count
from typing import Literal

import numpy as np
from pymc import Model

from pymc_dp._column_bounds import hull_of
from pymc_dp._display import scalar_names
from pymc_dp._progress import progress
from pymc_dp.accounting import Budget, DiscreteGaussianEvent, Ledger, total_epsilon
from pymc_dp.accounting.calibrate import mu_for
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, PosteriorWarning
from pymc_dp.gradients.approximations import UNCALIBRATED, approximations
from pymc_dp.gradients.bent import Bent, apart, followed, noisy
from pymc_dp.gradients.centred import bends, centred
from pymc_dp.gradients.choice import NAME, Gradients
from pymc_dp.gradients.curvature import MOST_FULL, shrunk
from pymc_dp.gradients.descent import Descent, trusted
from pymc_dp.gradients.interface import Interface, interface_of
from pymc_dp.gradients.left_out import RowCounts
from pymc_dp.gradients.legs import Prior
from pymc_dp.gradients.misfit import Residuals, misfit_of
from pymc_dp.gradients.moments import Moments
from pymc_dp.gradients.persons import OUTCOMES, PersonParts, require_few
from pymc_dp.gradients.private_model import SEED, Quadratic, columns_of, path_prior, unsure
from pymc_dp.gradients.refit import Refit, observed_alone
from pymc_dp.gradients.release import NoisedSums
from pymc_dp.gradients.row_parts import RowParts, block_size
from pymc_dp.gradients.row_scores import RowScores
from pymc_dp.gradients.schedule import (
    COLUMNS,
    FIT,
    LEFT_OUT,
    NORMS,
    SQUARES,
    WEIGHTED_SQUARES,
    WEIGHTS,
    Extras,
    Limits,
    Schedule,
    Units,
)
from pymc_dp.gradients.simulated import Simulated
from pymc_dp.gradients.start import early, start_of
from pymc_dp.gradients.tails import ALL, FEW, FEW_VALUES, MANY, Chosen, Tail, chosen, edges_of
from pymc_dp.gradients.verdict import labels_of, reasons
from pymc_dp.gradients.walk import Found, walk
from pymc_dp.gradients.walk_rows import WalkRows
from pymc_dp.gradients.weighted import WeightedParts, check_robust, check_weighted
from pymc_dp.inspection.owners import owner_of
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.weights import require_weights
from pymc_dp.kernel.account import Account, Rehearsal
from pymc_dp.kernel.accounting.gdp import epsilon_of_mu
from pymc_dp.kernel.limits import MOST_ROWS
from pymc_dp.kernel.walks import Walk
from pymc_dp.release.paid import PACKAGE, keep
from pymc_dp.release.paid_account import PaidAccount
from pymc_dp.release.record import ReleaseRecord, TableRecord, described_domain
from pymc_dp.release.verdict import Verdict
from pymc_dp.rows.passes import Passes, with_stored
from pymc_dp.rows.person_files import row_of
from pymc_dp.rows.persons import Grouped
from pymc_dp.rows.spool import Scratch, row_bytes
from pymc_dp.rows.stored import StoredRows
from pymc_dp.transforms.privatize import mark_paid, record_of

PASSES = "passes over the rows"
FAILURES = (np.linalg.LinAlgError, ArithmeticError, ValueError)
"""Of arithmetic with released numbers that are far too large or too small."""


def fitted(
    choice: Gradients,
    model: Model,
    domain: Domain | None,
    budget: Budget,
    *,
    ledger: Ledger | None,
    label: str,
    check: Callable[[Model], None] | None,
    progressbar: bool,
    rows: StoredRows | None = None,
) -> Model:
    """Do what `Gradients.make_private` does."""
    interface, passes = interface_of(model, domain), None
    if rows is not None:
        interface, passes = _over(interface, rows)
    elif interface.inspection.domain.unit is not None:
        owner_of(interface.inspection)  # or says now that there is none
    else:
        require_weights(interface.inspection)
    scratch, copied = _scratch(choice), 0 if passes is None else _copied_bytes(passes)
    scratch.require(interface.inspection, copied)
    planned = Planned.of(choice, interface, budget)
    trial = planned.private(planned.dummy(), "none")
    if interface.size > MOST_FULL:
        warnings.warn(
            f"{UNCALIBRATED.format(interface.size)}. Nothing is spent yet: rehearse with "
            "dp.plan(statistics=dp.Gradients()), or use fewer groups.",
            PosteriorWarning,
            skip_file_prefixes=(PACKAGE,),
        )
    if check is not None:
        check(trial)
    made, what = None, f"noised gradients of {', '.join(planned.responses)}"
    inspection = planned.interface.inspection
    scratch.require(inspection, copied)  # planning took a while, and others may write there
    source = WalkRows(inspection=inspection, size=planned.block, stored=passes, scratch=scratch, shown=progressbar)
    try:
        with PaidAccount(inspection, budget, called=label, ledger=ledger) as account:
            charged = planned.charged(source, account, what)
            found = account.payment.read(lambda: planned.walked(charged, progressbar))
            made = planned.private(found, charged.guarantee)
            mark_paid(made, account.payment)
        held = record_of(made)
        assert held is not None
        verdict = Verdict.from_list(held[0].tables[0].plan["verdict"])
        if verdict.warns:
            text = f'The verdict on this release is "{verdict}" The release was made and charged.'
            warnings.warn(text, PosteriorWarning, skip_file_prefixes=(PACKAGE,))
        return made
    except (Exception, KeyboardInterrupt) as error:
        keep(error, private_model=made)
        raise


@dataclass(frozen=True, kw_only=True, eq=False)
class Planned:
    """A release of noised gradients, before anything is read.

    Attributes
    ----------
    choice : Gradients
    interface : Interface
    simulated : Simulated
    moments : Moments
    start : (d,) array
        Where the walk starts, in these coordinates.
    limits : Limits
        Of the first curvature.
    schedule : Schedule
    prior : Prior
        Of the path, in the coordinates η / D.
    early : Prior or None
        That of the first stage, where it is another.
    budget : Budget
    descent : Descent or None
        Ahead of the walk.
    """

    choice: Gradients
    interface: Interface
    simulated: Simulated
    moments: Moments
    start: Array
    limits: Limits
    schedule: Schedule
    prior: Prior
    early: Prior | None
    budget: Budget
    descent: Descent | None

    @classmethod
    def of(cls, choice: Gradients, interface: Interface, budget: Budget) -> Planned:
        """Simulate, and choose limits and noise."""
        rng, domain = np.random.default_rng(SEED), interface.inspection.domain
        most = interface.inspection.most_rows
        if most > MOST_ROWS:
            raise ArgumentError(
                f"dp.Gradients sums up to {MOST_ROWS} rows, and there may be {most}. Use a sample of them."
            )
        require_few(interface.size, domain)
        weighted = interface.inspection.weight is not None
        if weighted:
            check_weighted(choice, interface)
        if choice.robust:
            check_robust(choice, interface)
        steps, momentum = choice.steps, choice.momentum_steps
        moments = Moments.of(interface.inspection, choice.columns or {})
        if choice.local:
            moments = Moments(entries=())
        extras = Extras(
            weights=WEIGHTS * weighted,
            norms=NORMS * (not choice.trusts),
            squares=WEIGHTED_SQUARES if weighted else SQUARES * choice.robust,
            columns=COLUMNS * bool(moments.entries),
            moments=moments.count,
            fit=FIT,
            checks=Residuals.count,
            left_out=LEFT_OUT * (domain.unit is not None),
            counts=RowCounts.count * (domain.unit is not None),
        )
        within = partial(Schedule.within, budget, steps=steps, momentum_steps=momentum, extras=extras)
        of = partial(Units, dimension=interface.size, neighbours=domain.neighbours)
        schedule = within(of())  # says first what a budget cannot be
        simulated = Simulated.of(RowScores.of(interface), choice.columns or {}, rng)
        vectors = simulated.rows.count if domain.unit is None else min(interface.size, OUTCOMES)
        schedule = replace(schedule, units=of(vectors=vectors))
        if simulated.levels is not None:
            schedule = within(of(levels=simulated.levels, vectors=vectors))
        prior = path_prior(interface)
        within_bounds = None if choice.local else start_of(simulated, prior)
        if within_bounds is not None:
            simulated = simulated.scaled(within_bounds)
        prior = prior.divided(simulated.scale)
        start = prior.mean if within_bounds is None else within_bounds / simulated.scale
        return cls(
            choice=choice,
            interface=interface,
            simulated=simulated,
            moments=moments,
            start=start,
            limits=simulated.first(start * simulated.scale),
            schedule=schedule,
            prior=prior,
            early=None if within_bounds is None else early(simulated, prior, start),
            budget=budget,
            descent=Descent.of(simulated, prior, interface.inspection.most_units) if choice.local else None,
        )

    @property
    def responses(self) -> tuple[str, ...]:
        """Names of the observed variables."""
        return tuple(one.name for one in self.interface.inspection.observed)

    @property
    def spent(self) -> list[float]:
        """ε of the first release, of the first two, and so on, by Gaussian differential privacy: for a bar."""
        events = self.schedule.event.events
        parts = np.cumsum([float(event.rho) for event in events if isinstance(event, DiscreteGaussianEvent)])
        whole, delta = mu_for(self.budget.epsilon, self.budget.delta), self.budget.delta
        return [epsilon_of_mu(whole * float(np.sqrt(part / parts[-1])), delta) for part in parts]

    @property
    def block(self) -> int:
        """Rows that are gone through at a time; of persons about so many."""
        rows = RowParts(rows=self.simulated.rows)
        persons = self._persons(rows)
        size = block_size(rows.rows)
        return size if persons is None else persons.few(size)

    def charged(self, source: WalkRows, account: Account, label: str = "") -> Walk:
        """Return a walk of the kernel over some rows, which is paid for by then; nothing is read."""
        return Walk(source, account, list(self.schedule.sums.values()), label=label, threads=cpu_count() or 1)

    def walk(self, columns: Sequence[Array] | Grouped) -> Found:
        """Release everything of made-up rows, which are public: nothing is charged."""
        source = WalkRows(inspection=self.interface.inspection, size=self.block, held=columns)
        return self.walked(self.charged(source, Rehearsal(source.relation)))

    def walked(self, charged: Walk, shown: bool = False) -> Found:
        """Release everything, with a bar over the passes that says what is spent; their number is public."""
        spent = self.spent if shown else []
        words = (f"{PASSES}, ε = {loss:.3g}" for loss in spent)
        with charged.opened(), progress(shown, PASSES, len(spent)) as advance:
            return self._walked(charged, lambda: advance(description=next(words, None)))

    def _walked(self, charged: Walk, passed: Callable[[], None]) -> Found:
        rows = RowParts(rows=self.simulated.rows)
        weighted = self._weighted(rows)
        parts = weighted or self._persons(rows) or rows
        releases = NoisedSums(parts=parts, walk=charged, schedule=self.schedule, passed=passed, weighted=weighted)
        scale, simulated = self.limits.scale, self.simulated
        stages, prior, limits, start = self.schedule.stages, self.prior, self.limits, self.start
        unit = self.interface.inspection.domain.unit
        counts = None if unit is None else RowCounts(most=unit.max_rows)
        left_out = None if counts is None else counts.read(*releases.left_out(counts))
        if self.moments.entries:
            simulated = simulated.informed(self.moments, *releases.moments(self.moments))
            limits = simulated.first(start * scale)
        if self.descent is not None:
            start = self.descent.end(stages[0].steps, prior, releases)
            prior = trusted(prior, start)
            stages, limits = stages[1:], self.simulated.first(start * scale)
        n_rows: float = self.interface.inspection.most_units
        if weighted is not None:
            n_rows = max(releases.weights())  # what is lost in its noise is no larger than that
        found = walk(
            stages,
            prior,
            releases,
            limits=limits,
            n_rows=n_rows,
            start=start,
            early=self.early,
            bend=lambda at: simulated.bend(at * scale),
            unidentified=lambda at: simulated.unidentified(at * scale),
            widest=simulated.widest,
            limit=None if self.choice.trusts else partial(self._limit, simulated, releases, n_rows),
            first=len(self.schedule.stages) - len(stages),
        )
        residuals = Residuals(parts=rows)
        count = self.interface.inspection.most_units  # not the sum of the weights
        misfit = misfit_of(*releases.fit(residuals, found.end, found.limits), count)
        found = replace(found, simulated=simulated, misfit=misfit, left_out=left_out)
        if not self.schedule.extras.squares:
            return found
        limits = _of_squares(found, releases)
        squares = shrunk(*releases.squares(found.end, limits)).matrix
        return replace(found, scores=limits.curvature(squares))

    def _limit(
        self, simulated: Simulated, releases: NoisedSums, n_rows: float, stage: int, at: Array, limits: Limits
    ) -> Chosen:
        """Choose the limit of the last stage by a released histogram of norms."""
        largest = simulated.largest(at, limits)
        edges = edges_of(limits.clip_norm, largest)
        released, deviation = releases.norms(at, limits, np.where(edges[:-1] < edges[1:], edges[:-1], np.inf))
        return chosen(
            Tail.of(released, edges, deviation, n_rows),
            least=limits.clip_norm,
            largest=largest,
            noise=math.sqrt(releases.variance(stage, limits)) / limits.clip_norm,
            kappa=self._kappa,
        )

    @property
    def _kappa(self) -> float:
        inspection, responses = self.interface.inspection, self.interface.responses
        if inspection.domain.unit is not None:
            return ALL
        few = all(one.values is not None and one.count <= FEW_VALUES for one in responses)
        return FEW if few else MANY

    def _persons(self, rows: RowParts) -> PersonParts | None:
        return None if self.interface.inspection.domain.unit is None else PersonParts(parts=rows)

    def _weighted(self, rows: RowParts) -> WeightedParts | None:
        place = self.interface.inspection.weight
        return None if place is None else WeightedParts(parts=rows, place=place, largest=self.largest)

    @property
    def largest(self) -> float:
        """Public bound on a weight; 1 where rows are not weighed."""
        domain = self.interface.inspection.domain
        return max((hull_of(domain.bounds[name])[1] for name in domain.weights.values()), default=1.0)

    def dummy(self) -> Found:
        """Return what a walk might find, for a private model that is looked at before anything is charged."""
        size = self.interface.size
        return Found(
            slope=np.zeros(size),
            curvature=np.eye(size),
            noise=np.eye(size),
            end=self.prior.mean,
            limits=self.limits.whitened(np.eye(size), self.interface.inspection.most_units),
            unresolved=0,
            chi_squared=1.0,
            degrees=1,
            path=(),
            rows=1.0,
        )

    def quadratic(self, found: Found) -> Quadratic:
        """Return what was found as a likelihood of the parameters."""
        return self._answer(found)[0]

    def _answer(self, found: Found) -> tuple[Quadratic, float]:
        """Return the likelihood of the parameters, and how far apart means with bent and with straight scores are."""
        shares, simulated = None, found.simulated or self.simulated
        if self.choice.trusts and not self.choice.conservative and found.scores is None:
            shares = simulated.shares(found.end * self.limits.scale, found.limits.relaxing)
        quadratic = Quadratic.of(found, self.limits.scale, shares)
        if self.choice.local:
            return quadratic.around(found.end, trusted(self.prior, found.end).precision), 0.0
        try:
            quadratic = unsure(found, quadratic, self.prior)
            if not self._follows or not found.path:
                return quadratic, 0.0
            bent = Bent.of(found, simulated, found.rows)
            off = bends(quadratic, bent, self.prior)
            if np.isfinite(off).all():
                quadratic = replace(quadratic, covariance=quadratic.covariance + np.outer(off, off))
            if bent.strained and not noisy(found, quadratic):
                return quadratic, 0.0
            nearest = followed(found, quadratic, bent, self.prior)
            far = 0.0 if nearest is quadratic else apart(quadratic, nearest, self.prior)
            if nearest is quadratic and found.scores is None:
                nearest = centred(quadratic, bent, self.prior)
            finite = np.isfinite(nearest.root).all() and np.isfinite(nearest.slope).all()
            return (nearest if finite else quadratic), far
        except FAILURES:  # a release that was paid for is never lost
            return quadratic, 0.0

    def _verdict(self, found: Found, quadratic: Quadratic, far: float) -> Verdict:
        """Say whether the posterior can be relied on."""
        labels = labels_of(self.interface)
        robust = found.scores is not None
        own = reasons(found, quadratic, far, self.prior, labels, local=self.choice.local, robust=robust)
        unit = self.interface.inspection.domain.unit
        if unit is not None and found.left_out is not None:
            own += found.left_out.reasons(unit)
        return Verdict(reasons=tuple(own))

    @property
    def _follows(self) -> bool:
        """Whether made-up rows say how scores bend: of one mode, and where curvatures are released whole."""
        return not self.choice.local and self.limits.levels is None

    def private(self, found: Found, guarantee: Literal["exact", "none"]) -> Model:
        """Return the private model of what was released."""
        quadratic, far = self._answer(found)
        record = self._record(self._table(found, self._verdict(found, quadratic, far)), guarantee)
        prior = self.prior.divided(1 / self.limits.scale)
        return observed_alone(Refit(interface=self.interface, quadratic=quadratic, record=record, prior=prior))

    def _table(self, found: Found, verdict: Verdict) -> TableRecord:
        limits, schedule, labels = found.limits, self.schedule, scalar_names(self.interface.parts)
        times = f"{self.largest:g} · " if self.interface.inspection.domain.weights else ""
        of_scores, of_curvatures = (f"{times}{name}" for name in schedule.units.names)
        return TableRecord(
            name=NAME,
            likelihood=f"of {', '.join(self.responses)}, by {len(schedule.event.events)} noised sums",
            cell_dim=f"{NAME}_parameter",
            column_dim=f"{NAME}_statistic",
            cells=labels,
            columns=columns_of(labels),
            scales=(float(np.sqrt(np.diag(found.noise).mean())), *[0.0] * (2 * len(labels) + 1)),
            epsilon=total_epsilon(schedule.event, self.budget.delta).epsilon,
            sensitivities=(
                f"Δ2 = {of_scores} of scores, C = {limits.clip_norm:.4g} at last",
                f"{of_curvatures} of curvatures, C_F = {limits.clip_curvature:.4g} at last",
                "enforced on the whole numbers that are summed",
            ),
            sizes_public=False,
            plan={
                "kind": NAME,
                "responses": list(self.responses),
                "steps": self.choice.steps,
                "momentum_steps": self.choice.momentum_steps,
                "trust_model": self.choice.trust_model,
                "robust": self.choice.robust,
                "conservative": self.choice.conservative,
                "clip_norm": limits.clip_norm,
                "clip_curvature": limits.clip_curvature,
                "chi_squared": found.chi_squared if found.degrees else None,
                "chi_squared_limit": found.chi_squared_limit if found.degrees else None,
                "unresolved": found.unresolved,
                "verdict": verdict.to_list(),
                **({} if found.left_out is None else {"left_out": found.left_out.to_dict()}),
            },
            approximations=tuple(approximations(found, self.choice, self.interface, follows=self._follows)),
        )

    def _record(self, table: TableRecord, guarantee: str) -> ReleaseRecord:
        inspection, event = self.interface.inspection, self.schedule.event
        return ReleaseRecord(
            epsilon=total_epsilon(event, self.budget.delta).epsilon,
            delta=self.budget.delta,
            asked=self.budget.epsilon,
            guarantee=guarantee,
            arithmetic="hardened",
            neighbours=inspection.domain.neighbours,
            noise="discrete Gaussian",
            noise_aware=True,
            event=event.to_dict(),
            tables=(table,),
            assumptions=inspection.assumptions,
            left_out=inspection.dropped,
            domain=described_domain(inspection.domain),
        )


def _of_squares(found: Found, releases: NoisedSums) -> Limits:
    """Return limits of outer products of scores: as large as noise allows, up to those of the last gradients."""
    limits = found.limits
    size = limits.clip_norm / limits.relaxing[0]
    edge = 2 * math.sqrt(len(limits.scale)) * releases.squares_deviation(replace(limits, clip_norm=size)) / found.rows
    return replace(limits, clip_norm=float(np.clip(size * math.sqrt(1 / edge), size, limits.clip_norm)))


def _over(interface: Interface, stored: StoredRows) -> tuple[Interface, Passes]:
    """Return the interface of a model on dummy rows as that of the same model on stored ones. Reads no row."""
    inspection = with_stored(interface.inspection, stored)
    inspection.require()
    return replace(interface, inspection=inspection), Passes.of(inspection, stored)


def _scratch(choice: Gradients) -> Scratch:
    """Return where a table is copied."""
    return Scratch(folder=None if choice.scratch is None else str(choice.scratch), call="dp.Gradients")


def _copied_bytes(passes: Passes) -> int:
    """Return how many bytes of a row are copied; 0 where the table is read again and again. Reads no row."""
    if passes.owner is not None:
        return row_of(passes).itemsize
    return row_bytes(passes) if passes.stored.once else 0


__all__ = ["Planned", "fitted"]
