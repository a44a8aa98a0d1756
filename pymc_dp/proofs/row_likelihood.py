"""The log-likelihood of one row as an expression over what is public: bounds of its values, supports of the priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable

from pymc_dp.inspection.columns import levels_of
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.one_row import of_one_row, placeholder
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Column, known_rows, shape_of
from pymc_dp.intervals.expression import Expression, Symbol, Tape, UnknownOperation, leaf, moved, substituted
from pymc_dp.proofs.lowering import lowered
from pymc_dp.proofs.meeting_points import length, roles

MOST_SCALARS = 200
"""Scalars of one expression; more are refused, for the search has one dimension each."""

SIMPLEX = "entries add up to 1"

Copies = dict[tuple[Symbol, str], Symbol]


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A term of a sum, and its sign."""

    sign: int
    expression: Expression

    @property
    def mixed(self) -> bool:
        """Whether it depends on private values and on parameters: other terms cancel in differences of differences."""
        found = roles(self.expression)
        private, parameters = {"row", "joint"} & found, {"parameter", "joint", "public joint"} & found
        return bool(private and parameters)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowLikelihood:
    """Log-likelihood of one row in one observed variable.

    Attributes
    ----------
    name : str
        Of the observed variable.
    whole : Expression
    parts : tuple of Part
        Terms that add up to `whole`.
    failure : str
        Why there is no expression: the operation without a rule; empty if there is one.
    """

    name: str
    whole: Expression | None
    parts: tuple[Part, ...] = ()
    failure: str = ""

    @property
    def symbols(self) -> frozenset[Symbol]:
        """Everything that the log-likelihood depends on."""
        return frozenset() if self.whole is None else self.whole.symbols


def row_likelihoods(
    inspection: RowInspection, model: Model, priors: tuple[Prior, ...] | None = None
) -> tuple[tuple[RowLikelihood, ...], tuple[Prior, ...]]:
    """Return the log-likelihood of a row in each observed variable, and the priors whose supports bound it.

    Parameters
    ----------
    inspection : RowInspection
        Without problems.
    model : pymc.Model
        The prior model of the inspected model: where priors are read.
    priors : tuple of Prior, optional
        Of the prior model, with other supports.
    """
    bounded = clamped(inspection.model)
    priors = priors_of(model) if priors is None else priors
    one = {column.leaf: placeholder(column.leaf, shape_of(column.leaf)[1:]) for column in inspection.columns}
    known = _leaves_of(dict(zip(inspection.stand_ins, priors, strict=True)), inspection.columns, one)
    return tuple(
        _likelihood(term.name, of_one_row(term, one, {}), known, whatever=term.name in bounded)
        for term in inspection.terms
    ), priors


def _leaves_of(
    priors: Mapping[Variable, Prior], columns: Sequence[Column], one: Mapping[Variable, Variable]
) -> dict[Variable, Expression]:
    """Return what a row's log-likelihood depends on: free variables by their stand-ins, and the values of `one` row."""
    found = {stand_in: leaf(_parameter(prior)) for stand_in, prior in priors.items()}
    return found | {one[column.leaf]: leaf(symbol_of(column)) for column in columns}


def _likelihood(
    name: str, graph: Variable, known: dict[Variable, Expression], *, whatever: bool = False
) -> RowLikelihood:
    """Read a graph; what is clipped at the end may hold `whatever` operations."""
    try:
        whole = lowered(graph, known, whatever=whatever)
    except UnknownOperation as error:
        return RowLikelihood(name=name, whole=None, failure=str(error))
    count = sum(symbol.size for symbol in whole.symbols)
    if count > MOST_SCALARS:
        return RowLikelihood(
            name=name, whole=None, failure=f"a density of {count} scalars at once (most: {MOST_SCALARS})"
        )
    return RowLikelihood(name=name, whole=whole, parts=tuple(parts_of(whole)))


def _parameter(prior: Prior) -> Symbol:
    levels = levels_of(prior)
    ends = (prior.low, prior.high) if levels is None else (levels[0], levels[-1])
    low, high = (
        np.full(prior.shape, least if end is None else end, dtype=float)
        for end, least in zip(ends, (-np.inf, np.inf), strict=True)
    )
    return Symbol(
        name=prior.name,
        low=low,
        high=high,
        integer=prior.variable.type.dtype.startswith(("int", "uint")),
        norm=prior.radius,
        note=SIMPLEX if prior.distribution == "dirichlet" else "",
    )


