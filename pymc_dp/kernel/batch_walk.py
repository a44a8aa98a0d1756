"""Walks by batches: noised sums of secret batches, step after step in one compiled loop, all paid for at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, final
from weakref import WeakKeyDictionary

import numba
import numpy as np
import numpy.typing as npt
from numba.core.registry import CPUDispatcher

from pymc_dp.kernel import batch_loops
from pymc_dp.kernel.account import Account, Once, Rehearsal, repeated
from pymc_dp.kernel.accounting.events import SubsampledGaussianEvent
from pymc_dp.kernel.arguments import flag, positive, whole, word
from pymc_dp.kernel.errors import ArgumentError, BudgetExceeded
from pymc_dp.kernel.limits import MOST_ROWS, UNITS
from pymc_dp.kernel.payer import read_rows
from pymc_dp.kernel.randomness import insecure, secure_generator
from pymc_dp.kernel.rowmap import BLOCK, RowMap

Array = npt.NDArray[Any]
ROOT_BITS, MOST_OF_COVARIANCE = 15, 2**20
"""Bits of the numbers of a row that are multiplied; rows of a batch of which a covariance is made."""
MOST_NOISE = 2.0**56
"""Standard deviation of the noise of a sum, in units: noise is cut at 32 of them."""
ROUNDED = 1 - 2.0**-50
"""Room for the rounding of the noise multiplier of several sums together."""


def batch_event(
    neighbours: str,
    scale: float,
    *,
    rate: float | None = None,
    batch: int | None = None,
    population: int | None = None,
    products: float | None = None,
    centred: bool = False,
) -> SubsampledGaussianEvent:
    """Return what a step costs, on a Poisson batch of a rate, or on one of so many rows of a public number of them.

    Parameters
    ----------
    neighbours : {"replace", "add_remove"}
    scale : float
        Standard deviation of the noise on the sum of vectors, over their largest norm.
    rate : float, optional
    batch, population : int, optional
        Without replacement, which goes with replace alone.
    products : float, optional
        That of the noise on the sum of products of each vector with itself, over the square of the norm.
    centred : bool
        Whether `products` is of the covariance of the batch instead, over the square of the norm over `batch`.
    """
    (scale,), centred, sampling = positive(scale=scale), flag("centred", centred), {}
    relation: Any = word("neighbours", neighbours, ("replace", "add_remove"))
    if (rate is None) == (batch is None):
        raise ArgumentError("A batch has a rate, or a number of rows. Give one of them.")
    if products is not None:
        (products,) = positive(products=products)
        scale = ROUNDED / math.hypot(1 / scale, (2 if centred else 1) / products)
    if centred and (products is None or batch is None or not 2 <= batch <= MOST_OF_COVARIANCE):
        raise ArgumentError(f"A covariance has products, and is of a batch of 2 to {MOST_OF_COVARIANCE} rows.")
    if rate is not None:
        sampling = {"sampling": "poisson", "sample_rate": positive(rate=rate)[0]}
    else:
        population = whole("population", population)
        sampling = {"sampling": "without_replacement", "population": population, "batch_size": whole("batch", batch)}
    return SubsampledGaussianEvent(noise_multiplier=scale, neighbours=relation, **sampling)  # type: ignore[arg-type]


@final
class BatchWalk(Once):
    """Noised sums of vectors over secret batches, a fresh one in each of so many steps, which are charged at once.

    Parameters
    ----------
    columns : mapping of str to array
        Rows as they are held, (n_rows,) or (n_rows, k), in memory or mapped from files. Nothing is copied or clamped.
    account : Account
        Of rows, under replace or add_remove.
    rowmap : RowMap
        Of one vector of parameters, float64.
    size : int
        Numbers of a row.
    bound : float
        L2 norm that the vector of a row is shortened to.
    steps : int
    scale, rate, batch, products, centred
        As for `batch_event`.
    label : str
        What the charge is for, public.
    stream : int, optional
        Which of several chains it is: only seeded randomness looks at it.

    Raises
    ------
    BudgetExceeded, ArgumentError
        Before anything is read; nothing is spent.

    Notes
    -----
    **Guarantee.** All steps together have the privacy of so many `batch_event`, whatever the row map and what `walk` is
    given. A row moves a sum by a norm of whole numbers, checked on these. Arithmetic float64: not covered are the last
    bits of normal noise and of waiting times between the rows of a batch.
    """

    def __init__(
        self,
        columns: Mapping[str, Array],
        account: Account,
        rowmap: RowMap,
        *,
        size: int,
        bound: float,
        scale: float,
        steps: int,
        rate: float | None = None,
        batch: int | None = None,
        products: float | None = None,
        centred: bool = False,
        label: str = "kernel",
        stream: int | None = None,
    ) -> None:
        super().__init__()
        (bound, scale), steps = positive(bound=bound, scale=scale), whole("steps", steps)
        self._size = size = whole("size", size, 1, batch_loops.WIDEST)
        rate, products = (None if one is None else positive(number=one)[0] for one in (rate, products))
        batch = None if batch is None else whole("batch", batch)
        held, n_rows = _held(columns)
        event = batch_event(
            account.relation,
            scale,
            rate=rate,
            batch=batch,
            population=None if batch is None else n_rows,  # public: such batches go with replace alone
            products=products,
            centred=centred,
        )
        if type(rowmap) is not RowMap:
            raise ArgumentError("rowmap must be a RowMap, and of no class derived from it: that could keep rows.")
        rowmap.check_columns(held)
        rowmap.of_batches(size)  # refuses other parameters
        self._rowmap, self._rehearsed = rowmap, type(account) is Rehearsal
        self._numbers = _numbers(n_rows, bound, scale, rate, batch, products, centred)
        self._seeded = insecure() is not None
        self._rng = None if self._rehearsed else secure_generator(stream)
        account.charge(repeated(event, steps), label)
        self._left, self._stream = steps, stream
        self._rows = tuple(held[name].values for name in rowmap.types)
        self._room = self._made_room()
        self._types = tuple(map(numba.typeof, (self._rows, *self._room)))

    @property
    def left(self) -> int:
        """Steps that are left; public."""
        return self._left

    @property
    def guarantee(self) -> Literal["exact", "none"]:
        """Class of what comes out: "exact", or "none" on public rows and where a test replaces the noise."""
        return "none" if self._rehearsed or self._seeded or insecure() is not None else "exact"

    @property
    def released(self) -> int:
        """How many numbers a step releases: a sum, and the matrix of products."""
        return self._size + (self._size**2 if self._numbers.coarser else 0)

    def compile(self, ask: Any, take: Any, state: Any) -> None:
        """Compile what `walk` needs, and make no step: nothing is read."""
        self._loop(ask, take, state)(self._rows, *self._room, state, 0, np.random.default_rng(0), self._numbers)

    def walk(self, ask: Any, take: Any, state: Any, steps: int) -> None:
        """Make so many steps of those that are left. A step that fails is paid for.

        Parameters
        ----------
        ask : compiled function of (state, step, parameters)
            Writes the parameters of a step. It is not trusted.
        take : compiled function of (state, step, released)
            Follows the noised sum of a step, behind which the matrix of products stands row by row. It is not trusted.
        state
            Of these two, and of any kind that Numba takes. For a tuple of arrays, numbers and generators, nested
            perhaps, the loop is kept on disk.
        steps : int

        Raises
        ------
        BudgetExceeded
            Nothing is read then.
        """
        steps, loop = whole("steps", steps), self._loop(ask, take, state)
        self._require_here()
        with self._lock:
            if steps > self._left:
                raise BudgetExceeded(f"{steps} steps are asked for, and {self._left} are left. Nothing was read.")
            rng, numbers = self._generator()
            self._left -= steps
            read_rows(lambda: loop(self._rows, *self._room, state, steps, rng, numbers))

    def _generator(self) -> tuple[np.random.Generator, batch_loops.Numbers]:
        """Return what draws batches and noise; on public rows also none of it, where a test says so."""
        if self._rng is None:
            replaced = insecure()
            if replaced is not None and replaced.rng is None:
                return np.random.default_rng(0), self._numbers._replace(noise=0.0, on=0.0, off=0.0)
            self._rng = secure_generator(self._stream)
        return self._rng, self._numbers

    def _loop(self, ask: Any, take: Any, state: Any) -> Any:
        """Return the loop over steps, which is compiled once; there is no row in it."""
        if type(ask) is not CPUDispatcher or type(take) is not CPUDispatcher:
            raise ArgumentError("ask and take must be functions that Numba compiles.")
        types = (*self._types, numba.typeof(state))
        known, key = _LOOPS.setdefault(self._rowmap, {}), (self._size, ask, take, types)
        if key not in known:
            fill, mapped, lanes = self._rowmap.of_batches(self._size)
            known[key] = batch_loops.stepping(fill, mapped, ask, take, lanes, types)
        return known[key]

    def _made_room(self) -> tuple[Any, ...]:
        """Return arrays that the loop writes to."""
        size, numbers, public = self._size, self._numbers, self._rowmap.types
        columns = tuple(np.zeros((BLOCK, *shape), dtype=dtype) for dtype, shape in public.values())
        expected = numbers.batch or math.ceil(numbers.n_rows * -math.expm1(-numbers.waiting))
        places = np.zeros(BLOCK * (1 + 2 * expected // BLOCK), dtype=np.int64)
        keys = np.zeros(2 ** (2 * numbers.batch).bit_length(), dtype=np.int64)
        squares = size * (size + 1) // 2 if numbers.coarser else 0
        sums = tuple(np.zeros(count, dtype=np.int64) for count in (size, size, squares))
        found, given = np.zeros((BLOCK, size)), np.zeros(self._rowmap._wanted[0][1])
        return columns, places, keys, found, given, sums, np.zeros(self.released)


_LOOPS: WeakKeyDictionary[RowMap, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()


def _numbers(
    n_rows: int,
    bound: float,
    scale: float,
    rate: float | None,
    batch: int | None,
    products: float | None,
    centred: bool,
) -> batch_loops.Numbers:
    """Return the numbers of a walk; refuse noise that whole numbers do not hold."""
    noise, square, on, coarser = scale * UNITS, 0.0, 0.0, 0
    if products is not None:
        bits = ROOT_BITS if not centred else min(ROOT_BITS, 31 - (batch or 0).bit_length())
        coarser, times = UNITS >> bits, (batch or 0) - 1 if centred else 1
        square, on = bound**2 / 4.0**bits, products * 4.0**bits * times
        square /= (batch or 0) * times if centred else 1
    if not max(noise, on) <= MOST_NOISE:
        raise ArgumentError(f"The noise of a batch is too large for whole numbers, with scale={scale:g}.")
    if not 1e-150 < bound < 1e150:
        raise ArgumentError(f"bound must lie in (1e-150, 1e150), got {bound!r}.")
    return batch_loops.Numbers(
        n_rows=n_rows,
        poisson=batch is None,
        batch=batch or 0,
        waiting=batch_loops.waiting(rate or 0.0),
        inverse=1 / bound,
        unit=bound / UNITS,
        noise=noise,
        coarser=coarser,
        square=square,
        on=on,
        off=math.nextafter(on * math.sqrt(0.5), math.inf),
        centred=centred,
    )


class _Held(NamedTuple):
    """A column as it is held. **Private**."""

    values: Array
    dtype: str
    shape: tuple[int, ...]


def _held(columns: Mapping[str, Array]) -> tuple[dict[str, _Held], int]:
    """Return columns in a form that compiled code reads, and how many rows they have."""
    found: dict[str, _Held] = {}
    for name, values in dict(columns).items():
        own = np.asarray(values)
        if own.ndim not in (1, 2) or own.dtype.kind not in "biuf":
            raise ArgumentError("A column must be an array of numbers with one or two axes.")
        narrow = own.dtype.kind != "f" or own.dtype.itemsize in (4, 8)
        own = np.ascontiguousarray(own, dtype=own.dtype.newbyteorder("=") if narrow else np.float64)
        found[name] = _Held(own, "float64" if own.dtype.kind == "f" else "int64", own.shape[1:])
    lengths = {len(one.values) for one in found.values()}
    if len(lengths) != 1 or max(lengths) > MOST_ROWS:
        raise ArgumentError(f"A walk needs columns, all of one length, of up to {MOST_ROWS} rows.")
    return found, lengths.pop()
