"""Pairs of tables at any distance of each other, and rows as public nodes have them."""

import numpy as np


def tables(columns, rng, count):
    """Pairs of tables: at corners and anywhere, many rows alike; one row moved, or several, by very little or a lot."""
    for turn in range(count):
        one, two = {}, {}
        n = int(rng.choice([1, 2, 30]))
        moved = rng.random(n) < (1.0 if turn % 3 == 0 else 0.0)
        moved[rng.integers(n)] = True
        size = 10.0 ** rng.uniform(-6, 0)
        for column in columns:
            low, high = column.bounds
            values = np.where(rng.random(n) < 0.6, rng.choice([low, high]), rng.uniform(low, high, n))
            other = np.clip(values + size * (high - low) * rng.choice([-1, 1], n), low, high)
            if turn % 4 == 0:
                other = low + high - values
            if column.integer:
                values, other = np.rint(values), np.clip(np.rint(other), np.rint(values) - 3, np.rint(values) + 3)
            stays = rng.random() < 0.3
            one[column.name] = values.astype(column.leaf.type.dtype)
            two[column.name] = np.where(moved & (not stays), other, values).astype(column.leaf.type.dtype)
        yield one, two


def used(nodes, rows):
    """Rows as nodes have them: real numbers on a grid of their own, written out once more."""
    axes, found = iter(nodes.axes), []
    for row in rows:
        flat = row.reshape(len(row), -1).astype(float)
        for entry in range(flat.shape[1]):
            axis = next(axes)
            if axis.bits is not None:
                grid = axis.step / 2**axis.bits
                flat[:, entry] = axis.low + np.rint((flat[:, entry] - axis.low) / grid) * grid
        found.append(flat.reshape(row.shape))
    return found


def as_used(several, table):
    """A table, one array per name, as several sets of nodes of its columns have it."""
    found = {}
    for nodes in several:
        columns = [axis.column for axis in nodes.axes if axis.entry == 0]
        rows = used(nodes, [table[column.name] for column in columns])
        found |= {column.name: row for column, row in zip(columns, rows, strict=True)}
    return found
