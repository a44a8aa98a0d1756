"""What an inspection finds: the result that others read, and the collector that its parts fill.

Which arrays that reach a likelihood are columns of the table, and what is wrong with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pymc import Model
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.domain import Domain
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.cumulative import Cumulative
from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.rows import Column, array_leaves, plainly_made, reached, shape_of
from pymc_dp.inspection.stated import statement_of
from pymc_dp.inspection.taint import RowFlow

if TYPE_CHECKING:
    from pymc_dp.inspection.design import Design


MAX_CELLS = 100_000
KNOWN = ("pytensor", "pymc", "pymc_dp")
"""Packages whose distributions hold no numbers of the user but their parameters."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """One observed variable: its likelihood, its parameters as graphs, and the columns they are indexed by.

    ``parameters`` are graphs of the original model; with every column replaced by one value per cell they give
    the parameters of each cell (row separability is proved before an `Observed` exists). A likelihood that is no plain
    distribution has its distribution function as a graph, `cumulative`, in place of parameters; a regression on
    continuous columns its `design`, and columns only for the indices beside them.
    """

    name: str
    variable: Variable
    leaf: Variable
    distribution: str
    parameters: tuple[Variable, ...] = ()
    free: tuple[bool, ...] = ()
    columns: tuple[Column, ...] = ()
    static_shapes: tuple[tuple[int | None, ...], ...] = ()
    bounds: tuple[float, float] | None = None
    cumulative: Cumulative | None = None
    design: Design | None = None

    @property
    def title(self) -> str:
        """Name of the likelihood in texts, as in PyMC."""
        return title_of(self.variable)

    @property
    def by_polynomial(self) -> bool:
        """Whether sums of it put a polynomial in place of the likelihood: of a regression that is not Normal."""
        return self.design is not None and self.distribution != "normal"

    @property
    def beside(self) -> tuple[Column, ...]:
        """Columns that it is a regression on or indexed by."""
        return (*self.columns, *(self.design.predictors if self.design else ()))

    @property
    def private_columns(self) -> tuple[Column, ...]:
        """Columns whose values must not show."""
        return tuple(column for column in self.columns if not column.public)

    @property
    def public_columns(self) -> tuple[Column, ...]:
        """Columns that need no protection."""
        return tuple(column for column in self.columns if column.public)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowTerm:
    """The log-likelihood of one observed variable, as a graph over stand-ins of the free variables.

    Attributes
    ----------
    name : str
    logp : Variable
        (n_rows, ...) graph over `RowInspection.stand_ins` and the leaves of the columns; parameter checks left out.
    checked : Variable
        The same with PyMC's parameter checks left in: what must be proved before `logp` is the density anywhere.
    flow : RowFlow
        Where rows vary in `logp`.
    """

    name: str
    logp: Variable
    checked: Variable
    flow: RowFlow


class Inspected(Protocol):
    """A model that was read once, under one domain, for all that ask."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def domain(self) -> Domain:
        """What is public about its rows."""

    @property
    def sums(self) -> Inspection:
        """What releases of sums need: likelihoods by their statistics, cells and designs."""

    @property
    def rows(self) -> RowInspection:
        """What samplers need that see rows one by one: a term of the log-likelihood per row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inspection:
    """What was found in one model under one domain; nothing in it depends on a private value.

    ``hidden`` holds the variables that no private model may reach, ``inspected`` what it was made from, ``clean`` those
    of ``observed`` that no problem of their own keeps from being summed, ``weights`` the columns by which rows are
    weighed in observed variables.
    """

    inspected: Inspected
    model: Model
    domain: Domain
    observed: tuple[Observed, ...]
    clean: tuple[Observed, ...]
    n_rows: int
    axis: RowAxis
    row_dims: frozenset[str]
    private: tuple[str, ...]
    public: tuple[str, ...]
    dropped: tuple[str, ...]
    kept_data: tuple[str, ...]
    assumptions: tuple[str, ...]
    problems: tuple[Problem, ...]
    hidden: frozenset[Variable]
    weights: Mapping[str, Column] = field(default_factory=dict)

    @property
    def schema(self) -> tuple[tuple[str, str], ...]:
        """Names and dtypes of what is observed."""
        return tuple((observed.name, str(observed.leaf.type.dtype)) for observed in self.observed)

    @property
    def most_rows(self) -> int:
        """How many rows there are, or may be, where their number is private."""
        return self.domain.most_rows or self.n_rows

    def require(self) -> None:
        """Raise with every problem at once, if there is one."""
        if self.problems:
            raise UnsupportedModelError(self.problems)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowInspection(Inspection):
    """An inspection for samplers that see rows one by one.

    Attributes
    ----------
    terms : tuple of RowTerm
    columns : tuple of Column
    stand_ins : tuple of Variable
        One plain variable per free variable of the model, in their order.
    weight : int or None
        Place of the column by which rows are weighed; None where they are not.
    """

    terms: tuple[RowTerm, ...]
    columns: tuple[Column, ...]
    stand_ins: tuple[Variable, ...]
    weight: int | None = None


@dataclass
class Findings:
    """What the parts of one inspection have found so far; each of them reads what earlier ones left here.

    Problems are collected rather than raised, so that a user sees all of them at once.

    Attributes
    ----------
    data_of : dict
        The array that each observed variable observes; None where it is no plain column.
    n_rows : int
        Number of rows of the table.
    row_dims : frozenset of str
        Dimensions that count rows.
    private, public : dict
        Names of the private and of the public inputs, in the order in which they were found.
    private_variables : list of Variable
        What no term but the likelihoods may reach.
    row_leaves : set of Variable
        Arrays with one entry per row that reach a likelihood, public ones included.
    cumulatives : dict
        Distribution functions of the likelihoods that are no plain distributions.
    """

    model: Model
    domain: Domain
    problems: list[Problem] = field(default_factory=list)
    data_of: dict[Variable, Variable | None] = field(default_factory=dict)
    n_rows: int = 0
    row_dims: frozenset[str] = frozenset()
    private: dict[str, None] = field(default_factory=dict)
    public: dict[str, None] = field(default_factory=dict)
    private_variables: list[Variable] = field(default_factory=list)
    row_leaves: set[Variable] = field(default_factory=set)
    cumulatives: dict[Variable, Cumulative] = field(default_factory=dict)

    def again(self) -> Findings:
        """Return a copy: what is found from here on is not found in the other."""
        return replace(
            self,
            problems=[*self.problems],
            private=dict(self.private),
            public=dict(self.public),
            private_variables=[*self.private_variables],
            row_leaves=set(self.row_leaves),
            cumulatives=dict(self.cumulatives),
        )

    def problem(self, where: str, what: str, remedy: str) -> None:
        """Note a problem, once."""
        found = Problem(where=where, what=what, remedy=remedy)
        if found not in self.problems:
            self.problems.append(found)

    @property
    def axis(self) -> RowAxis:
        """What is known of the axis that counts rows: what is observed has it, and dims tell whether others do."""
        known = dict[Variable, bool]()
        for leaf in self.model.data_vars if self.row_dims else []:
            if dims := self.model.named_vars_to_dims.get(leaf.name or ""):
                known[leaf] = dims[0] in self.row_dims
        for rv, leaf in self.data_of.items():
            known.update({var: True for var in (rv, self.model.rvs_to_values[rv], leaf) if var is not None})
        return RowAxis(known=known, n_rows=self.n_rows if self.domain.neighbours == "replace" else None)

    @property
    def single_row(self) -> bool:
        """Whether an array of one element may be a column of the table; elsewhere it is a constant."""
        return self.n_rows == 1


def by_hand(rv: Variable, others: Iterable[Variable]) -> bool:
    """Whether a density, or that of a part of it, is not PyMC's own: numbers within its functions go unlisted."""
    ops = [var.owner.op for var in reached([rv], others) if var.owner is not None]
    own = (CustomDistRV, CustomSymbolicDistRV)
    return any(isinstance(op, own) or type(op).__module__.partition(".")[0] not in KNOWN for op in ops)


