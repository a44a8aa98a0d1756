"""Observed variables whose rows have bounded log-likelihoods, and how to tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.logprob.abstract import MeasurableOp, _logprob
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter, out2in

from pymc_dp.inspection.row_density import density, guarded
from pymc_dp.inspection.rows import Array


class ClampedRV(MeasurableOp, Op):
    """A random variable with the draws of another, and a log-likelihood per row that is clipped to [low, high].

    Parameters
    ----------
    low, high : float
        In nats, per row.
    """

    __props__ = ("low", "high")
    _print_name = ("Clamped", "\\operatorname{Clamped}")
    view_map = {0: [0]}  # noqa: RUF012  (PyTensor's own declaration)

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def make_node(self, rv: Variable) -> Apply:
        """Wrap a random variable."""
        return Apply(self, [rv], [rv.type()])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Shape of what is wrapped."""
        return [shapes[0]]

    def perform(self, node: Apply, inputs: Sequence[Array], outputs: Any) -> None:
        """Draw what is wrapped."""
        outputs[0][0] = inputs[0]

    def clip(self, logp: Variable) -> Variable:
        """Clip the sum of every row of log-densities; what is not a number becomes the low end."""
        rows = logp.sum(axis=tuple(range(1, logp.type.ndim)))
        low, high = (pt.constant(np.float64(end)) for end in (self.low, self.high))
        return pt.switch(pt.isnan(rows), low, pt.clip(rows, low, high))


@_logprob.register(ClampedRV)
def _clipped(op: ClampedRV, values: Sequence[Variable], rv: Variable, **kwargs: Any) -> Variable:
    # Checks that hold for all rows at once would let one row turn off the others.
    return op.clip(guarded(density(rv, values[0])))


@node_rewriter([ClampedRV])
def _drawn(fgraph: Any, node: Apply) -> list[Variable]:
    return [node.inputs[0]]


# For compiled draws; PyMC derives log-densities by other rewrites, before these.
optdb.register("draw_clamped", out2in(_drawn), "fast_run", "fast_compile", position=0.05)


def clamped(model: Model) -> dict[str, tuple[float, float]]:
    """Return the observed variables whose rows are clamped, and to which log-likelihoods (in nats, per row)."""
    return {
        str(rv.name): (rv.owner.op.low, rv.owner.op.high)
        for rv in model.observed_RVs
        if isinstance(rv.owner.op, ClampedRV)
    }


def clamped_facts(limits: Mapping[str, tuple[float, float]]) -> list[tuple[str, str]]:
    """Say for the trace of a sampler what the limits that `clamped` returned make of its target."""
    return [
        ("target", f"log-likelihood of a row of {name} clamped to ({low:g}, {high:g}): a pseudo-posterior")
        for name, (low, high) in limits.items()
    ]


def unclamped(rv: Variable) -> Variable:
    """Return the random variable itself, or that which was clamped."""
    return rv.owner.inputs[0] if isinstance(rv.owner.op, ClampedRV) else rv


__all__ = ["ClampedRV", "clamped", "clamped_facts", "unclamped"]
