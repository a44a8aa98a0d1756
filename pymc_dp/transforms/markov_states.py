"""Hidden states that follow a Markov chain along their last axis: one chain per entry of the axes before."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Discrete
from pymc.distributions.shape_utils import get_support_shape_1d, rv_size_is_none
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dp.errors import ArgumentError

NEAR_ONE = 1e-5
"""How far from 1 probabilities may add up to, as in PyMC."""


class MarkovStatesRV(RandomVariable):
    """Random variable with parameters (start, transition, steps), read from a graph by ``op.dist_params(node)``."""

    name = "markov_states"
    signature = "(k),(k,k),()->(t)"
    dtype = "int64"
    _print_name = ("MarkovStates", "\\operatorname{MarkovStates}")

    def _supp_shape_from_params(self, dist_params: Any, param_shapes: Any = None) -> tuple[Any, ...]:
        return (_common(dist_params[2], 0),)

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, start: Any, transition: Any, steps: Any, size: Any) -> Any:
        """Draw chains of the last axis."""
        start, transition, steps = _common(start, 1), _common(transition, 2), _common(steps, 0)
        shape = () if size is None else tuple(size)
        states = np.empty((*shape, int(steps)), dtype=np.int64)
        given = np.broadcast_to(start, (*shape, start.shape[-1]))
        for t in range(int(steps)):
            below = np.cumsum(given, axis=-1)
            uniform = rng.random((*shape, 1)) * below[..., -1:]
            states[..., t] = (uniform >= below[..., :-1]).sum(axis=-1)
            given = transition[states[..., t]]
        return states


class MarkovStates(Discrete):
    r"""Whole-numbered states 0..K-1, each drawn given the one before it along the last axis.

    .. math:: P(z_1, \dots, z_T) = \pi_{z_1} \prod_{t=2}^T A_{z_{t-1}, z_t}

    ========  ==============================================================
    Support   :math:`\{0, \dots, K-1\}^T`
    Mean      no closed form
    ========  ==============================================================

    Parameters
    ----------
    name : str
        Not for ``MarkovStates.dist``.
    start : (n_states,) array
        Probabilities of the first state, those of all chains.
    transition : (n_states, n_states) array
        Probabilities of the next state, in the row of the present one.
    steps : int, optional
        Length of a chain; the last of dims or shape by default. All axes before it count independent chains.
    **kwargs
        As for every PyMC distribution: dims, shape, initval...

    Raises
    ------
    ArgumentError
        If a parameter has more or fewer axes, or the length of a chain is not known.

    Notes
    -----
    A hidden Markov model indexes the parameters of its likelihood by the state of a row's cell,
    ``profile[state[region, month]]``. The columns region and month are public or private; the states are parameters.
    ``dp.TemperedGibbs`` draws all of them at once where it holds rows, and with the transitions summed out on a model
    that ``dp.privatize`` made.

    **Guarantee.** None: a prior.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), appendix E.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model(coords={"region": ["A", "B"], "month": range(5)}):
    ...     state = MarkovStates("state", [1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], dims=("region", "month"))
    >>> pm.draw(state, random_seed=1)
    array([[0, 1, 0, 1, 0],
           [0, 1, 0, 1, 0]])
    """

    rv_op = MarkovStatesRV()

    def __new__(cls, name: str, *args: Any, steps: Any = None, **kwargs: Any) -> Any:
        """Register a variable in the model of the context; its dims say how long a chain is."""
        dims = kwargs.get("dims")
        named = (dims,) if isinstance(dims, str) else dims
        steps = get_support_shape_1d(support_shape=steps, shape=None, dims=named, observed=kwargs.get("observed"))
        return super().__new__(cls, name, *args, steps=steps, **kwargs)

    @classmethod
    def dist(cls, start: Any, transition: Any, *, steps: Any = None, **kwargs: Any) -> TensorVariable:
        """Return unnamed states."""
        first, following = pt.as_tensor(start, dtype="floatX"), pt.as_tensor(transition, dtype="floatX")
        if (first.type.ndim, following.type.ndim) != (1, 2):
            raise ArgumentError(
                f"start and transition of Markov states must have one axis and two, got {first.type.ndim} and "
                f"{following.type.ndim}. All chains share them; give groups with their own a variable each."
            )
        steps = get_support_shape_1d(support_shape=steps, shape=kwargs.get("shape"))
        if steps is None:
            raise ArgumentError("The length of a chain of states is not known. Give dims, shape or steps.")
        import_module("pymc_dp.transforms.draws_numba")  # how compiled models draw
        return super().dist([first, following, pt.as_tensor(steps, dtype="int64", ndim=0)], **kwargs)

    def support_point(rv, size, start, transition, steps):  # type: ignore[no-untyped-def]
        """Return the state that is most probable at the start, everywhere."""
        shape = [_common(steps, 0)] if rv_size_is_none(size) else pt.concatenate([size, [_common(steps, 0)]])
        return pt.full(shape, pt.argmax(_common(start, 1))).astype("int64")

    def logp(value, start, transition, steps):  # type: ignore[no-untyped-def]
        """Return the log-probability of each chain."""
        start, transition = _common(start, 1), _common(transition, 2)
        count = transition.shape[-1]
        inside = pt.all((value >= 0) & (value < count), axis=-1)
        safe = pt.clip(value, 0, count - 1).astype("int64")
        first, moves = pt.log(start)[safe[..., 0]], pt.log(transition)[safe[..., :-1], safe[..., 1:]]
        return check_parameters(
            pt.switch(inside, first + moves.sum(axis=-1), -np.inf),
            start >= 0,
            transition >= 0,
            pt.abs(start.sum() - 1) < NEAR_ONE,
            pt.abs(transition.sum(axis=-1) - 1) < NEAR_ONE,
            msg="probabilities >= 0, with a sum of 1",
        )


def _common(parameter: Any, ndim: int) -> Any:
    """Take a parameter out of the axes of length 1 that PyTensor adds for the chains that share it."""
    return parameter[(0,) * (parameter.ndim - ndim)]


__all__ = ["MarkovStates"]
