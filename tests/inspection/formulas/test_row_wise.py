"""Formulas are limited to what is known to work row by row."""

import bambi
import formulae
import numpy as np
import pytest

from pymc_dp.errors import UnsupportedModelError
from tests.inspection.formulas.models import bounded, table

SHIFT = 3.0
MIXING = {
    "y ~ np.cumsum(x)": "np.cumsum(...)",
    "y ~ np.maximum(x, SHIFT)": "SHIFT is no column",
    "y ~ {x - x.mean()}": "x.mean",
    "y ~ np.log(w, w)": "known with 1 argument",
    "y ~ np.exp(poly(x, 1))": "poly(...)",
    "y ~ {x / w}": "np.divide",
    "y ~ bs(x, knots=SHIFT)": "no number or label",
    "y ~ C(g, Sum)": "no number or label",
    "y ~ exp(x)": "not NumPy's function",
}


def exp(x):
    return x - x.mean()


@pytest.mark.parametrize("formula", MIXING)
def test_what_may_mix_rows_is_refused(formula, monkeypatch):
    env = formulae.environment.Environment([globals()])
    source = bambi.Model("y ~ x", table(0).assign(Sum=1))
    source.formula = bambi.Formula(formula)  # what it cannot build itself, too
    source.parameters["mu"].design.env = env.with_outer_namespace({"np": np})
    monkeypatch.setattr(bambi, "Model", lambda *args, **kwargs: source)
    with pytest.raises(UnsupportedModelError) as refused:
        bounded(formula)
    assert MIXING[formula] in str(refused.value)
