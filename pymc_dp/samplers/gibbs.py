"""One free variable given the others, by rows: a choice among public values of it, drawn by the kernel.

How far a row moves its log-likelihood over these values, at the present state of the others, is found on public rows,
enforced on the number of every row, and paid for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.accounting import Event
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import plain_function
from pymc_dp.inspection.priors import priors_of
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel import Grant, Kernel, Pool, RowMap, Table
from pymc_dp.samplers.chain_account import NOT_BEGUN, ChainAccount
from pymc_dp.samplers.near_rows import CHUNK, ROOM, best_centre
from pymc_dp.samplers.public_rows import PublicRows
from pymc_dp.samplers.row_scores import few_kinds
from pymc_dp.samplers.rows import ModelRows, OfPublicRows, rows_of

THIN = 33
"""Candidates at which all public rows are looked at; those that are the farthest there, at all candidates."""
COMPARED = 128
"""Public rows among which a centre is looked for."""
PAIRED = 20
"""Of these, rows that are far apart, of which two make a centre."""
TURNS = 40
"""Steps on the way to a centre."""
FARTHEST = 4
"""Rows with the largest range, which are moved on to where it is larger."""
NOTHING = 1e-10
"""Range in nats that is put down to rounding: no row tells anything."""
Values = Mapping[str, Array]
Pay = Grant | Pool


@dataclass(frozen=True, kw_only=True, eq=False)
class Here:
    """What is public about one choice.

    Attributes
    ----------
    state : (n_scalars,) array
        Values of all free variables, one after the other.
    candidates : (K, *shape) array
    possible : (K,) booleans
        Candidates at which every public row has a log-likelihood, or none has it anywhere.
    range : float
        How far neighbours move the sum, as a range over candidates; 0 where no row tells anything.
    size : float
        The largest log-likelihood of a public row, by its absolute value.
    centre : list of array
        What is taken off the number of a row, as `RowConditional` takes it.
    """

    state: Array
    candidates: Array
    possible: Array
    range: float
    size: float
    centre: list[Array]


class GibbsRows:
    """The rows of a model as the kernel takes them, for draws of one free variable after the other.

    Parameters
    ----------
    inspection : RowInspection
    prior_model : pymc.Model

    Raises
    ------
    UnsupportedModelError
        If a row may be anything, or if the kernel does not take the graph of a row.

    Notes
    -----
    **Guarantee.** That of `Kernel.choose`. Nothing in here can make a choice cost more than was paid.
    """

    def __init__(self, inspection: RowInspection, prior_model: Model) -> None:
        self.rows = ModelRows(inspection, prior_model, natural=True)
        self.rows.require_limits()
        self.shapes = {prior.name: prior.shape for prior in priors_of(prior_model)}
        self.neighbours, self.n_rows, self.most_rows = (
            inspection.domain.neighbours,
            inspection.n_rows,
            inspection.most_rows,
        )
        self.replace = self.neighbours == "replace"
        columns = self.rows.columns
        self.known = [name for name, one in columns.items() if one.public and self.replace]
        self.public = PublicRows(columns, self.rows.inputs, self.known)
        self._conditionals: dict[str, RowConditional] = {}
        self._table: Table | None = None
        self._kernel: Kernel | None = None
        self._kinds: tuple[dict[str, Array], Array] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave what pays behind: a copy in another process begins its own chain."""
        return {**vars(self), "_kernel": None}

    def depends_on(self, name: str) -> bool:
        """Whether a free variable reaches the log-likelihood of a row."""
        return self.rows.reaches(list(self.shapes).index(name))

    def given(self, name: str, *, apart: bool = False) -> RowConditional:
        """Return the conditional of a free variable, all of whose elements may be `apart`; it is made once."""
        if name not in self._conditionals:
            self._conditionals[name] = RowConditional(self, name, apart=apart)
        return self._conditionals[name]

    def state(self, values: Values) -> Array:
        """Return values of all free variables as one vector."""
        return np.concatenate([np.ravel(np.asarray(values[name], dtype=np.float64)) for name in self.shapes])

    # --- life of a chain ----------------------------------------------------------------------------------------------

    def compile(self) -> None:
        """Compile what sampling needs: before the budget is charged."""
        for one in self._conditionals.values():
            one.compile()

    def load(self) -> None:
        """Read the rows, once. The budget was charged."""
        self._table, self._kinds = self.rows.table(), None
        self.public.hold(rows_of(self._table))

    def forget(self) -> None:
        """Let go of the rows."""
        self._table = self._kernel = None

    def begin(self, paid: Sequence[Event]) -> Kernel:
        """Begin a chain, for which the parts `paid` were charged; return the kernel that its choices are drawn by."""
        if self._table is None:
            raise PrivacyError("The rows were not read; this is an error of pymc_dp.")
        self.compile()
        kernel = Kernel(self._table, ChainAccount(self.neighbours, *paid))
        self._kernel = kernel.by_kind() if few_kinds(self.rows.columns.values()) else kernel
        return kernel

    @property
    def kernel(self) -> Kernel:
        """That of the chain that has begun."""
        if self._kernel is None:
            raise PrivacyError(NOT_BEGUN)
        return self._kernel

    @property
    def kinds(self) -> tuple[dict[str, Array], Array]:
        """Public values that rows have, each once, and how many rows have them: public."""
        if self._kinds is None:
            assert self._table is not None
            held = rows_of(self._table)
            flat = np.concatenate([np.reshape(one, (len(one), -1)) for one in held.values()], axis=1)
            _, first, counts = np.unique(flat, axis=0, return_index=True, return_counts=True)
            self._kinds = {name: one[first] for name, one in held.items()}, counts
        return self._kinds