def symbol_of(column: Column) -> Symbol:
    """Return the values of a column in one row, within its bounds or its norm."""
    low, high = column.ends
    norm = _longest(column) if column.public and column.norm is None else column.norm
    if norm is not None:
        low, high = np.maximum(low, -norm), np.minimum(high, norm)
    return Symbol(
        name=column.name,
        low=low,
        high=high,
        integer=column.integer,
        role="public" if column.public else "row",
        norm=norm,
    )


def _longest(column: Column) -> float | None:
    """Return the largest norm of the rows of a public array, which may be looked at."""
    values = np.asarray(column.clamped(known_rows(column)), dtype=np.float64)
    if column.integer or values.ndim < 2 or not values.size or not np.isfinite(values).all():
        return None
    return float(length(np.abs(values).reshape(len(values), -1)).max()) * (1 + 1e-12)


def parts_of(expression: Expression) -> list[Part]:
    """Split a scalar into terms of a sum, also within branches of conditions that depend on no parameter."""
    tape = Tape([expression])
    known = tape.values(tape.low[None], tape.high[None])
    sizes = {node: int(np.prod(item.shape[1:])) for node, item in known.items()}

    def split(node: Expression, sign: int) -> list[Part]:
        plain = sizes.get(node) == 1
        if node.kind == "elementwise" and node.name in ("Add", "Sub", "Neg") and plain:
            signs = [sign] * len(node.inputs)
            if node.name in ("Sub", "Neg"):
                signs[-1] = -sign
            return [part for item, one in zip(node.inputs, signs, strict=True) for part in split(item, one)]
        same = node.kind == "moved" or node.name in ("Sum", "Prod", "Max", "Min")
        if same and len(node.inputs) == 1 and sizes.get(node.inputs[0]) == 1:
            return split(node.inputs[0], sign)
        if node.kind == "switch" and plain and node in known:
            condition, yes, no = node.inputs
            decided = known[condition]
            if decided.low.min() == decided.high.max() and not decided.flags.any():
                return split(yes if decided.low.min() else no, sign)
            if sizes.get(condition) == 1 and not {"parameter", "joint", "public joint"} & roles(condition):
                return [
                    *(_within(node, part, condition, True) for part in split(yes, sign)),
                    *(_within(node, part, condition, False) for part in split(no, sign)),
                ]
        return [Part(sign=sign, expression=node)]

    return split(expression, 1)


def _within(node: Expression, part: Part, condition: Expression, holds: bool) -> Part:
    from pymc_dp.intervals.expression import constant, switch

    assert node.rule is not None
    flat = [moved("Flat", _flat, [item]) for item in (condition, part.expression)]
    zero = constant(np.zeros(()))
    branches = [flat[1], zero] if holds else [zero, flat[1]]
    return Part(sign=part.sign, expression=switch(node.rule, [flat[0], *branches]))


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(array.shape[0])


def copied(expression: Expression, row: int, parameters: int, copies: Copies) -> Expression:
    """Return an expression for one of two rows and one of two places in the parameter space.

    Public values of a row are shared: neighbours differ in private ones only.
    """
    labels = {
        "row": f"row {row}",
        "public": "",
        "parameter": f"place {parameters}",
        "joint": f"row {row}, place {parameters}",
        "public joint": f"place {parameters}",
    }
    chosen = {}
    for symbol in expression.symbols:
        label = labels[symbol.role]
        if label:
            chosen[symbol] = copies.setdefault((symbol, label), _copy(symbol))
    return substituted(expression, chosen)


def _copy(symbol: Symbol) -> Symbol:
    return Symbol(
        name=symbol.name,
        low=symbol.low,
        high=symbol.high,
        integer=symbol.integer,
        role=symbol.role,
        norm=symbol.norm,
        note=symbol.note,
    )


def signed_sum(terms: Sequence[tuple[int, Expression]]) -> Expression:
    """Return a sum of scalars with signs."""
    from pytensor.scalar.basic import Add, Neg

    from pymc_dp.intervals.expression import constant, elementwise
    from pymc_dp.intervals.rules import RULES

    if not terms:
        return constant(np.zeros(()))
    flat = [moved("Flat", _flat, [item]) for _, item in terms]
    given = [
        item if sign > 0 else elementwise("Neg", RULES[Neg], [item])
        for (sign, _), item in zip(terms, flat, strict=True)
    ]
    return elementwise("Add", RULES[Add], given) if len(given) > 1 else given[0]


__all__ = [
    "SIMPLEX",
    "Copies",
    "Part",
    "RowLikelihood",
    "copied",
    "parts_of",
    "row_likelihoods",
    "signed_sum",
    "symbol_of",
]
