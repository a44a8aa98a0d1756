"""A regression: its linear predictor, proved affine in continuous columns, and the function of it that is the mean.

The mean of a row as a function of its linear predictor, apart from the model that it was found in.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytensor.tensor as pt
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import PrivacyError, Problem
from pymc_dp.inspection.affine import slopes_of, smooth
from pymc_dp.inspection.computed.columns import computed_column
from pymc_dp.inspection.computed.expressions import ONE, Entry, Formula
from pymc_dp.inspection.computed.linear_forms import LinearForms
from pymc_dp.inspection.computed.terms import NotLinear, vector_of
from pymc_dp.inspection.declared_bounds import bounded_columns
from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.interpreted import plain_function, stable
from pymc_dp.inspection.leaves import leaf_of
from pymc_dp.inspection.rows import Column, public_values, rebuild, shape_of
from pymc_dp.inspection.taint import RowFlow


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """A graph of one vector and of constants: a private model keeps it, so that it must lead to no row.

    Attributes
    ----------
    inner : (n,) tensor
        In the place of the linear predictor.
    outer : (n,) tensor
        The mean parameter.
    """

    inner: TensorVariable
    outer: Variable

    @classmethod
    def of(cls, inner: TensorVariable, outer: Variable, hidden: Container[Variable]) -> Link:
        """Copy a graph that reaches nothing hidden: data as constants, without the lines of the program it is from."""
        held = [var for var in ancestors([outer]) if isinstance(var, SharedVariable)]
        own = inner.type(name=inner.name)
        (copied,), _ = rebuild(
            [outer], {inner: own, **{var: pt.constant(public_values(var, hidden)) for var in held}}, clone=True
        )
        for var in ancestors([copied]):
            for item in [var] if var.owner is None else [var, var.owner]:
                vars(item.tag).pop("trace", None)
        return cls(inner=own, outer=copied)

    def __call__(self, eta: TensorVariable) -> TensorVariable:
        """Return the mean parameter at any values of the linear predictor, of the same shape."""
        return rebuild([self.outer], {self.inner: eta.reshape((-1,))})[0][0].reshape(eta.shape)


REGRESSIONS = ("normal", "bernoulli", "poisson")
"""Likelihoods whose mean may be a function of a linear predictor: it is their first parameter."""
LATENTS = ("shares", "covariates", "noise_variance")
"""What a private model calls its unknown numbers, after the name of what is observed."""
MOST_LEVELS = 32
"""Values of a public column of floats that are cells of their own; with more, it is a predictor."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """The mean of a row is ``link(η)``, ``η = a_c + <w_c, x>``: a and w depend on its cell and on parameters only.

    Attributes
    ----------
    predictors : tuple of Column
        Continuous arrays of the table, in the order of x.
    eta : Variable
        Linear predictor of all rows, in the graphs of the model (with static shapes where dims tell them).
    link : Link
        The mean parameter as a function of η; all of a design that a private model may keep.
    dispersion : Variable or None
        Standard deviation of a Normal likelihood.
    identity : bool
        Whether the mean is η itself.
    constant : bool
        Whether a is anything but 0.
    apart : bool
        Whether slopes depend on the cell of a row.
    free : tuple of Variable
        Free variables of the model.
    """

    predictors: tuple[Column, ...]
    eta: Variable
    link: Link
    dispersion: Variable | None
    identity: bool
    constant: bool
    apart: bool
    free: tuple[Variable, ...]

    @property
    def public(self) -> bool:
        """Whether all predictors are public."""
        return all(item.public for item in self.predictors)

    @property
    def width(self) -> int:
        """Number of predictors."""
        return sum(item.width for item in self.predictors)

    def coefficients(self, levels: Mapping[Variable, Variable], n_cells: int) -> tuple[Variable, Variable]:
        """Return intercepts (n_cells,) and slopes (n_cells, width) as graphs of the parameters.

        Parameters
        ----------
        levels : mapping of Variable to Variable
            What stands for discrete columns, and the level of each cell.
        n_cells : int
        """
        rows = {item: _placeholder(item, n_cells) for item in self.predictors}
        # Rewriting a graph would clone its random variables, by which the model knows them.
        free = {var: var.type() for var in self.free}
        (eta,), _ = rebuild([self.eta], {**_by_stand_in(rows), **levels, **free})
        (at_zero,), _ = rebuild([eta], {row: pt.zeros(row.type.shape) for row in rows.values()})
        slopes = slopes_of(pt.broadcast_to(eta, (n_cells,)), list(rows.values()))
        assert slopes is not None
        flat = [slope.reshape((n_cells, item.width)) for item, slope in zip(rows, slopes, strict=True)]
        found = [pt.broadcast_to(stable(at_zero), (n_cells,)), pt.concatenate(flat, axis=1)]
        intercepts, slopes_of_cells = rebuild(found, {new: var for var, new in free.items()})[0]
        return intercepts, slopes_of_cells


def is_design(findings: Findings, distribution: str, row_level: Mapping[Variable, int | None]) -> bool:
    """Whether columns of a likelihood are numbers, or rows of an array, so that they span no table of cells."""
    return distribution in REGRESSIONS and any(
        axis is not None and _continuous(findings, leaf_of(findings, var)) for var, axis in row_level.items()
    )


def _continuous(findings: Findings, leaf: Variable) -> bool:
    if leaf in findings.data_of:  # observed values that the model computes, which is a problem of its own
        return False
    if len(shape_of(leaf)) > 1:
        return True
    if np.dtype(leaf.type.dtype).kind != "f":
        return False
    private = leaf in findings.private_variables
    return private or len(np.unique(public_values(leaf, findings.private_variables))) > MOST_LEVELS


def numeric_columns(row_level: Mapping[Variable, int | None], flow: RowFlow) -> dict[Variable, int | None]:
    """Return the row-level arrays that are no index: predictors of a regression."""
    indices = set(ancestors([use.index for use in flow.index_uses])) if flow.index_uses else set()
    return {var: axis for var, axis in row_level.items() if axis is not None and var not in indices}


def find_design(
    findings: Findings,
    name: str,
    distribution: str,
    parameters: Sequence[Variable],
    numeric: Mapping[Variable, int | None],
    discrete: Sequence[Variable],
    free: Mapping[Variable, Variable],
    flow: RowFlow,
) -> Design | None:
    """Return the design of a regression; None, with a problem noted, where none is proved.

    Parameters
    ----------
    findings : Findings
    name : str
        Of the observed variable.
    distribution : str
    parameters : sequence of Variable
        Of the likelihood, with static shapes.
    numeric : mapping
        Row-level arrays that are numbers.
    discrete : sequence of Variable
        Row-level arrays that are indices.
    free : mapping of Variable to Variable
        The free variables as they stand in the parameters, and the model's own.
    flow : RowFlow
        Of the parameters.
    """
    _check_latents(findings, name)
    predictors = bounded_columns(findings, name, numeric)
    if predictors is None or flow.problems:
        return None
    mean = parameters[0]
    sources = [var for item in predictors for var in item.stand_ins]
    dispersion = parameters[1] if distribution == "normal" else None
    if dispersion is not None and flow.axes[dispersion] is not None:
        findings.problem(name, "its standard deviation varies with the row", "Let all rows have the same one.")
        return None
    links = list(_links(findings, mean, sources, discrete, free, flow))
    ends = [link for link in links if link.identity or distribution != "normal"]
    found = next((link for link in ends if _affine(link.at, sources, discrete, free)), None)
    apart = [item.name for item in predictors if item.ranges]
    if found is None or apart:
        columns = {var: item for item in predictors for var in item.stand_ins}
        known, hidden = {*free, *discrete}, {*findings.private_variables}
        forms = LinearForms(columns=columns, axes=flow.axes, given=known, hidden=hidden)
        linked = len(ends) < len(links) and any(_affine(link.at, sources, discrete, free) for link in links)
        otherwise = WITH_LINK if linked else NOT_LINEAR if found is None else _not_apart(apart[0])
        found, predictors = _by_computed_columns(findings, name, ends, forms, otherwise)
        if found is None:
            return None
        if not _affine(found.at, [var for item in predictors for var in item.stand_ins], discrete, free):
            raise PrivacyError("A sum of terms is not affine in its columns; this is an error of pymc_dp.")
    own = rebuild([found.at, *([] if dispersion is None else [dispersion])], free)[0]
    design = Design(
        predictors=tuple(predictors),
        eta=own[0],
        link=found.link,
        dispersion=own[1] if len(own) > 1 else None,
        identity=found.identity,
        constant=True,
        apart=False,
        free=tuple(free.values()),
    )
    return _completed(design, discrete)


def _check_latents(findings: Findings, name: str) -> None:
    """Refuse names of the model that would clash once the budget is spent."""
    for taken in (f"{name}_{part}" for part in LATENTS):
        if taken in findings.model.named_vars:
            findings.problem(name, f"the name {taken!r} is taken, which its release needs", f"Rename {taken!r}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Predictor:
    """A variable that may be the linear predictor: all that the mean depends on rows through."""

    at: Variable
    link: Link
    identity: bool


def _links(
    findings: Findings,
    mean: Variable,
    sources: Sequence[Variable],
    discrete: Sequence[Variable],
    free: Mapping[Variable, Variable],
    flow: RowFlow,
) -> Iterator[_Predictor]:
    """Yield variables that the mean is a function of alone, the nearest one first."""
    rows = {*sources, *discrete}
    given = list(free)
    nodes = [var for node in toposort([mean], blockers=given) for var in node.outputs]
    for var in reversed(nodes):
        if flow.axes.get(var) != 0 or getattr(var.type, "ndim", 0) != 1 or not rows & set(ancestors([var], given)):
            continue
        inner = pt.vector("eta")
        (outer,), _ = rebuild([mean], {var: inner.astype(var.type.dtype)})
        if (rows | set(free) | set(findings.private_variables)) & set(ancestors([outer])):
            continue
        yield _Predictor(at=var, link=Link.of(inner, outer, findings.private_variables), identity=var is mean)


NOT_LINEAR = (
    "its mean is not proved to be a function of one linear predictor: a sum of coefficients, which the row's discrete "
    "columns and the parameters determine, times functions of the row alone",
    "Write a + X @ b, a[group] + b * x, b2 * x**2, b3 * x * z, b4 * pt.log(x) and the like: a parameter within a "
    "curved function of a column has no sums.",
)
CONSTANT = (
    "all that its mean reads of its columns are constants, by their bounds",
    "Write the numbers themselves in the model, and leave the columns out.",
)
WITH_LINK = "the mean of its Normal likelihood is not affine in the columns", "Leave out the link."


def _not_apart(name: str) -> tuple[str, str]:
    return (
        f"bounds[{name!r}] has a pair for each column, and what its mean does with each of them is not known",
        f"Write {name} @ b, ({name} * b[group]).sum(axis=1) or {name}[:, 0] * b0 + {name}[:, 1] * b1; or give one pair "
        f"for all columns, Domain(bounds={{{name!r}: (low, high)}}).",
    )


def _by_computed_columns(
    findings: Findings, name: str, ends: Sequence[_Predictor], forms: LinearForms, otherwise: tuple[str, str]
) -> tuple[_Predictor | None, list[Column]]:
    """Return a linear predictor with curved functions of columns as columns of their own, and all columns it is of."""
    for one in ends:
        try:
            terms = forms.of(one.at)
        except NotLinear:
            continue
        columns, leaves = dict[Column, None](), dict[Formula, Variable]()
        taken = {column.name for column in forms.columns.values()}
        for formula in terms.held:
            if isinstance(formula, Entry) and not formula.column.ranges:
                columns[formula.column] = None
                leaves[formula] = formula.leaf
            elif formula != ONE:
                made = computed_column(name, formula, "float64", taken=taken)
                if isinstance(made, Problem):
                    findings.problem(made.where, made.what, made.remedy)
                    return None, []
                columns[made], leaves[formula] = None, made.leaf
        if not columns:
            findings.problem(name, *CONSTANT)
            return None, []
        return replace(one, at=vector_of(terms, leaves)), list(columns)
    findings.problem(name, *otherwise)
    return None, []


def _affine(
    var: Variable, sources: Sequence[Variable], discrete: Sequence[Variable], free: Mapping[Variable, Variable]
) -> bool:
    """Whether a variable of all rows is affine in the columns of numbers, as a graph of one row."""
    # Columns that reach the prior of a free variable are no part of what it stands for here.
    columns = {item: item for item in (*sources, *discrete)}
    (end,), _ = rebuild([var], {**{item: item.type() for item in free}, **columns})
    if not smooth(end, sources):
        return False
    one = {source: _single(source) for source in sources}
    index: dict[Variable, Variable] = {item: pt.vector(dtype=item.type.dtype, shape=(1,)) for item in discrete}
    (eta,), _ = rebuild([end], {**one, **index})
    return slopes_of(eta, list(one.values())) is not None


def _completed(design: Design, discrete: Sequence[Variable]) -> Design:
    """Look at the coefficients: whether there is an intercept, and whether slopes depend on the cell."""
    levels: dict[Variable, Variable] = {var: pt.vector(var.name, dtype=var.type.dtype, shape=(1,)) for var in discrete}
    intercepts, slopes = design.coefficients(levels, 1)
    found = stable(intercepts)
    own = [var for var in ancestors([found]) if var.owner is None and not isinstance(var, Constant)]
    constant = bool(own) or bool(np.any(plain_function([], found)() != 0))
    apart = bool(set(levels.values()) & set(ancestors([slopes])))
    return replace(design, constant=constant, apart=apart)


def _placeholder(item: Column, n_rows: int) -> TensorVariable:
    return _numbers(item.name, (n_rows, *item.row_shape))


def _single(source: Variable) -> TensorVariable:
    shape = source.type.shape[1:]
    if None in shape:
        shape = shape_of(source)[1:]
    return _numbers(source.name, (1, *shape))


def _numbers(name: str | None, shape: tuple[int, ...]) -> TensorVariable:
    """Return a tensor of any name; pt.tensor refuses what looks like a dtype."""
    found: TensorVariable = pt.TensorType("float64", shape)(name)
    return found


def _by_stand_in(rows: Mapping[Column, TensorVariable]) -> dict[Variable, Variable]:
    return {var: row for item, row in rows.items() for var in item.stand_ins}


__all__ = ["Design", "Link", "find_design", "is_design", "numeric_columns"]
