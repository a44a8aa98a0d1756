"""Jumps move a pair of coordinates, as often one way as the other."""

import numpy as np

from pymc_dp.step_methods.augmentation.rows import jump


def test_jumps_move_a_pair_by_its_widths(rng):
    point = {"a": np.zeros((2, 2)), "k": np.array(3), "b": np.array(0.0)}
    widths = {"a": np.full((2, 2), 1e-3), "b": 1e3}
    moves = []
    for _ in range(4000):
        new = jump(rng, point, ["a", "b"], widths)
        assert list(new) == list(point) and new["k"] == 3 and not point["a"].any()
        moves.append(np.append(new["a"].ravel(), new["b"]))
    moves = np.array(moves)
    assert (np.count_nonzero(moves, axis=1) == 2).all()
    sizes = np.abs(moves).max(axis=0)
    assert (sizes[:4] < 1).all() and sizes[4] > 100
    signs = np.sign(moves).sum(axis=0)
    assert (np.abs(signs) < 5 * np.sqrt(4000 * 0.4)).all()


def test_one_coordinate_is_moved_alone(rng):
    new = jump(rng, {"a": np.array(1.0)}, ["a"], {"a": 2.0})
    assert new["a"] != 1 and new["a"].shape == ()
