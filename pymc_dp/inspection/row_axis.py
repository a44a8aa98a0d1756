"""Which variables of a graph count rows along their first axis.

Under ``add_remove`` nobody may learn how many rows there are, so no length may be compared with their number: a public
array that is by chance as long as the table would be taken for a column of it, and for none beside a row more. There,
what counts rows is read from the operations: an array does if it has to broadcast against rows, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import toposort
from pytensor.tensor.basic import Alloc, ARange, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor
from pytensor.tensor.type import TensorType

from pymc_dp.inspection.rows import applied, shape_of

ROWS, APART = 10**12, 10**6
"""Length that stands for the number of rows, and how far after it, and apart, those follow that are not known yet."""
DRAWS = (RandomVariable, SymbolicRandomVariable)
Shape = tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class RowAxis:
    """What is known of the axis that counts rows before a graph is looked at.

    Attributes
    ----------
    known : mapping of Variable to bool
        Whether the first axis counts rows: true of what is observed, and of a ``pm.Data`` with its dims. False of one
        with other dims, which counts rows only if it meets them, however long it is.
    n_rows : int or None
        Number of rows where it is public: other arrays that are as long count them. None under ``add_remove``.
    """

    known: Mapping[Variable, bool]
    n_rows: int | None

    def beside(self, *variables: Variable) -> RowAxis:
        """Return the same with more variables that count rows."""
        return replace(self, known={**self.known, **dict.fromkeys(variables, True)})

    def among(
        self, ends: Sequence[Variable], stop: Iterable[Variable] = (), along: Iterable[Variable] = ()
    ) -> set[Variable]:
        """Return what counts rows among the arrays and the results that `ends` are computed from other than by `stop`.

        `along` are those of `ends` that are known to broadcast against rows along their first axis.
        """
        blockers = list(stop)
        nodes = list(toposort(list(ends), blockers=blockers))
        made = {out for node in nodes for out in node.outputs}
        leaves = {*ends, *(var for node in nodes for var in node.inputs)} - made
        arrays = {var for var in made | leaves if _is_array(var) or (var.owner and isinstance(var.owner.op, Alloc))}
        as_long = {var: True for var in arrays if self.n_rows is not None and _shape(var)[:1] == (self.n_rows,)}
        return _Lengths({**as_long, **self.known}).counting(nodes, leaves, list(along))


class _Lengths:
    """Lengths of first axes as unknowns, made equal wherever an operation needs them to be."""

    def __init__(self, known: Mapping[Variable, bool]) -> None:
        self.known = known
        self.unknown: dict[Variable, int] = {}
        self.numbers: set[int] = set()
        self.equal: dict[int | None, int] = {}

    def counting(self, nodes: Sequence[Apply], leaves: Iterable[Variable], along: Sequence[Variable]) -> set[Variable]:
        """Return the variables of a graph whose first axis has the length of the rows."""
        before = -1
        while before != len(self.equal):  # what meets late may settle what was passed early
            before = len(self.equal)
            typed = {leaf: self._leaf(leaf) for leaf in leaves}
            for node in nodes:
                typed.update(zip(node.outputs, self._results(node, typed), strict=True))
            self._meet([(ROWS,), *(self._lengths(typed[var])[:1] for var in along)])
        return {var for var, stand_in in typed.items() if self._lengths(stand_in)[:1] == (ROWS,)}

    def _leaf(self, leaf: Variable) -> Variable:
        """Return what stands for an array: of its own shape, but for the axis that may count rows."""
        shape = _shape(leaf)
        if self.known.get(leaf):
            return _of_shape(leaf, (ROWS, *shape[1:]))
        if not shape or not _is_array(leaf) or leaf.type.shape[0] == 1:  # what broadcasts may be of any length
            return leaf
        return _of_shape(leaf, (self._unknown(leaf), *shape[1:]))

    def _results(self, node: Apply, typed: Mapping[Variable, Variable]) -> list[Variable]:
        """Apply an operation to stand-ins of known lengths, and note which lengths have to be the same."""
        inputs = [typed[var] for var in node.inputs]
        meeting = _meeting(node, inputs)
        self._meet([self._lengths(var)[: len(_shape(var)) - own] for var, own in meeting])
        for places in _contracted(node.op).values():
            self._meet([self._lengths(inputs[place])[axis:][:1] for place, axis in places])
        try:
            # Nothing is asked of a random variable, which would be resized.
            outputs = node.outputs if isinstance(node.op, DRAWS) else applied(node, self._open(node, inputs)).outputs
        except Exception:  # lengths that cannot meet, or an operation made for its first inputs alone
            outputs = [_of_shape(out, (None,) * len(_shape(out))) for out in node.outputs]
        outputs = [self._result(node, old, new) for old, new in zip(node.outputs, outputs, strict=True)]
        if isinstance(node.op, Alloc):
            self._meet([self._lengths(inputs[0]), self._lengths(outputs[0])])
        if isinstance(node.op, DRAWS):
            batches = [self._lengths(var) for var, own in meeting if own < len(_shape(var))]
            self._meet([shape[:1] for shape in (*map(self._lengths, outputs), *batches)])
        return outputs

    def _result(self, node: Apply, old: Variable, new: Variable) -> Variable:
        """Return what stands for a result: its length is not known yet where a number gave it."""
        shape = _shape(new)
        if not shape or isinstance(new, Constant):
            return new
        given = isinstance(node.op, (Alloc, ARange, Reshape, *DRAWS)) and (shape[0] is None or shape[0] < ROWS)
        first = ROWS if self.known.get(old, False) else self._unknown(old) if given else shape[0]
        return _of_shape(new, (first, *shape[1:]))

    def _open(self, node: Apply, inputs: Sequence[Variable]) -> list[Variable]:
        """Return inputs of settled lengths, and no number for the length of a result: it may be that of the rows."""
        settled = [_of_shape(var, self._lengths(var)) for var in inputs]
        if isinstance(node.op, Reshape):
            settled[1] = node.inputs[1]
        if isinstance(node.op, Alloc) and isinstance(node.inputs[1], Constant):
            settled[1] = node.inputs[1].type()
        return settled

    def _unknown(self, var: Variable) -> int:
        """Return the number that stands for the length of a variable."""
        number = self.unknown.setdefault(var, ROWS + APART * (len(self.unknown) + 1))
        self.numbers.add(number)
        return number

    def _lengths(self, var: Variable) -> Shape:
        """Lengths of all axes, as far as what met before tells."""
        return tuple(map(self._settled, _shape(var)))

    def _settled(self, length: int | None) -> int | None:
        while length in self.equal:
            length = self.equal[length]
        return length

    def _meet(self, shapes: Sequence[Shape]) -> None:
        """Make lengths equal where shapes broadcast, their last axes on top of each other."""
        for place in range(1, max(map(len, shapes), default=0) + 1):
            lengths = [self._settled(shape[-place]) for shape in shapes if len(shape) >= place]
            found = {length for length in lengths if length is not None and length != 1}
            unknown = sorted(found & self.numbers)
            first, *others = [*sorted(found.difference(unknown), key=ROWS.__ne__), *unknown] or [ROWS]
            self.equal.update({length: first for length in unknown if length in others})


def _meeting(node: Apply, inputs: Sequence[Variable]) -> list[tuple[Variable, int]]:
    """Return the inputs of an operation that broadcast, each with how many of its last axes do not."""
    op = node.op
    if isinstance(op, Elemwise):
        return [(var, 0) for var in inputs]
    if isinstance(op, AdvancedSubtensor | AdvancedIncSubtensor):
        return [(var, 0) for var in (inputs[1:] if isinstance(op, AdvancedSubtensor) else inputs[2:])]
    if isinstance(op, Join):
        return [(var, len(_shape(var)) - op.axis) for var in inputs]
    if isinstance(op, Blockwise):
        return [(var, len(own)) for var, own in zip(inputs, op.inputs_sig, strict=True)]
    if isinstance(op, DRAWS) and op.ndims_params is not None:
        places = [node.inputs.index(var) for var in op.dist_params(node)]
        return [(inputs[place], own) for place, own in zip(places, op.ndims_params, strict=True)]
    return []


def _contracted(op: Op) -> dict[str, list[tuple[int, int]]]:
    """Return the inner axes of an operation that have the same length: (input, axis) by its name in the signature."""
    signature = op.inputs_sig if isinstance(op, Blockwise) else [("m", "n"), ("n", "p")] * isinstance(op, Dot)
    found: dict[str, list[tuple[int, int]]] = {}
    for place, names in enumerate(signature):
        for axis, name in enumerate(names):
            found.setdefault(name, []).append((place, axis - len(names)))
    return found


def _is_array(leaf: Variable) -> bool:
    return isinstance(leaf, Constant | SharedVariable)


def _shape(var: Variable) -> Shape:
    """Return the lengths of axes: of arrays as they are, of other variables as far as their type says."""
    if not isinstance(var.type, TensorType):
        return ()
    return shape_of(var) if _is_array(var) else tuple(var.type.shape)


def _of_shape(var: Variable, shape: Shape) -> Variable:
    """Return a plain variable of that shape, or the same where it says so itself."""
    if not isinstance(var.type, TensorType) or (tuple(var.type.shape) == shape and not _is_array(var)) or not shape:
        return var
    return TensorType(var.type.dtype, shape)()


__all__ = ["RowAxis"]