class RowConditional:
    """f_k(x) = l(x, θ) with one variable at its k-th candidate, less a public centre, summed over rows by the kernel.

    Under replace a centre is taken off every row, and added again as often as there are rows. Without public columns it
    is a mean of public rows that lies in the middle of all of them; with some, the mean of two rows with the public
    values of the row. There is none where how many rows it is taken off is not known.

    Parameters
    ----------
    of : GibbsRows
    name : str
        The variable.
    apart : bool
        Whether its elements are independent of each other, given all that is not rows.

    Attributes
    ----------
    cell : str or None
        Column of whole numbers that says which one element a row depends on: then all are chosen at once.
    """

    def __init__(self, of: GibbsRows, name: str, *, apart: bool) -> None:
        self._of, self.name, self.shape, self.most_rows = of, name, of.shapes[name], of.most_rows
        rows, place = of.rows, list(of.shapes).index(name)
        graph, own = rows.over(place, self.shape)
        self.cell = cell_of(graph, own, of.rows) if apart else None
        unknown = self.cell is not None and self.cell not in of.known  # how many rows there are of an element
        self._by_row = bool(of.known) and not unknown
        self._centred = of.replace and not unknown
        self._over = own, pt.TensorType("float64", (None, *self.shape))("candidates")
        self._private = [column for column in rows.inputs if column not in of.known]
        self._graphs, self._pair = {"plain": graph}, list[Variable]()
        if self._by_row:
            types = [rows.inputs[column].type for column in self._private]
            self._pair = [pt.TensorType(one.dtype, (2, *one.shape))() for one in types]
            ends = []
            for side in (0, 1):
                row = {rows.inputs[name]: both[side] for name, both in zip(self._private, self._pair, strict=True)}
                ends.append(clone_replace([graph], row, rebuild_strict=False)[0])
            self._graphs["middle"] = pt.add(*ends) / 2
            self._graphs["centred"] = pt.sub(graph, self._graphs["middle"])
        self._functions: dict[str, OfPublicRows] = {}
        self._map: RowMap | None = None
        self._alone = list(of.shapes) == [name] and not self.shape
        self._found: Here | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is compiled behind."""
        return {**vars(self), "_functions": {}, "_map": None}

    def compile(self) -> None:
        """Compile what sampling needs."""
        if self._map is not None:
            return
        rows, (own, many) = self._of.rows, self._over
        found: Any = vectorize_graph(self._graphs["centred" if self._by_row else "plain"], {own: many})
        if not found.type.ndim:  # what the variable does not enter
            found = pt.alloc(found, many.shape[0])
        if self._by_row:
            self._map = rows.row_map(found, [rows.at, many, *self._pair])
        else:
            centre = pt.vector("centre")
            self._map = rows.row_map(found - centre, [rows.at, many, centre])

    # --- ranges: public -----------------------------------------------------------------------------------------------

    def look(self, values: Values, candidates: Array) -> Here:
        """Find how far a row moves the log-likelihood over candidates, given the values of all variables.

        Where there is one variable, that is the same at all scans: it is found once, and better.
        """
        if self._alone and self._found is not None and np.array_equal(self._found.candidates, candidates):
            return self._found
        found = self._look(values, candidates)
        self._found = found if self._alone else None
        return found

    def _look(self, values: Values, candidates: Array) -> Here:
        state, every = self._of.state(values), np.asarray(candidates, dtype=np.float64)
        rows = self._of.public.rows
        kept, possible = np.arange(len(every)), np.ones(len(every), dtype=bool)
        thin = kept if self._alone else _thinned(kept)
        found = self._plain(rows, state, every[thin])
        alive = np.isfinite(found).any(axis=1)  # others have no density anywhere, and count for nothing
        rows, found = {name: held[alive] for name, held in rows.items()}, found[alive]
        if not np.isfinite(found).all():
            possible = np.isfinite(self._plain(rows, state, every)).all(axis=0)
            kept = np.flatnonzero(possible)
            thin = kept if self._alone else _thinned(kept)
            found = self._plain(rows, state, every[thin]) if len(kept) else found[:, :0]
        if not len(kept) or not len(found) or np.ptp(found, axis=1).max() <= NOTHING:
            centre = [np.zeros(len(every))]
            if self._by_row:
                pairs = self._of.public.rows
                centre = [np.stack([pairs[name][0], pairs[name][-1]]) for name in self._private]
            return Here(state=state, candidates=every, possible=possible, range=0.0, size=0.0, centre=centre)
        centre, centred = self._middle(rows, found, state, every, thin)
        far = np.argsort(np.ptp(centred, axis=1))[-FARTHEST:]
        top = {name: held[far] for name, held in rows.items()}
        moved, _ = self._of.public.swept(
            top, np.ones(len(far)), lambda tried: self._width(tried, state, every, thin, centre)
        )
        both = {name: np.concatenate([held, moved[name]]) for name, held in top.items()}
        width = max(float(np.ptp(centred, axis=1).max()), float(self._width(both, state, every, kept, centre).max()))
        return Here(
            state=state,
            candidates=every,
            possible=possible,
            range=(2 if self._of.replace else 1) * width * (1 + ROOM),
            size=float(np.abs(found).max()),
            centre=centre,
        )

    def _plain(self, rows: Values, state: Array, candidates: Array) -> Array:
        return self._on("plain", rows, state, candidates)

    def _on(self, key: str, rows: Values, state: Array, candidates: Array, *pair: Array) -> Array:
        """Return a number of public rows at some candidates: (n_rows, K), as floats return them."""
        if key not in self._functions:
            self._functions[key] = OfPublicRows(
                self._of.rows,
                self._graphs[key],
                over=self._over,
                given=[] if key == "plain" else self._pair,
                columns=self._of.known if key == "middle" else None,
            )
        count = len(next(iter(rows.values())))
        size = max(1, CHUNK // max(len(candidates), 1))
        parts = [
            self._functions[key].at(
                {name: held[start : start + size] for name, held in rows.items()}, state, candidates, *pair
            )
            for start in range(0, count, size)
        ]
        return np.concatenate(parts, axis=1).T if parts else np.zeros((0, len(candidates)))

    def _less(self, rows: Values, state: Array, every: Array, places: Array, centre: list[Array]) -> Array:
        """Return numbers of public rows at some candidates, less the centre."""
        if not self._by_row:
            found = self._plain(rows, state, every[places])
            return found - centre[0][places] if centre else found
        return self._on("centred", rows, state, every[places], *centre)

    def _width(self, rows: Values, state: Array, every: Array, places: Array, centre: list[Array]) -> Array:
        with np.errstate(all="ignore"):
            width = np.ptp(self._less(rows, state, every, places, centre), axis=1)
        return np.where(np.isfinite(width), width, 0.0)

    def _middle(self, rows: Values, found: Array, state: Array, every: Array, thin: Array) -> tuple[list[Array], Array]:
        """Return the centre, and the numbers of public rows at some candidates less it."""
        if not self._centred:
            return ([] if self._by_row else [np.zeros(len(every))]), found
        if not self._by_row:
            some = np.arange(len(found)) if self._alone else some_of(len(found))
            weights = best_centre(found) if self._alone else quick_centre(found[some])
            if not weights:
                return [np.zeros(len(every))], found
            places = some[list(weights)]
            shares = np.array(list(weights.values()))
            whole = shares @ self._plain({name: held[places] for name, held in rows.items()}, state, every)
            whole = np.where(np.isfinite(whole), whole, 0.0)
            return [whole], found - whole[thin]
        # Two rows, in the middle of those that have the public values of the row that ranges farthest.
        place, some = int(np.ptp(found, axis=1).argmax()), some_of(len(found))
        alike = {
            name: np.repeat(held[place : place + 1], len(some), axis=0) if name in self._of.known else held[some]
            for name, held in rows.items()
        }
        near = self._plain(alike, state, every[thin])
        sound = np.flatnonzero(np.isfinite(near).all(axis=1))
        one, two = pair_of(near[sound])
        own = [np.stack([alike[name][sound[one]], alike[name][sound[two]]]) for name in self._private]
        return own, self._less(rows, state, every, thin, own)

    # --- choices: by the kernel ---------------------------------------------------------------------------------------

    def choose(self, here: Here, beta: float, public: Array, pay: Pay, most: float | None = None) -> Array | int:
        """Draw candidates with probability ∝ exp(public_k + β Σ l_k): one, or one for each element by its cell.

        Parameters
        ----------
        here : Here
            Of a range > 0.
        beta : float
            > 0; costs β times the range, and the slack of whole weights.
        public : (K,) or (n_elements, K) array
            Log weights that owe nothing to the rows.
        most : float, optional
            What is enforced and paid for instead of the range that was found.
        """
        range_ = here.range if most is None else most
        count = len(here.candidates)
        self.compile()
        assert self._map is not None
        offset = self._offset(here) if self._centred else 0.0
        weights = np.where(here.possible, public + beta * offset, -np.inf)
        # One that is excluded stands as another one does: a row without a number anywhere would count for nothing.
        places = np.where(here.possible, np.arange(count), int(here.possible.argmax()))
        centre = here.centre if self._by_row else [here.centre[0][places]]
        chosen: Array | int = self._of.kernel.choose(
            self._map,
            [here.state, here.candidates[places], *centre],
            count,
            width=range_ / (2 if self._of.replace else 1),
            eta=beta * range_,
            public=weights,
            cell=self.cell,
            cells=1 if self.cell is None else self.shape[0],
            pay=pay,
        )
        return chosen

    def _offset(self, here: Here) -> Array:
        """Return what the centres of all rows add to the sums, in each cell: public."""
        if not self._by_row:
            return self._of.n_rows * here.centre[0]
        rows, counts = self._of.kinds
        cells = None if self.cell is None else rows[self.cell]
        total = np.zeros((1 if cells is None else self.shape[0], len(here.candidates)))
        size = max(1, CHUNK // len(here.candidates))
        for start in range(0, len(counts), size):
            some = {name: held[start : start + size] for name, held in rows.items()}
            found = self._on("middle", some, here.state, here.candidates, *here.centre)
            found = found * counts[start : start + size, None]
            if cells is None:
                total[0] += found.sum(axis=0)
            else:
                np.add.at(total, cells[start : start + size], found)
        return total[0] if cells is None else total


def _thinned(places: Array) -> Array:
    """Return some of many places, evenly, the first and the last among them."""
    return places[np.unique(np.linspace(0, len(places) - 1, THIN).astype(int))] if len(places) else places


def some_of(count: int) -> Array:
    """Return places of rows among which a centre is looked for: the first, which are at corners, and others evenly."""
    first = np.arange(min(count, COMPARED // 4))
    return np.unique(np.concatenate([first, np.linspace(0, count - 1, COMPARED).astype(int)]))


def quick_centre(found: Array) -> dict[int, float]:
    """Return weights of rows whose mean lies about in the middle: step by step, toward the row that ranges farthest.

    A chain looks for one at each state. Ranges were up to a twelfth wider than by `best_centre`, in up to a fiftieth of
    its time.

    Parameters
    ----------
    found : (n_rows, n_points) array

    Examples
    --------
    >>> quick_centre(np.array([[0.0, 0.0], [0.0, 4.0], [0.0, 1.0]]))
    {0: 0.5, 1: 0.5}
    """
    weights = np.zeros(len(found))
    one, two = pair_of(found)
    weights[[one, two]] += 0.5
    best, least = weights, np.inf
    for turn in range(TURNS):
        widths = np.ptp(found - weights @ found, axis=1)
        far = int(widths.argmax())
        if widths[far] < least:
            best, least = weights, float(widths[far])
        share = 1 / (turn + 3)
        weights = weights * (1 - share)
        weights[far] += share
    return {int(place): float(best[place]) for place in np.flatnonzero(best)}


def pair_of(found: Array) -> tuple[int, int]:
    """Return two rows in the middle of which all are: far apart at first, then each moved on to what is best.

    Parameters
    ----------
    found : (n_rows, n_points) array

    Examples
    --------
    >>> pair_of(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 4.0]]))
    (2, 0)
    """
    one = int(np.ptp(found - found[0], axis=1).argmax())
    two = int(np.ptp(found - found[one], axis=1).argmax())
    tried, apart = [one, two], np.full(len(found), np.inf)
    while len(tried) < min(PAIRED, len(found)):  # rows that are far from all so far
        apart = np.minimum(apart, np.ptp(found - found[tried[-1]], axis=1))
        tried.append(int(apart.argmax()))
    for _ in range(2):
        one = min(tried, key=lambda place: np.ptp(found - (found[place] + found[two]) / 2, axis=1).max())
        one, two = two, one
    return one, two


def cell_of(graph: Variable, own: Variable, rows: ModelRows) -> str | None:
    """Return the column that says which one element of a vector a row depends on; None where there is none.

    On every way from the vector to the log-likelihood of a row one element is taken, by the same column; before that,
    elements are only moved each by itself.
    """
    if own.type.ndim != 1:
        return None
    (length,) = own.type.shape
    moving, found = {own}, set[str | None]()
    for node in toposort([graph]):
        used = [var for var in node.inputs if var in moving]
        if not used:
            continue
        if isinstance(node.op, AdvancedSubtensor | Subtensor) and used == node.inputs[:1] and len(node.inputs) == 2:
            found.add(_column_of(node.inputs[1], length, rows))
        elif isinstance(node.op, Elemwise) and all(out.type.shape == (length,) for out in node.outputs):
            moving.update(node.outputs)
        else:
            return None
    return found.pop() if len(found) == 1 else None


def _column_of(index: Variable, length: int, rows: ModelRows) -> str | None:
    """Return the column of whole numbers that an index is, at all of its values; None where it is no column."""
    names = {var: name for name, var in rows.inputs.items()}
    roots = [var for var in ancestors([index]) if var.owner is None and not isinstance(var, Constant)]
    if len(roots) != 1 or roots[0] not in names:
        return None
    (var,), column = roots, rows.columns[names[roots[0]]]
    low, high = (float(np.min(column.ends[0])), float(np.max(column.ends[1])))
    if var.type.dtype != "int64" or var.type.ndim or not 0 <= low <= high < length:
        return None
    function = plain_function([var], [index], few=True)
    alike = all((np.asarray(function(np.int64(value))[0]) == value).all() for value in range(int(low), int(high) + 1))
    return names[var] if alike else None


__all__ = ["GibbsRows", "Here", "RowConditional", "cell_of", "pair_of", "quick_centre", "some_of"]
