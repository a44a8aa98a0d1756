"""Models written as formulas, by bambi."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.zoo.kind import Table, kind

COLUMNS = ("x", "z", "y", "count", "yes", "g", "h")


def _built(formula: str, table: Table, **given: Any) -> Any:
    import bambi
    import pandas as pd

    frame = pd.DataFrame({name: table[name] for name in COLUMNS})
    model = bambi.Model(formula, frame, **given)
    model.build()
    return model


@kind("y x")
def formula(table: Table) -> Any:
    """A linear regression as a formula."""
    return _built("y ~ x", table)


@kind("y x")
def formula_with_scale(table: Table) -> Any:
    """A linear regression on a predictor that the formula standardises."""
    return _built("y ~ scale(x)", table)


@kind("y x")
def formula_with_splines(table: Table) -> Any:
    """A B-spline with five degrees of freedom in a formula."""
    return _built("y ~ bs(x, df=5)", table)


@kind("y x")
def formula_with_polynomial(table: Table) -> Any:
    """An orthogonal polynomial in a formula."""
    return _built("y ~ poly(x, 2)", table)


@kind("y x", delta=1e-6)
def formula_with_gaussian_process(table: Table) -> Any:
    """An approximate Gaussian process in a formula."""
    return _built("y ~ 0 + hsgp(x, m=5, c=1.5)", table)


@kind("y g")
def formula_with_categories(table: Table) -> Any:
    """Effects of categories in a formula."""
    return _built("y ~ C(g)", table)


@kind("x h", delta=1e-6)
def formula_with_groups(table: Table) -> Any:
    """A logistic multilevel model as a formula."""
    return _built("yes ~ x + (1|h)", table, family="bernoulli")


@kind(delta=1e-6, bounds={"count": (0, 9), "x": (0, 1), "z": (0, 1)})
def formula_with_offset(table: Table) -> Any:
    """A Poisson regression with an offset in a formula."""
    table = {**table, "z": np.abs(table["z"])}
    return _built("count ~ x + offset(z)", table, family="poisson")
