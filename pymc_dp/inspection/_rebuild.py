"""Clone a PyTensor graph with some of its variables replaced, types re-inferred where they change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import toposort
from pytensor.tensor.special import LogSoftmax, LogSumExp, Softmax, log_softmax, logsumexp, softmax


def rebuild(
    outputs: Sequence[Variable], replace: Mapping[Variable, Variable], *, clone: bool = False
) -> tuple[list[Variable], dict[Variable, Variable]]:
    """Return `outputs` computed from replaced variables, and the map from old to new.

    Parameters
    ----------
    outputs : sequence of Variable
    replace : mapping of Variable to Variable
        The graph above a replaced variable is not visited.
    clone : bool
        Clone every node, also those that depend on nothing replaced.

    Notes
    -----
    Leaves that are not replaced are shared with the original graph, never copied.
    """
    memo = dict(replace)
    for node in toposort(list(outputs), blockers=list(replace)):
        if all(out in memo for out in node.outputs):
            continue
        inputs = [memo.get(var, var) for var in node.inputs]
        if not clone and all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
            continue
        new_node = applied(node, inputs)
        for old, new in zip(node.outputs, new_node.outputs, strict=True):
            if old not in memo:
                new.name = old.name
                memo[old] = new
    return [memo.get(var, var) for var in outputs], memo


def applied(node: Apply, inputs: list[Variable]) -> Apply:
    """Apply the operation of a node to other inputs, with output types as narrow as they allow."""
    if isinstance(node.op, Softmax | LogSoftmax):  # its inner graph is made for the types of its first inputs
        function = softmax if isinstance(node.op, Softmax) else log_softmax
        return function(inputs[0], axis=node.op.axis).owner
    if isinstance(node.op, LogSumExp):
        return logsumexp(inputs[0], axis=node.op.axis).owner
    return node.clone_with_new_inputs(inputs, strict=False)