def title_of(rv: Variable) -> str:
    """Return the name of a distribution as in PyMC."""
    op = rv.owner.op
    if isinstance(op, CustomDistRV | CustomSymbolicDistRV) and statement_of(rv) is None:
        return "CustomDist"
    return type(op).__name__.strip("_").removesuffix("RV")


PUBLIC = (
    "If it is public, wrap it in pm.Data and name it in Domain(public=...); if it comes from the rows, take it out."
)
MADE = (
    "If it is public, write it with pt.eye, pt.zeros, pt.ones, or as pt.stack of numbers: under "
    "neighbours='add_remove' every array is private. If it comes from the rows, take it out."
)


def row_level_arrays(
    findings: Findings,
    rv: Variable,
    ends: Sequence[Variable],
    stop: Sequence[Variable],
    axis: RowAxis,
    *,
    along: Iterable[Variable] = (),
    wide: bool = False,
) -> dict[Variable, int | None]:
    """Classify the arrays that reach a likelihood: columns of the table (axis 0), and arrays free of rows (None).

    Parameters
    ----------
    findings : Findings
    rv : Variable
        The observed variable.
    ends, stop : sequence of Variable
        Arrays are followed to `ends` other than through `stop`.
    axis : RowAxis
    along : iterable of Variable
        Those of `ends` that are known to broadcast against rows.
    wide : bool
        Whether a row of a column may be an array itself.
    """
    found: dict[Variable, int | None] = {}
    rows, openly = axis.among(ends, stop, along), set(ancestors(list(ends), blockers=list(stop)))
    observed = {leaf for leaf in findings.data_of.values() if leaf is not None}
    for leaf in array_leaves(ends, stop, single=findings.single_row):
        name = leaf.name
        shown = repr(name) if name else f"an unnamed array of dtype {leaf.type.dtype}"
        public = name in findings.domain.public and leaf in findings.model.data_vars
        alone = leaf.type.shape[0] == 1  # a column of a table of one row, or what broadcasts against any
        on_rows = leaf in rows or (alone and findings.n_rows == 1 and axis.known.get(leaf, True))
        # The values of what could hold rows must not decide.
        made = axis.n_rows not in (None, *shape_of(leaf)) and plainly_made(leaf)
        if public and leaf in observed:
            findings.problem(
                rv.name,
                f"{name!r} is declared public, but it is also what a likelihood observes",
                "Leave it out of Domain(public=...): what is observed is protected.",
            )
        elif public:
            findings.public[str(name)] = None
        elif on_rows or not made:
            findings.private[name or f"unnamed array in {rv.name}"] = None
            findings.private_variables.append(leaf)
            dims = findings.model.named_vars_to_dims.get(name or "")
            if on_rows and dims:
                findings.row_dims |= {str(dims[0])}
        if leaf not in openly:
            findings.problem(
                rv.name,
                f"an array inside a composite operation ({repr(name) if name else 'unnamed'}) reaches the likelihood",
                "Write the expression with plain PyTensor operations, so that it can be followed.",
            )
        elif on_rows and shape_of(leaf)[0] != findings.n_rows:
            findings.problem(
                rv.name,
                f"{shown} and the observed values have different numbers of rows",
                "Give every column of the table the same length, for example by one pm.set_data for all.",
            )
        elif not on_rows and not public and not made:
            findings.problem(
                rv.name,
                f"{shown} reaches the likelihood and does not have the row axis, so the influence of a row on "
                "it is unknown",
                PUBLIC if axis.n_rows is not None else MADE,
            )
        elif on_rows and leaf.type.ndim > 1 and not wide:
            findings.problem(
                rv.name,
                f"{'the public column ' if public else ''}{shown} has {leaf.type.ndim} dimensions",
                "Wrap each of its columns in its own pm.Data.",
            )
        found[leaf] = 0 if on_rows else None
        if on_rows:
            findings.row_leaves.add(leaf)
    return found


__all__ = ["row_level_arrays"]
