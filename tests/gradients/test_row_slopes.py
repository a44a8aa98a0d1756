"""Derivatives of one row are right, and over many rows leave no loop over them."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import toposort
from pytensor.tensor.basic import Split
from pytensor.tensor.symbolic import FusibleSymbolicOpDerivative

from pymc_dp.gradients.row_slopes import joined, scores_of, slopes_of_entries
from pymc_dp.inspection.interpreted import plain_function

X = np.array([0.3, -1.2, 0.7])


def test_scores_are_derivatives_by_all_parts_without_graphs_within_graphs():
    one, two = pt.vector("one", shape=(3,)), pt.scalar("two")
    whole = pt.concatenate([one, two[None], -one[:2]])
    graph = pt.logsumexp(whole) + (whole**2).sum()
    (scores,) = scores_of([graph], [one, two])
    assert not any(isinstance(node.op, Split | FusibleSymbolicOpDerivative) for node in toposort([scores]))
    plain = joined(pytensor.grad(graph, [one, two]))
    found, expected = plain_function([one, two], [scores, plain])(X, 0.4)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("length", [3, None])
def test_slopes_of_entries_are_the_rows_of_a_jacobian(length):
    x = pt.vector("x", shape=(length,))
    slopes = slopes_of_entries(pt.tanh(x) * x.sum(), 3, [x])
    found = plain_function([x], pt.stack([joined(one) for one in slopes]))(X)
    expected = np.diag((1 - np.tanh(X) ** 2) * X.sum()) + np.tanh(X)[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
