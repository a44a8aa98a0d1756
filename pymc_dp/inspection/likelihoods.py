"""Inspection of a PyMC model: every private input, where it flows, and what each likelihood is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import Model, modelcontext
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pymc.distributions.distribution import support_point
from pymc.logprob.basic import logp as pm_logp
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import TensorType

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError, DomainError, Problem, UnsupportedModelError
from pymc_dp.inspection._rebuild import rebuild
from pymc_dp.inspection.rows import (
    Array,
    Column,
    array_leaves,
    opaque,
    plain_numbers,
    reached,
    rows_of,
    shape_of,
    unwrap,
)
from pymc_dp.inspection.taint import RowFlow, depends_on, label, trace_rows

MAX_CELLS = 100_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """One observed variable: its likelihood, its parameters as graphs, and the columns they are indexed by.

    ``parameters`` are graphs of the original model; with every column replaced by one value per cell they give
    the parameters of each cell (row separability is proved before an `Observed` exists).
    """

    name: str
    variable: Variable
    leaf: Variable
    distribution: str
    parameters: tuple[Variable, ...]
    free: tuple[bool, ...]
    columns: tuple[Column, ...]
    static_shapes: tuple[tuple[int | None, ...], ...]
    bounds: tuple[float, float] | None

    @property
    def private_columns(self) -> tuple[Column, ...]:
        """Columns whose values must not show."""
        return tuple(column for column in self.columns if not column.public)

    @property
    def public_columns(self) -> tuple[Column, ...]:
        """Columns that need no protection."""
        return tuple(column for column in self.columns if column.public)


@dataclass(frozen=True, kw_only=True, eq=False)
class Inspection:
    """Everything found in one model under one domain; nothing in it depends on a private value.

    ``hidden`` holds the variables that no private model may reach.
    """

    model: Model
    domain: Domain
    observed: tuple[Observed, ...]
    n_rows: int
    row_dims: frozenset[str]
    private: tuple[str, ...]
    public: tuple[str, ...]
    dropped: tuple[str, ...]
    kept_data: tuple[str, ...]
    assumptions: tuple[str, ...]
    problems: tuple[Problem, ...]
    hidden: frozenset[Variable]

    def require(self) -> None:
        """Raise with every problem at once, if there is one."""
        if self.problems:
            raise UnsupportedModelError(self.problems)


def context_model(model: object) -> Model:
    """Return `model`, or the model of the context where it is None."""
    if model is None:
        try:
            return modelcontext(None)
        except TypeError:
            raise ArgumentError("There is no model: pass model=..., or call inside `with model:`.") from None
    if not isinstance(model, Model):
        raise ArgumentError(
            f"model must be a pymc.Model, got {type(model).__name__}. Build it with `with pm.Model():`."
        )
    return model


def inspect(model: Model, domain: Domain | None = None) -> Inspection:
    """Inspect a model; never raises for what it finds in it, but collects the problems.

    Parameters
    ----------
    model : pymc.Model
    domain : Domain, optional
        Defaults to ``Domain()``: replace-one-row neighbours, no bounds.

    Raises
    ------
    DomainError
        If `domain` names variables that the model does not have.

    Notes
    -----
    Reads shapes and dtypes of private arrays, never a value. Public columns are read.
    """
    if domain is not None and not isinstance(domain, Domain):
        raise ArgumentError(f"domain must be a dp.Domain, got {type(domain).__name__}. Write dp.Domain(bounds=...).")
    return _Inspector(model, domain or Domain()).run()


@dataclass
class _Inspector:
    model: Model
    domain: Domain
    problems: list[Problem] = field(default_factory=list)
    private: dict[str, None] = field(default_factory=dict)
    public: dict[str, None] = field(default_factory=dict)
    private_variables: list[Variable] = field(default_factory=list)
    row_leaves: set[Variable] = field(default_factory=set)

    def problem(self, where: str, what: str, remedy: str) -> None:
        found = Problem(where=where, what=what, remedy=remedy)
        if found not in self.problems:
            self.problems.append(found)

    def run(self) -> Inspection:
        model, domain = self.model, self.domain
        self._check_names()
        if model.parent is not None:
            self.problem("model", "it is nested in another model", "Inspect the outermost model.")
        if not model.observed_RVs:
            self.problem("model", "it has no observed variable", "Give a likelihood its data by observed=.")
        self.data_of = {rv: self._data_leaf(rv) for rv in model.observed_RVs}
        self._check_masked()
        n_rows = self._n_rows()
        self.row_dims = self._row_dims()
        self._check_reserved_names()
        frozen = self._freeze_dims()
        observed = [found for rv in model.observed_RVs if (found := self._observed(rv, n_rows, frozen)) is not None]
        self.private_variables += [length for dim, length in model.dim_lengths.items() if dim in self.row_dims]
        self._check_row_counts()
        self._check_priors(n_rows)
        kept = self._kept_data(n_rows)
        dropped = tuple(det.name for det in model.deterministics if not self._may_keep(det, kept, n_rows))
        return Inspection(
            model=model,
            domain=domain,
            observed=tuple(observed),
            n_rows=n_rows,
            row_dims=self.row_dims,
            private=tuple(self.private),
            public=tuple(self.public),
            dropped=dropped,
            kept_data=kept,
            assumptions=tuple(self._assumptions(n_rows, observed, kept)),
            problems=tuple(self.problems),
            hidden=frozenset(self.private_variables) | frozenset(self.row_leaves),
        )

    # --- schema -------------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        nameable = [var.name for var in self.model.observed_RVs] + [var.name for var in self.model.data_vars]
        # PyMC renames a column with missing values; the problem itself is told by _check_masked.
        nameable += [name.removesuffix("_observed") for name in nameable if name.endswith("_observed")]
        for argument, names in (
            ("bounds", self.domain.bounds),
            ("norms", self.domain.norms),
            ("public", sorted(self.domain.public)),
        ):
            for name in names:
                if name not in nameable:
                    raise DomainError(
                        f"{argument} names {name!r}, which is neither an observed variable nor a pm.Data of the model "
                        f"(known: {', '.join(map(repr, nameable)) or 'none'}).{_validate.nearest(name, nameable)}"
                    )
        for rv in self.model.observed_RVs:
            leaf = unwrap(self.model.rvs_to_values[rv]).name
            one, other = self.domain.bounds.get(rv.name), self.domain.bounds.get(leaf or "")
            if one is not None and other is not None and one != other:
                raise DomainError(
                    f"bounds name one column twice, as {rv.name!r} {one} and as {leaf!r} {other}. Give the same bounds."
                )
        for name in self.domain.norms:
            raise DomainError(
                f"norms[{name!r}] is not used: no likelihood of this model is released by row norms. Leave it out."
            )
        rows = self.domain.rows
        if rows is not None and rows not in self.model.dim_lengths:
            known = list(self.model.dim_lengths)
            raise DomainError(
                f"rows={rows!r} is not a dimension of the model (known: {known}).{_validate.nearest(rows, known)}"
            )
        for name in self.domain.public:
            if name in {var.name for var in self.model.observed_RVs}:
                raise DomainError(
                    f"public names the observed variable {name!r}: what a likelihood observes is protected. Leave "
                    "it out."
                )

    def _data_leaf(self, rv: Variable) -> Variable | None:
        leaf = unwrap(self.model.rvs_to_values[rv])
        if isinstance(leaf, Constant | SharedVariable):
            self.private_variables += [leaf, rv]
            return leaf
        inner = list(array_leaves([leaf]))
        if len(inner) == 1 and inner[0].type.dtype != leaf.type.dtype:
            self.private_variables += [inner[0], rv]
            self.problem(
                rv.name,
                f"its values of dtype {inner[0].type.dtype} are cast to {leaf.type.dtype} inside the model, which "
                "may change them",
                f"Pass an array of dtype {leaf.type.dtype}.",
            )
            return None
        self.private_variables += [rv, *array_leaves([leaf], [])]
        self.problem(
            rv.name,
            "its observed values are computed inside the model (a minibatch or another expression)",
            "Pass the whole column as observed= or through pm.Data.",
        )
        return None

    def _check_masked(self) -> None:
        names = {var.name for var in self.model.free_RVs}
        for rv in self.model.observed_RVs:
            stem = (rv.name or "").removesuffix("_observed")
            if stem != rv.name and f"{stem}_unobserved" in names:
                self.problem(
                    stem,
                    "it has masked or NaN values, and PyMC made a parameter of each, which shows how many are missing",
                    "Fill the missing values with a public value, or add a level for 'missing', before building the "
                    "model.",
                )

    def _n_rows(self) -> int:
        lengths: dict[str, int] = {}
        for rv, leaf in self.data_of.items():
            if leaf is None:
                continue
            shape = shape_of(leaf)
            if rv.type.ndim == 1 and len(shape) == 1:
                lengths[rv.name] = shape[0]
            elif rv.type.ndim == 0:
                self.problem(
                    rv.name, "it is a scalar, so there is no axis that counts rows", "Observe one value per row."
                )
            else:
                self.problem(
                    rv.name,
                    f"it has {rv.type.ndim} dimensions",
                    "Write one observed variable per column, each with one value per row.",
                )
        if len(set(lengths.values())) > 1:
            shown = "of different lengths" if self.domain.neighbours == "add_remove" else f"of lengths {lengths}"
            self.problem(
                "model",
                f"the observed variables are {shown}, so no axis counts the rows of one table",
                "Keep one table per model: split the model, or join the tables.",
            )
        n_rows = next(iter(lengths.values()), 0)
        if self.domain.neighbours == "replace" and lengths and n_rows == 0:
            self.problem("model", "the table has 0 rows", "There is nothing to release; sample the prior instead.")
        return n_rows

    def _check_reserved_names(self) -> None:
        taken = {*self.model.named_vars, *self.model.dim_lengths, *self.model.coords}
        for rv in self.model.observed_RVs:
            for name in (f"{rv.name}_cell", f"{rv.name}_statistic", f"{rv.name}_noise_scale"):
                if name in taken:
                    self.problem(rv.name, f"the name {name!r} is taken, which its release needs", f"Rename {name!r}.")

    def _check_row_counts(self) -> None:
        """Refuse likelihoods that use the length of the row dimension as a number."""
        lengths = {length for dim, length in self.model.dim_lengths.items() if dim in self.row_dims}
        for rv in self.model.observed_RVs:
            if lengths & set(reached(_likelihood(rv)[1] or (), self.model.free_RVs)):
                self.problem(
                    rv.name,
                    "the number of rows is used as a value in its likelihood",
                    "Write a number that is known beforehand, or take it out.",
                )

    def _row_dims(self) -> frozenset[str]:
        dims = self.model.named_vars_to_dims
        held = [leaf.name for leaf in self.data_of.values() if leaf is not None and leaf.name]
        found = {dims[name][0] for name in [*(rv.name for rv in self.model.observed_RVs), *held] if dims.get(name)}
        if self.domain.rows is not None:
            for rv in self.model.observed_RVs:
                if dims.get(rv.name) and dims[rv.name][0] != self.domain.rows:
                    self.problem(
                        rv.name,
                        f"its rows are counted by {dims[rv.name][0]!r}, not by {self.domain.rows!r}",
                        "Give every observed variable the dimension named in Domain(rows=...).",
                    )
            found |= {self.domain.rows}
        return frozenset(str(dim) for dim in found if dim is not None)

    def _freeze_dims(self) -> dict[Variable, Variable]:
        """Map the model's variables to ones with static shapes (lengths of dims other than rows are public schema)."""
        lengths = {
            length: pt.constant(np.int64(dim_length(length)))
            for length in self.model.dim_lengths.values()
            if not isinstance(length, Constant)
        }
        keep = {rv: rv for rv in self.model.observed_RVs}
        ends: list[Variable] = list(self.model.free_RVs)
        for rv in self.model.observed_RVs:
            ends += _likelihood(rv)[1] or ()
        return rebuild(ends, {**lengths, **keep})[1]

    # --- one observed variable ------------------------------------------------------------------------------------

    def _observed(self, rv: Variable, n_rows: int, frozen: Mapping[Variable, Variable]) -> Observed | None:
        self.private[rv.name] = None
        leaf = self.data_of[rv]
        distribution, parameters = _likelihood(rv)
        if parameters is None or leaf is None:
            what = f"its likelihood ({distribution}) is not a plain distribution of independent rows"
            if leaf is not None:
                self.problem(rv.name, what, "Use one of the likelihoods that dp.explain lists, with one value per row.")
            return None
        if rv.type.ndim != 1:
            return None
        now = [frozen.get(var, var) for var in parameters]
        free = [frozen.get(var, var) for var in self.model.free_RVs]
        others = [var for var in self.model.observed_RVs if var is not rv]
        row_level = self._row_level(rv, now, free, others, n_rows)
        flow = trace_rows(now, row_level)
        for text in flow.problems:
            self.problem(
                rv.name,
                text,
                "Index a parameter by a discrete column of the table, p[column], and keep every other step "
                "elementwise.",
            )
        for var in now:
            if flow.axes[var] not in (None, 0):
                self.problem(
                    rv.name, "a parameter varies over rows along an axis other than the first", "Let rows be axis 0."
                )
            if flow.axes[var] is None and not flow.problems and not var.type.broadcastable[0]:
                self.problem(
                    rv.name,
                    f"{label(var)} has an entry of its own for every row (one latent per row)",
                    "Let rows share parameters: index them by a column with a few public levels.",
                )
        columns = self._columns(rv, row_level, flow, n_rows)
        self._check_random_inputs(rv, now, free, others)
        bounds = self.domain.bounds.get(rv.name) or self.domain.bounds.get(leaf.name or "")
        return Observed(
            name=rv.name,
            variable=rv,
            leaf=leaf,
            distribution=distribution,
            parameters=tuple(parameters),
            free=tuple(depends_on(var, self.model.free_RVs) for var in parameters),
            columns=tuple(columns),
            static_shapes=tuple(tuple(var.type.shape) for var in now),
            bounds=bounds,
        )

    def _row_level(
        self,
        rv: Variable,
        parameters: Sequence[Variable],
        free: Sequence[Variable],
        others: Sequence[Variable],
        n_rows: int,
    ) -> dict[Variable, int | None]:
        """Classify what reaches the parameters: row-level leaves (axis 0), and everything else free of rows."""
        found: dict[Variable, int | None] = dict.fromkeys(free)
        reached_openly = set(ancestors(list(parameters), blockers=[*free, *others]))
        found.update({other: 0 for other in others if other in reached_openly})
        for leaf in array_leaves(parameters, [*free, *others], single=self._single_row(n_rows)):
            name, dims = leaf.name, self.model.named_vars_to_dims.get(leaf.name or "")
            if leaf not in reached_openly:
                self.private_variables.append(leaf)
                self.problem(
                    rv.name,
                    f"an array inside a composite operation ({repr(name) if name else 'unnamed'}) reaches the "
                    "likelihood",
                    "Write the expression with plain PyTensor operations, so that it can be followed.",
                )
                continue
            shape = shape_of(leaf)
            shown = repr(name) if name else f"an unnamed array of dtype {leaf.type.dtype}"
            on_rows = shape[0] == n_rows if not (dims and self.row_dims) else dims[0] in self.row_dims
            if on_rows and shape[0] != n_rows:
                self.problem(
                    rv.name,
                    f"{shown} and the observed values have different numbers of rows",
                    "Give every column of the table the same length, for example by one pm.set_data for all.",
                )
            declared_public = name in self.domain.public and leaf in self.model.data_vars
            if declared_public and leaf in self.data_of.values():
                self.problem(
                    rv.name,
                    f"{name!r} is declared public, but it is also what a likelihood observes",
                    "Leave it out of Domain(public=...): what is observed is protected.",
                )
            elif declared_public:
                self.public[str(name)] = None
                if on_rows:
                    found[leaf] = 0
                    self.row_leaves.add(leaf)
                    if leaf.type.ndim > 1:
                        self.problem(
                            rv.name,
                            f"the public column {shown} has {leaf.type.ndim} dimensions",
                            "Wrap each of its columns in its own pm.Data.",
                        )
                continue
            self.private[name or f"unnamed array in {rv.name}"] = None
            self.private_variables.append(leaf)
            if on_rows and dims:
                self.row_dims |= {str(dims[0])}
            if not on_rows:
                self.problem(
                    rv.name,
                    f"{shown} reaches the likelihood and does not have the row axis, so the influence of a row on "
                    "it is unknown",
                    "If it is public, wrap it in pm.Data and name it in Domain(public=...); if it comes from the "
                    "rows, take it out.",
                )
            elif leaf.type.ndim > 1:
                self.problem(
                    rv.name, f"{shown} has {leaf.type.ndim} dimensions", "Wrap each of its columns in its own pm.Data."
                )
            found[leaf] = 0 if on_rows and leaf.type.ndim == 1 else None
            self.row_leaves.add(leaf)
        return found

    def _columns(
        self, rv: Variable, row_level: Mapping[Variable, int | None], flow: RowFlow, n_rows: int
    ) -> list[Column]:
        by_leaf: dict[Variable, list[Variable]] = {}
        for var, axis in row_level.items():
            if axis is not None:
                held = self.data_of.get(var)
                by_leaf.setdefault(var if held is None else held, []).append(var)
        columns = []
        for leaf, stand_ins in by_leaf.items():
            named = [
                var.name for var in [leaf, *stand_ins, *(o for o, d in self.data_of.items() if d is leaf)] if var.name
            ]
            name = named[0] if named else f"unnamed column of {rv.name}"
            public = leaf in self.row_leaves and leaf not in self.private_variables
            uses = [use for use in flow.index_uses if unwrap(use.index) in stand_ins]
            dims = [
                self.model.named_vars_to_dims[use.indexed.name][use.axis]
                for use in uses
                if self.model.named_vars_to_dims.get(use.indexed.name or "")
            ]
            levels, outside = self._levels(rv, name, named, leaf, [use.length for use in uses], public)
            if levels is not None:
                columns.append(
                    Column(
                        name=name,
                        leaf=leaf,
                        stand_ins=tuple(stand_ins),
                        levels=levels,
                        outside=outside,
                        public=public,
                        dim=dims[0] if dims else None,
                        labels=self._level_labels(dims[0] if dims else None, levels),
                    )
                )
        if len(columns) == len(by_leaf) and not flow.problems:
            self._check_derived_indices(rv, columns, flow)
        return columns

    def _level_labels(self, dim: str | None, levels: Array) -> tuple[str, ...]:
        """Labels of the dimension that a column indexes, one per level; none where it has no labels."""
        known = self.model.coords.get(dim) if dim is not None else None
        if known is not None and levels.dtype.kind in "iu" and levels[0] >= 0 and levels[-1] < len(known):
            return tuple(f"{dim}={known[int(level)]}" for level in levels)
        return ()

    def _levels(
        self, rv: Variable, name: str, names: Sequence[str], leaf: Variable, lengths: Sequence[int | None], public: bool
    ) -> tuple[Array | None, str]:
        bounds = next((self.domain.bounds[item] for item in names if item in self.domain.bounds), None)
        kind = np.dtype(leaf.type.dtype).kind
        known = {length for length in lengths if length is not None}
        if public:
            if kind in "iu" and len(known) == 1:
                return np.arange(min(known.pop(), _dtype_range(leaf)[1] + 1)), "first"
            return np.unique(rows_of(leaf)) if shape_of(leaf)[0] else np.zeros(1), "first"
        if kind == "f":
            self.problem(
                rv.name,
                f"the private column {name!r} is continuous",
                "Cut it into a few public levels (an integer column), or, if it is public, name it in "
                "Domain(public=...).",
            )
            return None, ""
        if len(known) > 1:
            self.problem(
                rv.name,
                f"{name!r} indexes axes of different lengths {sorted(known)}",
                "Index axes of one length by a column.",
            )
            return None, ""
        if lengths and not known:
            self.problem(
                rv.name,
                f"the length of the axis that {name!r} indexes is not known before sampling",
                "Give the variable dims= or a constant shape.",
            )
            return None, ""
        if bounds is None:
            if not known:
                self.problem(
                    rv.name,
                    f"the range of the private column {name!r} is not public",
                    f"Give it: Domain(bounds={{{name!r}: (low, high)}}), after wrapping it in pm.Data if it has no "
                    "name.",
                )
                return None, ""
            return np.arange(min(known.pop(), _dtype_range(leaf)[1] + 1)), "first"
        low, high = bounds
        if high - low >= MAX_CELLS:
            self.problem(
                rv.name,
                f"bounds[{name!r}] = ({low:g}, {high:g}) span more than {MAX_CELLS} levels, nearly all of them empty",
                "Merge levels into fewer, wider ones.",
            )
            return None, ""
        if low != int(low) or high != int(high):
            self.problem(
                rv.name,
                f"bounds[{name!r}] = ({low}, {high}) are not whole numbers, but the column is",
                "Give whole numbers.",
            )
            return None, ""
        length = next(iter(known), None)
        if length is not None and (low < 0 or high >= length):
            self.problem(
                rv.name,
                f"bounds[{name!r}] = ({low:g}, {high:g}) leave the axis of length {length} that the column indexes",
                f"Keep them within (0, {length - 1}).",
            )
            return None, ""
        least, most = _dtype_range(leaf)
        low, high = max(low, least), min(high, most)
        if low > high:
            self.problem(rv.name, f"bounds[{name!r}] lie outside of what its dtype can hold", "Give bounds that fit.")
            return None, ""
        return np.arange(int(low), int(high) + 1), "nearest"

    def _check_derived_indices(self, rv: Variable, columns: Sequence[Column], flow: RowFlow) -> None:
        """Evaluate computed indices (``p[rating - 1]``) on every public level and require that they fit."""
        stand_ins = {var for column in columns for var in column.stand_ins}
        for use in flow.index_uses:
            if unwrap(use.index) in stand_ins:
                continue
            inner = [column for column in columns if depends_on(use.index, column.stand_ins)]
            upstream = list(reached([use.index], stand_ins))
            random = any(var.owner is not None and isinstance(var.owner.op, RandomVariable) for var in upstream)
            many = int(np.prod([len(column.levels) for column in inner])) > MAX_CELLS
            if use.length is None or random or many:
                self.problem(rv.name, "the range of a computed index cannot be checked", "Index by the column itself.")
                continue
            grid = np.meshgrid(*[column.levels for column in inner], indexing="ij")
            replace = {
                var: pt.constant(values.ravel().astype(var.type.dtype))
                for column, values in zip(inner, grid, strict=True)
                for var in column.stand_ins
            }
            (index,), _ = rebuild([use.index], replace)
            values = pytensor.function([], index, mode="FAST_COMPILE")()
            if values.min() < 0 or values.max() >= use.length:
                self.problem(
                    rv.name,
                    f"an index computed from {', '.join(repr(c.name) for c in inner)} runs over "
                    f"{values.min()}..{values.max()} on the public levels, outside the axis of length {use.length}",
                    "Give bounds of the column so that the index stays on the axis, or index by the column itself.",
                )

    def _check_random_inputs(
        self, rv: Variable, parameters: Sequence[Variable], free: Sequence[Variable], others: Sequence[Variable]
    ) -> None:
        stop = [*free, *others]
        self._check_operations(rv.name, f"the likelihood of {rv.name!r}", parameters, stop)
        for var in ancestors(list(parameters), blockers=stop):
            if var.owner is not None and isinstance(var.owner.op, RandomVariable) and var not in stop:
                self.problem(
                    rv.name,
                    "its parameters hold a random draw that is no variable of the model",
                    "Register the variable with a name.",
                )

    def _check_operations(self, where: str, what: str, ends: Sequence[Variable], stop: Sequence[Variable]) -> None:
        """Refuse what cannot be looked into: Python code, and shared variables that the model does not know."""
        for name in opaque(ends, stop):
            self.problem(where, f"operation {name} reaches {what} and may hold anything", "Use PyTensor's operations.")
        known = {*self.model.data_vars, *self.model.dim_lengths.values(), *self.private_variables}
        for var in reached(ends, stop):
            if isinstance(var, SharedVariable) and isinstance(var.type, TensorType) and var not in known:
                self.problem(
                    where,
                    f"a shared variable ({label(var)}) that is no pm.Data of the model reaches {what}",
                    "If it is public, register it by pm.Data.",
                )

    # --- everything that is not the likelihood ----------------------------------------------------------------------

    def _check_priors(self, n_rows: int) -> None:
        model = self.model
        free = list(model.free_RVs)
        for rv in free:
            others = [var for var in free if var is not rv]
            ends = [*_inputs(rv), *self._hidden_parts(rv)]
            own = self._declared_shape(rv)
            self._check_reach(rv.name, f"the prior of {rv.name!r}", ends, others, n_rows, strict=False, own_shape=own)
            dims = model.named_vars_to_dims.get(rv.name) or ()
            if any(dim in self.row_dims for dim in dims):
                self.problem(
                    rv.name,
                    "it has one entry per row (one latent per row)",
                    "Index parameters by a discrete column with a few public levels.",
                )
        for potential in model.potentials:
            self._check_reach(
                potential.name, f"the Potential {potential.name!r}", [potential], free, n_rows, strict=True
            )
        for rv, initval in model.rvs_to_initial_values.items():
            if isinstance(initval, Variable):
                self._check_reach(rv.name, f"the initial value of {rv.name!r}", [initval], free, n_rows, strict=True)
            elif initval is not None and not isinstance(initval, str):
                shape = np.shape(initval)
                declared = tuple(np.shape(initval)) == self._declared_shape(rv)
                if self.domain.neighbours == "replace" and n_rows > 1 and n_rows in shape and not declared:
                    self.problem(rv.name, "its initial value has one entry per row", "Leave initval out.")

    def _declared_shape(self, rv: Variable) -> tuple[int, ...] | None:
        """Lengths of the named dims of a free variable: an array of this shape in its prior belongs to these dims."""
        dims = self.model.named_vars_to_dims.get(rv.name)
        if not dims or None in dims:
            return None
        return tuple(dim_length(self.model.dim_lengths[dim]) for dim in dims)

    def _hidden_parts(self, rv: Variable) -> list[Variable]:
        """Graphs of a prior that are not inputs of its random variable: its transform, and a hand-written density."""
        value = self.model.rvs_to_values[rv]
        parts: list[Variable] = []
        transform = self.model.rvs_to_transforms.get(rv)
        try:
            if transform is not None:
                parts.append(transform.backward(value, *rv.owner.inputs))
                parts.append(transform.log_jac_det(value, *rv.owner.inputs))
            if isinstance(rv.owner.op, CustomSymbolicDistRV):
                parts += [pm_logp(rv, rv.type()), support_point(rv)]
            followed = not isinstance(rv.owner.op, CustomDistRV)
        except Exception:
            followed = False
        if not followed:
            self.problem(
                rv.name,
                "its density or transform is Python code, which cannot be followed",
                "Use a distribution and a transform of PyMC, or pm.CustomDist(dist=...).",
            )
        return parts

    def _check_reach(
        self,
        where: str,
        what: str,
        ends: Sequence[Variable],
        stop: Sequence[Variable],
        n_rows: int,
        *,
        strict: bool,
        own_shape: tuple[int, ...] | None = None,
    ) -> None:
        self._check_operations(where, what, ends, stop)
        private = [var for var in self.private_variables if var not in stop]
        found = set(reached(ends, stop))
        for var in private:
            if var in found:
                self.problem(
                    where,
                    f"private data ({label(var)}) reach {what}",
                    "Priors and other terms must not look at the rows; use numbers known beforehand.",
                )
        for leaf in array_leaves(ends, stop, single=strict and self._single_row(n_rows)):
            if leaf in private or (leaf.name or "") in self.domain.public:
                continue
            dims = self.model.named_vars_to_dims.get(leaf.name or "") or ()
            # Under add_remove, comparing lengths with the number of rows would tell it: dims must say it is no column.
            long = self.domain.neighbours == "add_remove" or n_rows in shape_of(leaf)
            fits = own_shape is not None and _broadcasts(shape_of(leaf), own_shape)
            settled = dims and self.row_dims
            on_rows = any(dim in self.row_dims for dim in dims) or (not settled and long and not fits)
            if strict or on_rows:
                shown = repr(leaf.name) if leaf.name else "an unnamed array"
                why = "with the length of the table " if on_rows and self.domain.neighbours == "replace" else ""
                public = (
                    "wrap it in pm.Data and name it in Domain(public=...)"
                    if strict
                    else "give the variable dims=, or wrap the array in pm.Data with dims of its own"
                )
                self.problem(
                    where,
                    f"{shown} {why}reaches {what} and may hold rows",
                    f"If it is public, {public}; else take it out.",
                )

    def _may_keep(self, deterministic: Variable, kept: Sequence[str], n_rows: int) -> bool:
        """Whether a Deterministic is a function of free variables and known public arrays alone.

        An array that reaches no likelihood and no prior (another version of the covariates, say) is not known to be
        public, so what is computed from it stays behind.
        """
        dims = self.model.named_vars_to_dims.get(deterministic.name) or ()
        if any(dim in self.row_dims for dim in dims):
            return False
        if depends_on(deterministic, [*self.private_variables, *self.row_leaves]):
            return False
        leaves = array_leaves([deterministic], self.model.free_RVs, single=self._single_row(n_rows))
        known = {self.model[name] for name in [*kept, *self.domain.public]}
        return known.issuperset(leaves) and not opaque([deterministic], self.model.free_RVs)

    def _single_row(self, n_rows: int) -> bool:
        """Whether an array of one element may be a column of the table."""
        return n_rows == 1 or self.domain.neighbours == "add_remove"

    def _kept_data(self, n_rows: int) -> tuple[str, ...]:
        """Names of the pm.Data that the private model may keep: not observed, not row-level, not private."""
        out = set(self.private_variables) | self.row_leaves
        dims = self.model.named_vars_to_dims
        return tuple(
            var.name
            for var in self.model.data_vars
            if var not in out
            and not any(dim in self.row_dims for dim in dims.get(var.name) or ())
            and self._reaches_kept(var)
        )

    def _reaches_kept(self, var: Variable) -> bool:
        ends: list[Variable] = [*self.model.free_RVs, *self.model.potentials]
        for rv in self.model.observed_RVs:
            _, parameters = _likelihood(rv)
            ends += list(parameters or ())
        if var.type.ndim == 0:
            ends += self.model.deterministics
        return depends_on_any(ends, var)

    def _assumptions(self, n_rows: int, observed: Sequence[Observed], kept: Sequence[str]) -> list[str]:
        model, domain = self.model, self.domain
        free, lines = list(model.free_RVs), []
        if domain.neighbours == "replace":
            lines.append(f"number of rows: {n_rows}")
        else:
            lines.append(f"bound on the number of rows: n_max = {domain.n_max}")
        for rv in free:
            numbers = _shown(plain_numbers(rv.owner.inputs, [var for var in free if var is not rv]))
            if numbers:
                lines.append(f"numbers in the prior of {rv.name}: {numbers}")
        for item in observed:
            numbers = _shown(plain_numbers(item.parameters, [*free, *self.private_variables]))
            if numbers:
                lines.append(f"numbers in the likelihood of {item.name}: {numbers}")
        for potential in model.potentials:
            lines.append(f"the Potential {potential.name}")
        for rv, initval in model.rvs_to_initial_values.items():
            if initval is not None:
                lines.append(f"initial value of {rv.name}")
        for det in model.deterministics:
            numbers = _shown(plain_numbers([det], free)) if self._may_keep(det, kept, n_rows) else ""
            if numbers:
                lines.append(f"numbers in {det.name}: {numbers}")
        for name in kept:
            lines.append(f"pm.Data {name}")
        for name in self.public:
            lines.append(f"public column {name}")
        for name, (low, high) in domain.bounds.items():
            lines.append(f"bounds of {name}: ({low:g}, {high:g})")
        keepable = [*free, *(model[name] for name in kept), *model.potentials]
        keepable += [det for det in model.deterministics if self._may_keep(det, kept, n_rows)]
        used = {dim for var in keepable for dim in model.named_vars_to_dims.get(var.name) or ()}
        for dim, length in model.dim_lengths.items():
            labels = " and its labels" if model.coords.get(dim) is not None else ""
            if dim in self.row_dims:
                lines.append(f"dimension {dim}: the rows (its labels are people and are left out)")
            elif dim in used:
                lines.append(f"dimension {dim}: length {dim_length(length)}{labels}")
        return lines


