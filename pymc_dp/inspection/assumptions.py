"""The list of what is assumed public, for the user to read: a release protects nothing that stands on it.

Numbers that nobody would choose: more digits than people write, and no well-known constant.

What a private model may keep of the original: data and Deterministics that are known to be public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import MakeVector, ScalarFromTensor

from pymc_dp._column_bounds import pairs_of, written
from pymc_dp._display import shorten
from pymc_dp.inspection.declared_levels import FEW
from pymc_dp.inspection.findings import Findings, Observed, by_hand
from pymc_dp.inspection.likelihoods import likelihood_of
from pymc_dp.inspection.owners import ids_line
from pymc_dp.inspection.privacy_rule import arrays_of, is_named
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Array, opaque, plain_numbers
from pymc_dp.inspection.schema import dim_length, reads_lengths
from pymc_dp.inspection.taint import RULES, depends_on

QUESTION = "looks computed: was it computed from the rows?"
WRITTEN_DIGITS, KNOWN_DIGITS = 5, 3
"""Significant digits of a number that people choose, and of one that they take a root, a logarithm or a power of."""
LARGEST_PART = 60
"""Of a fraction such as 1/3: its numerator and its denominator."""
POWERS = range(2, 11)
CONSTANTS = (
    *(math.pi, 2 * math.pi, math.pi / 2, math.sqrt(2 * math.pi), math.e, math.sqrt(2), math.sqrt(3), math.sqrt(5)),
    *(math.log(2), math.log(10), math.log(2 * math.pi), math.log(2 * math.pi) / 2, math.pi / math.sqrt(3)),
    *(1.2815515655446004, 1.6448536269514722, 1.959963984540054, 2.3263478740408408, 2.5758293035489004),  # of a normal
)
"""Numbers that people also write cut to some digits: the last are quantiles of the standard normal distribution."""


def question(numbers: npt.ArrayLike) -> str:
    """Return what to ask about public numbers, in brackets, or an empty text."""
    return f" ({QUESTION})" if looks_computed(np.asarray(numbers)) else ""


def looks_computed(array: Array) -> bool:
    """Return whether a float of an array has more digits than a person would give it.

    Silent are numbers of at most five significant digits, fractions of small whole numbers, roots, powers, logarithms
    and exponentials of simple numbers, multiples of π, usual constants however they are cut, and arrays that are
    evenly spaced between such numbers.

    Parameters
    ----------
    array : array of any shape
        Public. Only floats are looked at, in the precision that they are given in.

    Examples
    --------
    >>> looks_computed(np.array(-0.0736625)), looks_computed(np.array([0.5, 1 / 3, math.sqrt(2)]))
    (True, False)
    """
    array = np.asarray(array)
    if array.dtype.kind != "f":
        return False
    values = np.unique(np.abs(array[np.isfinite(array)]))
    if values.ndim == 1 and len(values) > 2 and _evenly_spaced(values):
        values = values[[0, -1]]
    return not all(_simple(value) for value in values)


def _simple(value: np.floating) -> bool:
    """Whether somebody may have chosen `value`, >= 0."""
    if len(_digits(np.float64(value))) <= len(_digits(value)):
        value = np.float64(value)  # PyTensor holds what it can in fewer bits: nothing was rounded
    tolerance = 8 * float(np.finfo(value.dtype).eps)
    number = float(value)
    if number == 0 or len(_digits(value)) <= WRITTEN_DIGITS or _is_binary(number) or _is_cut_constant(value):
        return True
    return any(_chosen(origin, tolerance * max(1.0, factor)) for origin, factor in _origins(number))


def _origins(number: float) -> Iterator[tuple[float, float]]:
    """Yield what `number` or its reciprocal may have been made of, and by how much relative errors grow on the way."""
    yield number, 1.0
    yield from ((number ** (1 / power), 1.0) for power in POWERS)
    if 1e-30 < number < 1e30:
        yield from ((number**power, power) for power in POWERS)
        yield from ((multiple, 3.0) for multiple in (number / math.pi, number * math.pi, number**2 * math.pi))
        yield number**2 / math.pi, 3.0
    if number < 100:
        bases = math.exp(number), math.exp(2 * number), 2**number, 10**number
        yield from ((base, 5 * number) for base in bases)
    yield abs(math.log(number)), 1 / max(abs(math.log(number)), 1e-300)


def _chosen(number: float, tolerance: float) -> bool:
    """Whether `number` or its reciprocal is, within a relative error, of few digits or a fraction of small numbers."""
    if not 1e-100 < number < 1e100 or tolerance > 1e-4:
        return False
    if any(abs(float(f"{one:.{KNOWN_DIGITS - 1}e}") - one) <= tolerance * one for one in (number, 1 / number)):
        return True
    near = Fraction(min(number, 1 / number)).limit_denominator(LARGEST_PART)
    return abs(float(near) - min(number, 1 / number)) <= tolerance * float(near)


def _is_binary(number: float) -> bool:
    """Whether `number` is a whole number below 256 times a power of two: halves of halves."""
    return math.frexp(number)[0] * 256 % 1 == 0


def _is_cut_constant(value: np.floating) -> bool:
    """Whether `value` is a usual constant, rounded or cut to as many digits as it has."""
    digits, number = _digits(value), float(value)
    for constant in CONSTANTS:
        if abs(number - constant) < 1e-3 * constant:
            return abs(number - constant) <= 10.0 ** (1 + math.floor(math.log10(constant)) - len(digits))
    return False


def _digits(value: np.floating) -> str:
    """Significant digits of the shortest text that stands for `value` in its own precision."""
    mantissa = np.format_float_scientific(value).partition("e")[0]
    return mantissa.replace(".", "").rstrip("0") or "0"


def _evenly_spaced(values: Array) -> bool:
    steps = np.diff(values.astype(np.float64))
    room = 8 * float(np.finfo(values.dtype).eps) * float(values[-1])
    return float(np.ptp(steps)) <= room


def kept_data(findings: Findings) -> tuple[str, ...]:
    """Names of the pm.Data that the private model may keep: named public, without the row axis."""
    out = set(findings.private_variables) | findings.row_leaves | findings.on_rows
    dims = findings.model.named_vars_to_dims
    return tuple(
        var.name
        for var in findings.model.data_vars
        if is_named(findings, var)
        and var not in out
        and not any(dim in findings.row_dims for dim in dims.get(var.name) or ())
        and _reaches_kept(findings, var)
    )


def may_keep(findings: Findings, deterministic: Variable, kept: Sequence[str]) -> bool:
    """Whether a Deterministic is a function of free variables and named public arrays alone, without the row axis."""
    free = findings.model.free_RVs
    dims = findings.model.named_vars_to_dims.get(deterministic.name) or ()
    if deterministic in findings.on_rows or any(dim in findings.row_dims for dim in dims):
        return False
    if depends_on(deterministic, [*findings.private_variables, *findings.row_leaves]):
        return False
    if reads_lengths(findings, [deterministic], free):
        return False
    if not _as_long_as_parameters(findings, deterministic, kept) and _may_count_rows(findings, deterministic):
        return False
    leaves = arrays_of(findings, [deterministic], free, single=findings.single_row)
    known = {findings.model[name] for name in [*kept, *findings.domain.public]}
    return known.issuperset(leaves) and not opaque([deterministic], free)


def _as_long_as_parameters(findings: Findings, deterministic: Variable, kept: Sequence[str]) -> bool:
    """Whether its lengths are those of free variables and public arrays: a number, ``pt.ones(n)``, may count rows."""
    model, free = findings.model, findings.model.free_RVs
    dims = model.named_vars_to_dims.get(deterministic.name) or ()
    named = {
        dim for var in (*free, *(model[name] for name in kept)) for dim in model.named_vars_to_dims.get(var.name) or ()
    }
    nodes = [var.owner for var in ancestors([deterministic], blockers=free) if var.owner and var not in free]
    return bool(dims and named.issuperset(dims)) or all(isinstance(node.op, WITHOUT_LENGTHS) for node in nodes)


def _may_count_rows(findings: Findings, deterministic: Variable) -> bool:
    """Whether one of its lengths is the number of rows where that is public, or may be it."""
    if findings.domain.neighbours == "add_remove":
        return True
    dims = findings.model.named_vars_to_dims.get(deterministic.name) or ()
    lengths = {dim_length(findings.model.dim_lengths[dim]) for dim in dims if dim is not None}
    return findings.n_rows in lengths or bool({None, findings.n_rows} & set(deterministic.type.shape))


WITHOUT_LENGTHS = (*RULES, MakeVector, ScalarFromTensor)
"""Operations that make no array of a length of their own."""


def _reaches_kept(findings: Findings, var: Variable) -> bool:
    ends: list[Variable] = [*findings.model.free_RVs, *findings.model.potentials]
    for rv in findings.model.observed_RVs:
        _, parameters = likelihood_of(rv)
        ends += list(parameters or ())
        if rv in findings.cumulatives:
            ends.append(findings.cumulatives[rv].below)
    if var.type.ndim == 0:
        ends += findings.model.deterministics
    return _depends_on_any(ends, var)


def _depends_on_any(ends: Sequence[Variable], var: Variable) -> bool:
    """Whether any of `ends` has `var` among its ancestors."""
    return any(item is var for item in ancestors(list(ends)))


ASSUMED = "dp_assumed"
"""Attribute of a model that was made from another: what was taken as public on the way."""
CAUTIONS = "dp_cautions"
"""Attribute of such a model: what to look at before it is released."""


def list_assumptions(findings: Findings, observed: Sequence[Observed], kept: Sequence[str]) -> list[str]:
    """Return one line for everything that the guarantee takes as known beforehand, so that users can object."""
    model, domain = findings.model, findings.domain
    free, lines = list(model.free_RVs), list(getattr(model, ASSUMED, ()))
    ask = question if not hasattr(model, ASSUMED) else _silent  # numbers on the way were asked about there
    hidden, openly = findings.private_variables, domain.neighbours == "replace"
    shown = partial(_shown, ask=ask)
    numbers_of = partial(plain_numbers if not findings.problems else _of_refused, lengths=openly)
    if domain.neighbours == "replace":
        lines += [number_of_rows(findings.n_rows)] * (not findings.settled)
    else:
        of = "rows" if domain.unit is None else "persons"
        lines.append(f"bound on the number of {of}: n_max = {domain.n_max}")
    if domain.unit is not None:
        lines += [WHOSE.format(domain.unit.column), *ids_line(model, domain.unit), TOGETHER]
    lines += [SAMPLED.format(response, column) for response, column in domain.weights.items()]
    for rv in free:
        numbers = shown(numbers_of([rv], [*(var for var in free if var is not rv), *hidden]))
        if numbers:
            lines.append(f"numbers in the prior of {rv.name}: {numbers}")
    for item in observed:
        rv = model[item.name]
        ends = _ends(item, rv)
        rows = findings.axis.among([rv], stop=free)
        numbers = shown(numbers_of(ends, [*free, *hidden], rows))
        if numbers:
            lines.append(f"numbers in the likelihood of {item.name}: {numbers}")
    for rv in model.basic_RVs:
        if by_hand(rv, [var for var in model.basic_RVs if var is not rv]):
            lines.append(f"the functions that {rv.name} is written with, and numbers in them")
    for potential in model.potentials:
        lines.append(f"the Potential {potential.name}")
    for rv, initval in model.rvs_to_initial_values.items():
        if initval is not None:
            lines.append(f"initial value of {rv.name}")
    for det in model.deterministics:
        numbers = shown(numbers_of([det], free)) if may_keep(findings, det, kept) else ""
        if numbers:
            lines.append(f"numbers in {det.name}: {numbers}")
    for name in kept:
        lines.append(f"pm.Data {name}")
    for name in findings.public:
        if name not in kept:
            lines.append(f"public column {name}")
    lines.append(COMPLETE)
    if findings.apart:
        lines.append(SAME_ROWS.format(", ".join(str(rv.name) for rv in findings.data_of)))
    for name, ends in domain.bounds.items():
        lines.append(f"bounds of {name}{', column by column' * bool(pairs_of(ends))}: {written(ends)}{ask([*ends])}")
    for name, levels in domain.levels.items():
        if name in model.named_vars or name in model.dim_lengths:
            lines.append(f"levels of {name}, in this order: {', '.join(shorten([*map(str, levels)], FEW))}")
    for name, norm in domain.norms.items():
        lines.append(f"norm of a row of {name}: at most {norm:g}{ask(norm)}")
    if domain.metric is not None:
        lines.append(f"the metric, and its weights: ρ = {domain.metric}")
    for name, (low, high) in clamped(model).items():
        lines.append(f"log-likelihood of a row of {name}: clipped to ({low:g}, {high:g})")
    keepable = [*free, *(model[name] for name in kept), *model.potentials]
    keepable += [det for det in model.deterministics if may_keep(findings, det, kept)]
    used = {dim for var in keepable for dim in model.named_vars_to_dims.get(var.name) or ()}
    for dim, length in model.dim_lengths.items():
        labels = " and its labels" if model.coords.get(dim) is not None else ""
        if dim in findings.row_dims:
            lines.append(f"dimension {dim}: the rows (its labels are people and are left out)")
        elif dim in used:
            lines.append(f"dimension {dim}: length {dim_length(length)}{labels}")
    return lines


WHOSE = "whose row it is: all rows of a person, and of nobody else, have the same value of {}, of nobody one below 0"
TOGETHER = "rows of a person are independent given the parameters, as the model says (of widths, not of privacy)"
SAMPLED = (
    "rows of {} were sampled independently, with probabilities that are in proportion to 1 / {} (of what the posterior "
    "says, not of privacy); and how weights were scaled"
)


SAME_ROWS = "rows of {} are those of the same persons, in the same order"
COMPLETE = "which columns have missing values: none"
NUMBER_OF_ROWS = "number of rows: "


def number_of_rows(n_rows: int) -> str:
    """Return the line that says how many rows there are, where that is public."""
    return f"{NUMBER_OF_ROWS}{n_rows}"


def public_number_of_rows(lines: Iterable[str]) -> int | None:
    """Read that line among those of a record; None where the number of rows is private.

    Examples
    --------
    >>> public_number_of_rows(["numbers in the prior of p: 2", number_of_rows(60)])
    60
    """
    found = (line.removeprefix(NUMBER_OF_ROWS) for line in lines if line.startswith(NUMBER_OF_ROWS))
    return next((int(number) for number in found if number.isdecimal()), None)


def _ends(observed: Observed, rv: Variable) -> Sequence[Variable]:
    """Graphs of the likelihood of a variable, for the numbers in them."""
    if observed.design is not None or any(column.sources != (column,) for column in observed.columns):
        return likelihood_of(rv)[1] or ()
    return observed.parameters if observed.cumulative is None else observed.cumulative.numbers


def _of_refused(*ends: object, lengths: bool) -> Iterator[Array]:
    """List no numbers of a model that is refused: why it is may be that some of them are made of rows."""
    yield from ()


def _silent(numbers: object) -> str:
    return ""


def _shown(arrays: Iterable[Array], ask: Callable[[Array], str], most: int = 8) -> str:
    """Write numbers, those first that look computed. Of an array only its size: it may turn out to be made of rows."""
    texts: dict[str, bool] = {}
    for array in arrays:
        if array.size == 1:
            asked = ask(array)
            texts[f"{array.item():.6g}{asked}"] = not asked
        elif array.size:
            texts[f"an array of {array.size} numbers without a name"] = False
    shown = sorted(texts, key=lambda text: texts[text])
    return ", ".join(shown if len(shown) <= most else [*shown[:most], f"and {len(shown) - most} more"])


__all__ = ["QUESTION", "looks_computed", "question"]
