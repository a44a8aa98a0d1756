"""The errors of NumPy and SciPy, measured with many digits, are at most a tenth of what the rules allow them."""

import mpmath as mp
import numpy as np
import pytensor.scalar.basic as basic
import pytensor.scalar.math as ops
import pytest
from pymc.distributions.dist_math import I0e
from scipy import special

from pymc_dp.intervals import elementary, integrals
from pymc_dp.intervals import special as rules
from tests.intervals.references import REFERENCES, log_ndtr

ARGUMENTS = {
    "around 0": lambda rng: rng.uniform(-3, 3, 40),
    "wide": lambda rng: rng.choice([-1, 1], 40) * 10 ** rng.uniform(-8, 2.8, 40),
    "tail": lambda rng: rng.uniform(-26, 26, 60),
    "positive": lambda rng: 10 ** rng.uniform(-12, 12, 60),
    "near 1": lambda rng: 1 + rng.choice([-1, 1], 40) * 10 ** rng.uniform(-16, -0.4, 40),
    "near 2": lambda rng: 2 + rng.choice([-1, 1], 40) * 10 ** rng.uniform(-16, -0.4, 40),
}
SHAPES = [
    (elementary.exp, basic.Exp),
    (elementary.log, basic.Log),
    (elementary.log1p, basic.Log1p),
    (elementary.sigmoid, ops.Sigmoid),
    (elementary.softplus, ops.Softplus),
    (elementary.log1mexp, ops.Log1mexp),
    (elementary.sinh, basic.Sinh),
    (elementary.cosh, basic.Cosh),
    (rules.gammaln, ops.GammaLn),
    (rules.gamma, ops.Gamma),
    (rules.psi, ops.Psi),
    (rules.trigamma, ops.TriGamma),
    (rules.erf, ops.Erf),
    (rules.erfc, ops.Erfc),
    (rules.erfcx, ops.Erfcx),
    (rules.erfinv, ops.Erfinv),
    (rules.erfcinv, ops.Erfcinv),
    (rules.i0, ops.I0),
    (rules.i1, ops.I1),
    (rules.i0e, I0e),
]


def assert_a_tenth(found, true, allowed, where):
    if abs(true) > 1e-300 and np.isfinite(found):
        assert abs(mp.mpf(found) - true) <= allowed / 10, where


@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize(("shape", "op"), SHAPES)
def test_functions_of_one_variable(shape, op, kind, rng):
    arguments = ARGUMENTS[kind](rng)
    with np.errstate(all="ignore"):
        values = shape.function(arguments)
    with mp.workdps(40):
        for x, found in zip(arguments.tolist(), values.tolist(), strict=True):
            true = REFERENCES[op].function(mp.mpf(x))
            if mp.isfinite(true) and (op is not I0e or x >= 0):
                assert_a_tenth(found, true, shape.relative * abs(true) + shape.absolute, x)


def test_the_normal_distribution_function_and_its_slope(rng):
    with mp.workdps(40):
        for x in rng.uniform(-1e3, 37, 100):
            true = log_ndtr(mp.mpf(x))
            assert_a_tenth(float(special.log_ndtr(x)), true, rules.log_ndtr.relative * abs(true), x)


@pytest.mark.parametrize("kind", ["centre", "tail", "small"])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions(name, kind, rng):
    k = 10 ** rng.uniform(*((-6, 0) if kind == "small" else (-1, 3.5)), 25)
    x = np.maximum(k + np.sqrt(k) * rng.normal(size=25) * (10 if kind == "tail" else 1), k / 100)
    with mp.workdps(40):
        for args in zip(k.tolist(), x.tolist(), strict=True):
            ends = (0, args[1]) if name == "gammainc" else (args[1], mp.inf)
            true = mp.gammainc(args[0], *ends, regularized=True)
            found = getattr(special, name)(*args)
            assert_a_tenth(found, true, integrals.tail_slack(found) * true, args)


@pytest.mark.few(1)
@pytest.mark.parametrize("width", [1, 10])
def test_the_incomplete_beta_function(width, rng):
    a, b = 10 ** rng.uniform(-1, 2.5, 25), 10 ** rng.uniform(-1, 2.5, 25)
    x = np.clip(a / (a + b) + width * rng.normal(size=25) * np.sqrt(a * b / (a + b) ** 3), 1e-9, 1 - 1e-9)
    with mp.workdps(60):
        for args in zip(a.tolist(), b.tolist(), x.tolist(), strict=True):
            true = REFERENCES[ops.BetaInc].function(*map(mp.mpf, args))
            found = special.betainc(*args)
            assert_a_tenth(found, true, integrals.tail_slack(found) * true, args)


def test_bessel_functions_of_any_order(rng):
    with mp.workdps(40):
        for order, x in zip(rng.uniform(0, 100, 30).tolist(), (10 ** rng.uniform(-2, 3, 30)).tolist(), strict=True):
            for name, op in (("ive", ops.Ive), ("kve", ops.Kve)):
                true = REFERENCES[op].function(mp.mpf(order), mp.mpf(x))
                found = float(getattr(special, name)(order, x))
                if abs(true) < 1e300:
                    assert_a_tenth(found, true, integrals.BESSEL_ERROR * true, (order, x))
