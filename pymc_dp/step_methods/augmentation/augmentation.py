"""``dp.DataAugmentation``: data augmentation, which draws the rows behind a release with the parameters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Self, override

import numpy as np
from pymc import Model
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.basic import Variable

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.rows import Array
from pymc_dp.release.record import ReleaseRecord
from pymc_dp.step_methods.augmentation.given_rows import ScanGivenRows
from pymc_dp.step_methods.augmentation.rows import PER_SCAN, AugmentedRows, Parameters, jump, row_models
from pymc_dp.step_methods.augmentation.tables import Table, record_problems, tables_of
from pymc_dp.step_methods.base import Point
from pymc_dp.step_methods.gibbs.released import levels_by_place, private_model
from pymc_dp.step_methods.own_variables import names_given, require_all
from pymc_dp.step_methods.specified import SpecifiedStep
from pymc_dp.transforms.privatize import record_of

ACCEPTANCE = "acceptance_rate"
LEARNT = ("widths", "moves", "count", "seen")
"""What a scan has learnt in a chain."""


@dataclass_state
class DataAugmentationState(StepMethodState):
    """Sampling state: the augmented rows, and the widths of the slices."""

    tune: bool
    held: dict[str, Any]


class DataAugmentation(SpecifiedStep):
    """Exact noise-aware inference for small tables, by data augmentation: the rows behind the release are sampled too.

    A scan proposes each of the n rows anew from the likelihood, ``x* ~ f(x | θ)``, and accepts it with probability
    ``min(1, η(Ŝ | S*) / η(Ŝ | S))``: S and S* are the sums of the current rows with the old and the new one, clamped
    and rounded as those of the release were, and η is the exact probability of the integer noise. Given the rows, each
    free variable is updated from its ordinary posterior: by an exact draw where its prior is conjugate, else by slice
    sampling or enumeration. Nothing is approximated: no
    central limit theorem, no moments, no quadrature. Noise-aware densities are checked against it.

    Parameters
    ----------
    vars : optional
        All free variables or none: the augmented rows depend on all of them.
    scans_per_draw : int
        Scans per draw that is kept.
    model : pymc.Model, optional
        A model that `privatize` or `condition` made; defaults to that of the context. In the context of another model
        the step is a specification for ``dp.sample(step=...)``.

    Raises
    ------
    UnsupportedModelError
        With every problem: an unknown number of rows (``"add_remove"``), more than 1e5 of them, releases without noise
        or treated as exact sums, likelihoods of several numbers per row, discrete variables without finite levels.
    ArgumentError
        For `vars` that name some of the free variables.

    Notes
    -----
    **Private columns** that index parameters are sampled with the rows: each has a level, and all ways to split the
    rows of one set of public levels among the private levels are equally probable beforehand. Tables that are indexed
    by the same columns see the same levels; where one observed variable indexes others, as in naive Bayes, its own
    sampled values do.

    **Cost.** A scan takes time in proportion to n, and it takes about ``1 + Var(noise) / Var(S | θ)`` scans for an
    independent draw: few where the noise is no larger than the variation of the sums themselves. Under Laplace noise a
    proposal is accepted with probability at least exp(-ε), under Gaussian noise usually.

    **Statistics.** ``acceptance_rate``: part of the proposals for rows that were accepted in a draw.

    **Guarantee.** That of the release: rows are sampled from the released numbers and the model. Nothing private is
    read, so that sampling is post-processing and costs nothing; class exact.

    References
    ----------
    Ju, Awan, Gong, Rao (2022), Data augmentation MCMC for Bayesian inference from privatized data, algorithm 1 and the
    bound on its acceptance, doi 10.48550/arXiv.2206.00710.

    Examples
    --------
    >>> DataAugmentation(scans_per_draw=5)
    DataAugmentation(scans_per_draw=5)
    """

    name = "data_augmentation"
    stats_dtypes_shapes: ClassVar[dict[str, Any]] = {ACCEPTANCE: (np.float64, [])}
    _state_class = DataAugmentationState

    def __init__(
        self,
        vars: Any = None,
        *,
        scans_per_draw: int = 1,
        model: Model | None = None,
        blocked: bool = True,
        rng: Any = None,
        initial_point: Any = None,
        compile_kwargs: Any = None,
    ) -> None:
        self.scans_per_draw = _validate.many("scans_per_draw", scans_per_draw)
        self.rng, self.tune = get_random_generator(rng), True
        self.vars: list[Variable] = []
        self.var_names: tuple[str, ...] = ()
        self.augmented: tuple[AugmentedRows, ...] = ()
        self.scan: ScanGivenRows | None = None
        private = private_model(model)
        if private is not None:
            require_all(names_given(vars), private, "the augmented rows depend on")
            self._bind(private)
        elif vars is not None:
            raise ArgumentError("vars means nothing outside of a private model. Leave it out.")

    def on(self, private: Model) -> Self:
        """Return a copy of a specification, bound to a private model."""
        step = copy.copy(self)
        step._bind(private)
        return step

    @staticmethod
    def check(record: ReleaseRecord, prior_model: Model) -> None:
        """Refuse a release whose rows cannot be augmented; reads no released number.

        Parameters
        ----------
        record : ReleaseRecord
        prior_model : pymc.Model
            The private model, with or without its observed variables.

        Raises
        ------
        UnsupportedModelError
            With every problem.
        """
        problems: list[Problem] = [*record_problems(record), *levels_by_place(prior_model)[1]]
        if problems:
            raise UnsupportedModelError(problems)

    def _bind(self, private: Model) -> None:
        found = record_of(private) if isinstance(private, Model) else None
        if found is None:
            raise ArgumentError(
                "private must be a private model. Give one that dp.privatize made, or pass dp.DataAugmentation() to "
                "dp.sample(epsilon=..., step=...)."
            )
        self.check(found[0], private)
        tables = tables_of(private)
        models = row_models(tables)
        ordered = [table for model in models for table in model.tables]
        self.augmented = tuple(AugmentedRows(model) for model in models)
        self.shapes = {table.name: (table.n_cells, table.family.event_ndims) for table in ordered}
        self.scan = ScanGivenRows(private, ordered)
        self._parameters = _parameters(private, ordered)
        self.vars = list(private.value_vars)
        self.var_names = tuple(str(var.name) for var in self.vars)

    # --- chain --------------------------------------------------------------------------------------------------------

    @override
    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        if self.scan is None:
            raise ArgumentError(
                "dp.DataAugmentation() works on a private model: call it inside of one that dp.privatize made, or pass "
                "it to dp.sample(epsilon=..., step=...)."
            )
        super().setup_chain(rng, tune, draws)
        self.tune = tune > 0
        self.scan.start_chain()
        for rows in self.augmented:
            rows.resume(None)

    @override
    def step(self, point: Point) -> tuple[Point, list[dict[str, Any]]]:
        accepted = 0
        for _ in range(self.scans_per_draw):
            accepted += self._augment(point)
            point = self._infer(point)
            point = self._jump(point)
        proposed = self.scans_per_draw * sum(rows.model.n_rows for rows in self.augmented)
        return point, [{ACCEPTANCE: accepted / max(proposed, 1)}]

    def _augment(self, point: Point) -> int:
        """Propose every row anew, given the free variables; return how many were accepted."""
        parameters = self.parameters(point)
        for rows in self.augmented:
            if rows.rows is None:
                rows.start(self.rng, parameters)
        return sum(rows.sweep(self.rng, parameters) for rows in self.augmented)

    def _infer(self, point: Point) -> Point:
        """Update the free variables, given the rows."""
        assert self.scan is not None
        self.scan.given = [item for rows in self.augmented for item in rows.sums()]
        return self.scan.advance(self.rng, point)

    def _jump(self, point: Point) -> Point:
        """Propose other values of some free variables, and new rows where their parameters change, a few times."""
        assert self.scan is not None
        names = [name for name in self.var_names if name not in self.scan.levels]
        nothing = [np.zeros_like(item) for item in self.scan.given]  # no rows: the prior alone
        prior, before = self.scan.logp(point, nothing), self.parameters(point)
        for _ in range(PER_SCAN if names else 0):
            new = jump(self.rng, point, names, self.scan.widths)
            new_prior = self.scan.logp(new, nothing)
            gain = new_prior - prior + self.rng.standard_exponential()
            if not gain > -np.inf:  # beyond the support, where there are no parameters
                continue
            after = self.parameters(new)
            if self._redraw(gain, before, after):
                point, prior, before = new, new_prior, after
        return point

    def _redraw(self, gain: float, before: Parameters, after: Parameters) -> bool:
        """Redraw the rows whose parameters change, if the noise allows it; return whether it did."""
        redrawn = [(rows, rows.redrawn(self.rng, before, after)) for rows in self.augmented]
        moved = [(rows, found) for rows, found in redrawn if found is not None]
        if not gain + sum(found[2] for _, found in moved) > 0:
            return False
        for rows, found in moved:
            rows.replace(*found[:2])
        return True

    def parameters(self, point: Point) -> dict[str, list[Array]]:
        """Return the parameters of every cell of each table."""
        found = iter(self._parameters(*(point[name] for name in self.var_names)))
        return {
            name: [_per_cell(next(found), n_cells, ndim) for ndim in event_ndims]
            for name, (n_cells, event_ndims) in self.shapes.items()
        }

    @property
    def held(self) -> dict[str, Any]:
        """The current rows, and what the scan has learnt of its widths."""
        scan = {} if self.scan is None else {name: getattr(self.scan, name) for name in LEARNT}
        return {"rows": [rows.rows for rows in self.augmented], "scan": scan}

    @held.setter
    def held(self, state: dict[str, Any]) -> None:
        for rows, known in zip(self.augmented, state["rows"], strict=True):
            rows.resume(known)
        for name, value in state["scan"].items():
            setattr(self.scan, name, value)

    def __repr__(self) -> str:
        shown = "" if self.scans_per_draw == 1 else f"scans_per_draw={self.scans_per_draw}"
        return f"{type(self).__name__}({shown})"


def _parameters(private: Model, tables: Sequence[Table]) -> Any:
    """Return a function from the value variables to the parameters of each table's cells."""
    graphs = [parameter for table in tables for parameter in table.parameters]
    return plain_function(private.value_vars, private.replace_rvs_by_values(graphs))


def _per_cell(parameter: Array, n_cells: int, event_ndim: int) -> Array:
    return np.broadcast_to(parameter, (n_cells, *parameter.shape[parameter.ndim - event_ndim :]))


__all__ = ["DataAugmentation"]
