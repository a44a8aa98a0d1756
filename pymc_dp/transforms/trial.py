"""A private model is tried on simulated releases before anything is charged: what will be sampled has to be finite.

A budget that buys a density without a gradient is lost without a word: NUTS runs, and every draw diverges. So density
and gradient are evaluated first, at the start point and at points from the middle of the prior. Nothing here depends on
a row: releases are made up from the plan.

Two graphs that differ in the values they hold alone: a function compiled for one then serves the other.

A mode in which NumPy evaluates a graph as it is: for functions that are called a few dozen times.

Most of a compilation is spent on rewriting a graph; what is called a few times is sooner evaluated node by node.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import process_time
from typing import Any

import numpy as np
import pytensor
from pymc import Model
from pymc.blocking import DictToArrayBijection
from pymc.model.core import ValueGradFunction
from pytensor.compile import SharedVariable, optdb
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import node_rewriter, out2in
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.scalar.basic import Add, Mul
from pytensor.tensor.elemwise import Elemwise

from pymc_dp.errors import PosteriorWarning, UnsupportedModelError
from pymc_dp.inspection.interpreted import NUMPY
from pymc_dp.inspection.rows import Array
from pymc_dp.nuts_samplers import chosen
from pymc_dp.release.paid import PACKAGE
from pymc_dp.release.tables import ReleasePlan
from pymc_dp.simulation.prior import Point, prior_points
from pymc_dp.transforms.jax_trial import asked_for, devices_for, require_jax
from pymc_dp.transforms.simulated_release import simulated_release
from pymc_dp.transforms.trial_outcomes import FAILURES, Outcome, problem_of, summary_of

Pairs = list[tuple[SharedVariable, SharedVariable]]


def shared_pairs(graph: Variable, other: Variable) -> Pairs | None:
    """Return what the one holds beside what the other holds; None where the graphs differ in more than that.

    Parameters
    ----------
    graph, other : Variable

    Returns
    -------
    list of (SharedVariable, SharedVariable) or None
        Once each.
    """
    found: dict[Variable, Variable] = {}
    waiting: list[tuple[Variable, Variable]] = [(graph, other)]
    while waiting:
        one, two = waiting.pop()
        if one in found:
            if found[one] is not two:
                return None
            continue
        if not _alike(one, two):
            return None
        if isinstance(one, Constant):
            continue  # PyTensor keeps some numbers as one object, and others not
        found[one] = two
        if one.owner is not None:
            waiting.extend(zip(one.owner.inputs, two.owner.inputs, strict=True))
    return [(one, two) for one, two in found.items() if isinstance(one, SharedVariable)]


def _alike(one: Variable, two: Variable) -> bool:
    """Whether two variables come from the same operation, are equal constants, or hold or stand for values alike."""
    if one.owner is not None and two.owner is not None:
        same = one.owner.op == two.owner.op and one.index == two.index
        return same and len(one.owner.inputs) == len(two.owner.inputs)
    if one.owner is not two.owner or one.type != two.type:
        return False
    if isinstance(one, Constant):
        return isinstance(two, Constant) and _equal(one, two)
    if isinstance(one, SharedVariable):
        return isinstance(two, SharedVariable)
    return not isinstance(two, Constant | SharedVariable) and one.name == two.name


def _equal(one: Constant, two: Constant) -> bool:
    first, second = one.data, two.data
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return bool(first == second) or (first != first and second != second)


MOST = 16
"""Operands of one operation; NumPy takes 32."""


@node_rewriter([Elemwise])
def _in_parts(fgraph: Any, node: Apply) -> list[Variable] | None:
    """Add up, or multiply, many terms in several steps."""
    inputs = list(node.inputs)
    if not isinstance(node.op.scalar_op, Add | Mul) or len(inputs) <= MOST:
        return None
    parts = [inputs[start : start + MOST] for start in range(0, len(inputs), MOST)]
    return [node.op(*(part[0] if len(part) == 1 else node.op(*part) for part in parts))]


optdb.register("pymc_dp_operations_in_parts", out2in(_in_parts), "pymc_dp_interpreted", position=48)
INTERPRETED = Mode(linker="py", optimizer=RewriteDatabaseQuery(include=["merge", "pymc_dp_interpreted"]))


RELEASES = 3
POINTS, FEWEST = 50, 4
SECONDS = 3.0
"""Of CPU time after which no more points are tried than the fewest: some densities take seconds each."""
SEED = 20_220_718
OTHER_FUNCTIONS = ("compile_kwargs", "backend")
"""Arguments with which PyMC compiles another function than that of the trial."""

Build = Callable[[Mapping[str, Array]], Model]
Tried = tuple[Any, Point]


class Trial:
    """One private model, tried before it is paid for.

    Parameters
    ----------
    compiled : bool
        Whether PyMC's own NUTS runs afterwards: then the function that it will call is compiled and tried here, and
        `lent` to it, so that nothing is compiled twice. Else NumPy evaluates the same graph, once for all models that
        differ in their release alone.
    by_jax : str
        The argument by which JAX will evaluate the density, where one was given.
    devices : int
        How many devices of JAX that takes.
    """

    def __init__(self, *, compiled: bool = False, by_jax: str = "", devices: int = 1) -> None:
        self._compiled, self._by_jax, self._devices = compiled, by_jax, devices
        self._model: Model | None = None
        self._graph: Any = None
        self._start: Point = {}
        self._function: Any = None

    @classmethod
    def before_sampling(
        cls, options: Mapping[str, Any], *, chains: int | None = None, cores: int | None = None
    ) -> Trial:
        """Return the trial for ``pm.sample`` with these arguments: of its own function, where it compiles one."""
        own = chosen(options) == "pymc" and not any(options.get(name) for name in OTHER_FUNCTIONS)
        return cls(compiled=own, by_jax=asked_for(options), devices=devices_for(options, chains, cores))

    def run(self, plan: ReleasePlan, build: Build) -> None:
        """Try a planned release on simulated ones.

        Parameters
        ----------
        plan : ReleasePlan
        build : callable
            From the tables of a release to a private model.

        Raises
        ------
        UnsupportedModelError
            If the density or its gradient is not finite at the start point for most simulated releases, or at more than
            half of the points.

        Warns
        -----
        PosteriorWarning
            If it is not finite at some of them.
        """
        rng = np.random.default_rng(SEED)
        first = build(simulated_release(plan, rng))
        if self._by_jax:
            require_jax(first, self._by_jax, self._devices)
        if not self._take(first):
            return
        points = self._points(rng)
        outcomes = self._outcomes([first], points)
        if not all(outcome.finite for outcome in outcomes):  # others show whether that is due to this one release
            others = [build(simulated_release(plan, rng)) for _ in range(RELEASES - 1)]
            outcomes = self._outcomes([first, *others], points)
        if problem := problem_of(first, outcomes):
            raise UnsupportedModelError([problem])
        self._close(first, outcomes)

    def check(self, model: Model) -> None:
        """Try a private model that was paid for already, as it is.

        Warns
        -----
        PosteriorWarning
            If the density or its gradient is not finite at the start point, or at some points of the prior.
        """
        if self._take(model):
            self._close(model, self._outcomes([model], self._points(np.random.default_rng(SEED))))

    @contextmanager
    def lent(self, private: Model) -> Iterator[None]:
        """Let PyMC find the function that was tried where it would compile the same one for `private`."""
        own = private.logp_dlogp_function

        def once(**settings: Any) -> Any:
            vars(private).pop("logp_dlogp_function", None)  # no other process is to be sent it with the model
            function = self._function_for(private) if settings == {"ravel_inputs": True} else None
            return own(**settings) if function is None else function

        if self._compiled and self._function is not None:
            vars(private)["logp_dlogp_function"] = once
        try:
            yield
        finally:
            vars(private).pop("logp_dlogp_function", None)
            self._model = self._graph = self._function = None

    # --- internals ----------------------------------------------------------------------------------------------------

    def _take(self, model: Model) -> bool:
        """Take the density of a model for what is tried; False if there is nothing to try, or nothing new."""
        if not model.continuous_value_vars:
            return False
        # PyMC compiles several functions where some variables are discrete, and none of them is this one.
        self._compiled = self._compiled and not model.discrete_value_vars
        self._model, self._graph, self._start = model, model.logp(), model.initial_point(0)
        return self._compiled or not any(_same(tried, self._graph, self._public) for tried in _PASSED)

    def _points(self, rng: np.random.Generator) -> list[Point]:
        """Make the function, and return points of the prior."""
        model = self._model
        assert model is not None
        # Of shapes that are known, where dims would leave them open: else numba compiles what checks and cuts them. And
        # a clone, because PyMC simplifies it in place.
        shapes = {value: self._start[value.name].shape for value in model.value_vars}
        values = {value: value.type.clone(shape=shape)(value.name) for value, shape in shapes.items()}
        density = clone_replace(self._graph, values, rebuild_strict=False)
        free = [values[value] for value in model.continuous_value_vars]
        fixed = {values[value]: self._start[value.name] for value in model.discrete_value_vars}
        settings = {} if self._compiled else {"mode": INTERPRETED}
        with pytensor.config.change_flags(**({} if self._compiled else {"cxx": NUMPY["cxx"]})):
            self._function = ValueGradFunction(
                [density], free, fixed, model=model, initial_point=self._start, ravel_inputs=True, **settings
            )
        return prior_points(model, POINTS, rng, self._start)

    def _outcomes(self, models: Sequence[Model], points: Sequence[Point]) -> list[Outcome]:
        """Evaluate the density of every model at its start point, and at its part of the points."""
        found, begun = list[Outcome](), process_time()
        for place, other in enumerate(models):
            if self._function_for(other) is None:
                continue  # its constants are others, so that it would have to be compiled anew
            start = self._start if other is self._model else other.initial_point(0)
            found.append(self._outcome(start, at_start=True))
            for count, point in enumerate(points[place :: len(models)]):
                if count < FEWEST or process_time() < begun + SECONDS:
                    found.append(self._outcome(point, at_start=False))
        return found

    @property
    def _public(self) -> Point:
        """What the density depends on beside its graph and the release: the start point and public data."""
        assert self._model is not None
        return {**self._start, **{f"data {var.name}": np.asarray(var.get_value()) for var in self._model.data_vars}}

    def _function_for(self, model: Model) -> Any:
        """Return the function with the values that a model holds; None where the model has another function."""
        if model is not self._model:
            pairs = shared_pairs(self._graph, model.logp())
            if pairs is None:
                return None
            for own, other in pairs:
                own.set_value(other.get_value())
        return self._function

    def _outcome(self, point: Point, *, at_start: bool) -> Outcome:
        assert self._model is not None
        values = self._model.continuous_value_vars
        flat = DictToArrayBijection.map({value.name: point[value.name] for value in values})
        self._function.set_extra_values(point)
        try:
            with np.errstate(all="ignore"):
                density, slopes = self._function(flat)
        except FAILURES:
            return Outcome(at_start=at_start, point=point, finite=False)
        if not np.isfinite(density):
            return Outcome(at_start=at_start, point=point, finite=False)
        ends = np.cumsum([point[value.name].size for value in values])[:-1]
        names = tuple(
            str(self._model.values_to_rvs[value].name)
            for value, part in zip(values, np.split(slopes, ends), strict=True)
            if not np.isfinite(part).all()
        )
        return Outcome(at_start=at_start, point=point, finite=not names, names=names)

    def _close(self, model: Model, outcomes: Sequence[Outcome]) -> None:
        """Remember a model that is finite everywhere; warn of any other."""
        text = summary_of(model, outcomes)
        if text is None:
            _PASSED.append((self._graph, self._public))
        else:
            warnings.warn(text, PosteriorWarning, skip_file_prefixes=(PACKAGE,))


_PASSED: deque[Tried] = deque(maxlen=16)
"""Densities that were finite everywhere, with what they were tried at: nobody waits twice for the same answer."""


def _same(tried: Tried, graph: Any, public: Point) -> bool:
    before = tried[1]
    return (
        before.keys() == public.keys()
        and all(np.array_equal(before[name], public[name]) for name in public)
        and shared_pairs(tried[0], graph) is not None
    )


__all__ = ["INTERPRETED", "Trial", "shared_pairs"]
