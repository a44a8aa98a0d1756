"""What an inspection finds: the result that others read, and the collector that its parts fill."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pymc import Model
from pymc.distributions.custom import CustomDistRV, CustomSymbolicDistRV
from pytensor.graph.basic import Variable

from pymc_dp._column_bounds import each_of
from pymc_dp.domain import Domain
from pymc_dp.errors import Kind, Problem, UnsupportedModelError
from pymc_dp.inspection.cumulative import Cumulative
from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.rows import Column, reached
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
    continuous columns its `design`, and columns only for the indices beside them. Counts whose totals, or whose
    exposures, are a column of the table have that in `totals`, and not among the parameters.
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
    totals: Column | None = None

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
        """Columns of the table that it is a regression on or indexed by, those among them that others are made of."""
        totals = () if self.totals is None else (self.totals,)
        read = (*self.columns, *totals, *(self.design.predictors if self.design else ()))
        return tuple({source.leaf: source for column in read for source in column.sources}.values())

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

    ``hidden`` holds the variables that no private model may reach, ``inspected`` what it was made from, ``weights``
    the columns by which rows are weighed in observed variables.
    """

    inspected: Inspected
    model: Model
    domain: Domain
    observed: tuple[Observed, ...]
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

    @property
    def most_units(self) -> int:
        """How many there are, or may be, of what ε protects: rows, or persons."""
        return self.domain.n_max or self.n_rows

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
    on_rows : set of Variable
        Everything in the graphs of likelihoods and of Deterministics whose first axis counts rows.
    apart : bool
        Whether nothing in the model says that its observed variables have the same rows.
    cumulatives : dict
        Distribution functions of the likelihoods that are no plain distributions.
    nameless : dict
        Private arrays without a name, by the observed variable that they reach.
    settled : bool
        Whether what was found is all that is said: everything else would follow from it.
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
    on_rows: set[Variable] = field(default_factory=set)
    apart: bool = False
    cumulatives: dict[Variable, Cumulative] = field(default_factory=dict)
    nameless: dict[str, set[Variable]] = field(default_factory=dict)
    settled: bool = False

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
            nameless={where: set(leaves) for where, leaves in self.nameless.items()},
        )

    def problem(self, where: str, what: str, remedy: str, kind: Kind = "structure") -> None:
        """Note a problem, once."""
        found = Problem(where=where, what=what, remedy=remedy, kind=kind)
        if found not in self.problems and not self.settled:
            self.problems.append(found)

    def cause(self, where: str, what: str, remedy: str) -> None:
        """Note a problem that others follow from."""
        self.problem(where, what, remedy, "cause")

    def without_name(self, where: str, leaves: Iterable[Variable]) -> None:
        """Note private arrays of numbers that the model has no name for: one problem for all of a likelihood."""
        known = self.nameless.setdefault(where, set())
        openly = self.domain.neighbours == "replace"
        before = nameless_problem(where, known, openly)
        known.update(leaves)
        self.problems = [one for one in self.problems if one != before]
        found = nameless_problem(where, known, openly)
        self.problem(where, found.what, found.remedy, found.kind)

    @property
    def causes(self) -> set[str]:
        """Where causes of problems were found."""
        return {problem.where for problem in self.problems if problem.kind == "cause"}

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


def nameless_problem(where: str, leaves: Collection[Variable], openly: bool) -> Problem:
    """Say of private arrays of numbers that the model has no name for what to write; `openly` if some may be public."""
    arrays = "a private array of numbers has" if len(leaves) == 1 else "private arrays of numbers have"
    which, them = ("it", "it") if len(leaves) == 1 else ("each", "them")
    several = each_of(max((leaf.type.ndim for leaf in leaves), default=1))
    return Problem(
        where=where,
        what=f"{arrays} no name" + f"; if anyone may know {them}, take public=['x']" * openly,
        remedy=f"Name {which} in the model, x = pm.Data('x', x), and bound it: dp.Domain(bounds={{'x': (low, high)}})"
        f"{several}.",
        kind="declaration",
    )


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