def _inputs(rv: Variable) -> list[Variable]:
    """Inputs of a random variable that can carry data: all but a constant size."""
    return [var for place, var in enumerate(rv.owner.inputs) if not (place == 1 and isinstance(var, Constant))]


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array has one entry per entry of a variable, or per entry of its last axes."""
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))


def dim_length(length: Variable) -> int:
    """Return the length of a dimension; one that follows the shape of a pm.Data is evaluated."""
    if isinstance(length, SharedVariable):
        return int(length.get_value())
    if isinstance(length, Constant):
        return int(np.asarray(length.data))
    return int(pytensor.function([], length, mode="FAST_COMPILE")())


def depends_on_any(ends: Sequence[Variable], var: Variable) -> bool:
    """Whether any of `ends` has `var` among its ancestors."""
    return any(item is var for item in ancestors(list(ends)))


def _likelihood(rv: Variable) -> tuple[str, tuple[Variable, ...] | None]:
    """Return the name of a likelihood and its parameters, or None where it is no plain distribution."""
    op: Any = rv.owner.op
    name = getattr(op, "name", None) or type(op).__name__
    third_party = type(op).__module__.partition(".")[0] not in ("pytensor", "pymc")
    if third_party or isinstance(op, CustomDistRV):  # whatever its class_name says, its density is the user's own
        return "a density of its own", None
    if not isinstance(op, RandomVariable) or getattr(op, "ndim_supp", 1) != 0:
        return str(name), None
    return str(name), tuple(op.dist_params(rv.owner))


def _dtype_range(leaf: Variable) -> tuple[int, int]:
    """Least and greatest value of an integer or boolean dtype."""
    dtype = np.dtype(leaf.type.dtype)
    return (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def _shown(arrays: Any, most: int = 8) -> str:
    texts: dict[str, None] = {}
    for array in arrays:
        if array.size == 1:
            texts[f"{array.item():.6g}"] = None
        elif array.size:
            texts[f"an array of {array.ndim} dimension(s)"] = None
    shown = list(texts)
    return ", ".join(shown if len(shown) <= most else [*shown[:most], f"and {len(shown) - most} more"])
