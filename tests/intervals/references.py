"""The functions of the scalar operations with many digits, and what arguments to try them at."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import pytensor.scalar.basic as basic
import pytensor.scalar.math as special
from pymc.distributions.dist_math import I0e, I1e

INF = math.inf
NAN_VALUE = mp.nan
DIGITS = 60

SIZES = (0, 1e-300, 1e-5, 0.3, 1, 1.5, 2, 3, 7.5, 40, 1e3)
ANY = (*SIZES, *(-size for size in SIZES))
WIDE = (*ANY, 1e15, -1e15, 1e308, -1e308, INF, -INF)
WHOLE = tuple(value for value in ANY if abs(value) != 1e-300)
POSITIVE = (0, 1e-300, 1e-9, 0.2, 1, 1.4616321449683623, 1.5, 2, 2.5, 10, 150, 1e4, 1e17, 1e300, INF)
COUNTS = (1e-9, 0.2, 1, 1.5, 2, 10, 150, 1e4)
SHAPES = (0.2, 1, 1.5, 2, 10, 150)
UNIT = (0, 1e-300, 1e-6, 0.1, 0.5, 0.75, 0.999, 1 - 2**-53, 1)
SIGNED_UNIT = (*UNIT, *(-value for value in UNIT))
TRUTH = (0, 1)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The function itself, where the ends of boxes are taken from per argument, and how many boxes to draw."""

    function: Callable
    pools: tuple = (WIDE,)
    boxes: int = 80
    digits: int = DIGITS


def within(valid, function):
    """The function where it is defined, else NaN."""
    return lambda *args: function(*args) if valid(*args) else NAN_VALUE


def log(x):
    return -mp.inf if x == 0 else mp.log(x) if x > 0 else NAN_VALUE


def log_share(x):
    return mp.log1p(x / mp.sqrt(1 + x * x))


def xlogy(x, y, logarithm=mp.log, start=0):
    return mp.mpf(0) if x == 0 else NAN_VALUE if y < start else mp.inf * -x if y == start else x * logarithm(y)


def erfcx(x):
    if x < 1e7:
        return mp.exp(x * x) * mp.erfc(x)
    square = 2 * x * x
    return (1 - 1 / square + 3 / square**2 - 15 / square**3) / (x * mp.sqrt(mp.pi))


def log_ndtr(x):
    scaled = -x / mp.sqrt(2)
    return mp.log1p(-mp.erfc(min(-scaled, 1e7)) / 2) if x > 0 else mp.log(erfcx(scaled) / 2) - scaled * scaled


def log_power(x, exponent):
    if x < 0:
        return NAN_VALUE
    return exponent * mp.log(x) if x > 0 else mp.mpf(0) if exponent == 0 else -mp.inf


def log1mexp(x):
    return log(-mp.expm1(x)) if x > -1 else mp.log1p(-mp.exp(x))


def power(x, y):
    if x > 0:
        return mp.power(x, y)
    if x == 0:
        return mp.mpf(int(y == 0)) if y >= 0 else mp.inf
    return mp.power(x, int(y)) if y == mp.floor(y) else NAN_VALUE


def quotient(x, y):
    """Undefined for the divisor 0, the sign of which is unknown."""
    return x / y if y else NAN_VALUE


def floor_quotient(x, y):
    return mp.floor(x / y) if y else NAN_VALUE


def clip(x, least, most):
    return least if x < least else most if x > most else x


def angle(y, x):
    return mp.atan2(y, x)


def half_away(x):
    return mp.sign(x) * mp.floor(abs(x) + mp.mpf("0.5"))


def owens_t(h, a):
    if h == 0:
        return mp.atan(a) / (2 * mp.pi)
    # Where exp(-(h t)^2 / 2) is negligible nothing is added.
    end = mp.sign(a) * min(abs(a), 12 / abs(h))
    nodes = [end * step / 8 for step in range(9)]
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), nodes) / (2 * mp.pi)


def beta_distribution(a, b, x):
    if x > 1:
        return NAN_VALUE
    if x > a / (a + b):
        return 1 - beta_distribution(b, a, 1 - x)
    scale = mp.exp(a * mp.log(x) + b * mp.log1p(-x)) / (a * mp.beta(a, b)) if x else mp.mpf(0)
    term = total = mp.mpf(1)
    for n in itertools.count():
        term *= x * (a + b + n) / (a + 1 + n)
        if term < mp.eps * total:
            return scale * total
        total += term


def gamma_distribution(k, x):
    return min(mp.gammainc(k, 0, x, regularized=True), mp.mpf(1))


def gamma_survival(k, x):
    if x > 2 * k + 1e4:
        # An upper bound below 1e-1000; mpmath does not converge.
        return mp.exp(k * mp.log(x) - x - mp.loggamma(k))
    return min(mp.gammainc(k, x, mp.inf, regularized=True), mp.mpf(1))


def root(function, rising, low, high):
    """Where a monotone function is 0, by bisection on a logarithmic scale."""
    low, high = mp.log(low), mp.log(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(mp.exp(middle)) < 0) == rising else (low, middle)
    return mp.exp((low + high) / 2)


def comparison(compare):
    return Reference(function=lambda x, y: mp.mpf(int(compare(x, y))), pools=(WIDE, WIDE))


def truth_table(function, n_inputs=2):
    return Reference(function=lambda *args: mp.mpf(int(function(*map(bool, args)))), pools=(TRUTH,) * n_inputs)


def is_truth(x):
    return mp.mpf(int(x))


REFERENCES = {
    basic.Add: Reference(function=lambda x, y, z: x + y + z, pools=(WIDE,) * 3, digits=700),
    basic.Sub: Reference(function=lambda x, y: x - y, pools=(WIDE,) * 2, digits=700),
    basic.Mul: Reference(function=lambda x, y, z: x * y * z, pools=(WIDE,) * 3, digits=700),
    basic.TrueDiv: Reference(function=quotient, pools=(WIDE,) * 2),
    basic.Neg: Reference(function=lambda x: -x),
    basic.Reciprocal: Reference(function=lambda x: quotient(mp.mpf(1), x)),
    basic.Sqr: Reference(function=lambda x: x * x),
    basic.Identity: Reference(function=lambda x: x),
    basic.Cast: Reference(function=lambda x: x),
    basic.Second: Reference(function=lambda x, y: y, pools=(WIDE,) * 2),
    basic.Sqrt: Reference(function=within(lambda x: x >= 0, mp.sqrt)),
    basic.Log: Reference(function=log),
    basic.Log2: Reference(function=lambda x: log(x) / mp.log(2)),
    basic.Log10: Reference(function=lambda x: log(x) / mp.log(10)),
    basic.Log1p: Reference(function=lambda x: mp.log1p(x) if x > -1 else log(1 + x), pools=((*WIDE, -1 + 2**-53),)),
    basic.Exp: Reference(function=mp.exp, pools=((*WIDE, 709, 710, -745, -746),)),
    basic.Exp2: Reference(function=lambda x: mp.power(2, x)),
    basic.Expm1: Reference(function=mp.expm1),
    special.Sigmoid: Reference(function=lambda x: 1 / (1 + mp.exp(-x)), pools=((*WIDE, 800, -800),)),
    special.Softplus: Reference(function=lambda x: mp.log1p(mp.exp(x)), pools=((*WIDE, 800, -800),)),
    special.Log1mexp: Reference(function=within(lambda x: x <= 0, log1mexp)),
    basic.Sinh: Reference(function=mp.sinh),
    basic.Cosh: Reference(function=mp.cosh),
    basic.Tanh: Reference(function=mp.tanh),
    basic.ArcSinh: Reference(function=mp.asinh),
    basic.ArcCosh: Reference(function=within(lambda x: x >= 1, mp.acosh)),
    basic.ArcTanh: Reference(
        function=within(lambda x: abs(x) <= 1, lambda x: mp.atanh(x) if abs(x) < 1 else x * mp.inf),
        pools=((*SIGNED_UNIT, 2, INF),),
    ),
    basic.Cos: Reference(function=mp.cos),
    basic.Sin: Reference(function=mp.sin),
    basic.Tan: Reference(function=mp.tan),
    basic.ArcSin: Reference(function=within(lambda x: abs(x) <= 1, mp.asin), pools=((*SIGNED_UNIT, 2, INF),)),
    basic.ArcCos: Reference(function=within(lambda x: abs(x) <= 1, mp.acos), pools=((*SIGNED_UNIT, 2, INF),)),
    basic.ArcTan: Reference(function=mp.atan),
    basic.ArcTan2: Reference(function=angle, pools=(WIDE,) * 2, boxes=300),
    basic.IntDiv: Reference(function=floor_quotient, pools=(WHOLE,) * 2),
    basic.Mod: Reference(function=lambda x, y: x - y * floor_quotient(x, y), pools=(WHOLE,) * 2),
    basic.Pow: Reference(
        function=power, pools=(WIDE, (0, 0.5, 1, 2, 3, 4, -1, -2, -3, -0.5, 2.5, 11, 1e-300, 300)), boxes=500
    ),
    basic.LT: comparison(lambda x, y: x < y),
    basic.LE: comparison(lambda x, y: x <= y),
    basic.GT: comparison(lambda x, y: x > y),
    basic.GE: comparison(lambda x, y: x >= y),
    basic.EQ: comparison(lambda x, y: x == y),
    basic.NEQ: comparison(lambda x, y: x != y),
    basic.IsNan: Reference(function=lambda x: is_truth(mp.isnan(x))),
    basic.IsInf: Reference(function=lambda x: is_truth(mp.isinf(x))),
    basic.AND: truth_table(lambda x, y: x and y),
    basic.OR: truth_table(lambda x, y: x or y),
    basic.XOR: truth_table(lambda x, y: x != y),
    basic.Invert: truth_table(lambda x: not x, 1),
    basic.Switch: Reference(function=lambda c, x, y: x if c else y, pools=((0, 0, 1, -2), ANY, ANY), boxes=300),
    basic.Clip: Reference(function=clip, pools=(WIDE, ANY, ANY), boxes=300),
    basic.Maximum: Reference(function=max, pools=(WIDE,) * 2, boxes=200),
    basic.Minimum: Reference(function=min, pools=(WIDE,) * 2, boxes=200),
    basic.Abs: Reference(function=abs),
    basic.Sign: Reference(function=mp.sign),
    basic.Floor: Reference(function=mp.floor),
    basic.Ceil: Reference(function=mp.ceil),
    basic.Trunc: Reference(function=lambda x: mp.sign(x) * mp.floor(abs(x))),
    basic.RoundHalfToEven: Reference(function=mp.nint, pools=((*WIDE, 0.5, 2.5, -0.5, 3.5),)),
    basic.RoundHalfAwayFromZero: Reference(function=half_away, pools=((*WIDE, 0.5, 2.5, -0.5, 0.49999999999999994),)),
    special.GammaLn: Reference(
        function=within(lambda x: x >= 0, lambda x: mp.loggamma(x) if x else mp.inf),
        pools=((*POSITIVE, 1 + 2**-52, 1 - 2**-53, 2 + 2**-51, 2 - 2**-52, 1e305),),
    ),
    special.Gamma: Reference(function=within(lambda x: x > 0, mp.gamma), pools=((*POSITIVE[:-3], 171, 172),)),
    special.Psi: Reference(function=within(lambda x: x > 0, lambda x: mp.psi(0, x)), pools=(POSITIVE,)),
    special.TriGamma: Reference(function=within(lambda x: x > 0, lambda x: mp.psi(1, x)), pools=(POSITIVE,)),
    special.PolyGamma: Reference(
        function=lambda n, x: mp.psi(int(n), x) if x > 0 and n == mp.floor(n) else NAN_VALUE,
        pools=((1, 2, 3, 7), POSITIVE),
    ),
    special.Erf: Reference(function=mp.erf),
    special.Erfc: Reference(function=lambda x: mp.erfc(min(x, mp.mpf(1e7))), pools=((*WIDE, 6, 26, 27),)),
    special.Erfcx: Reference(function=erfcx, pools=((*WIDE, 20, 26, -26, -27),)),
    special.Erfinv: Reference(
        function=within(lambda x: abs(x) <= 1, lambda x: mp.erfinv(x) if abs(x) < 1 else x * mp.inf),
        pools=((*SIGNED_UNIT, 2, INF),),
    ),
    special.Erfcinv: Reference(
        function=within(lambda x: 0 <= x <= 2, lambda x: mp.erfinv(1 - x) if 0 < x < 2 else (1 - x) * mp.inf),
        pools=((0, 1e-30, 1e-6, 0.4, 1, 1.7, 2 - 2**-50, 2, 3),),
    ),
    special.NdtriExp: Reference(
        function=within(lambda x: x <= 0, lambda x: mp.sqrt(2) * mp.erfinv(2 * mp.exp(x) - 1) if x else mp.inf),
        pools=((0, -1e-15, -1e-5, -0.5, math.log(0.5), -1, -3, -20, -60, 0.1),),
    ),
    special.I0: Reference(function=lambda x: mp.besseli(0, x), boxes=40, digits=30),
    special.I1: Reference(function=lambda x: mp.besseli(1, x), boxes=40, digits=30),
    I0e: Reference(function=lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), boxes=40, digits=30),
    I1e: Reference(function=lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), boxes=40, digits=30),
    special.Ive: Reference(
        function=lambda v, x: mp.besseli(v, x) * mp.exp(-abs(x)), pools=((0, 1, 2, 2.5, 9), POSITIVE[:-3])
    ),
    special.Kve: Reference(
        function=lambda v, x: mp.besselk(v, x) * mp.exp(x) if x > 0 else mp.inf if x == 0 else NAN_VALUE,
        pools=((0, 1, 2, 2.5, 9, -1, -2.5), POSITIVE[:-3]),
        boxes=24,
        digits=30,
    ),
    special.GammaInc: Reference(function=gamma_distribution, pools=(COUNTS, (0, *COUNTS, 1e5, INF)), boxes=24),
    special.GammaIncC: Reference(function=gamma_survival, pools=(COUNTS, (0, *COUNTS, 1e5, INF)), boxes=24),
    special.BetaInc: Reference(function=beta_distribution, pools=(SHAPES, SHAPES, UNIT), digits=40),
    special.GammaIncInv: Reference(
        function=lambda k, p: root(lambda x: gamma_distribution(k, x) - p, True, 1e-9, 1e3) if 0 < p < 1 else NAN_VALUE,
        pools=((0.5, 1, 2, 30), (0.01, 0.3, 0.7, 0.999)),
        boxes=6,
        digits=25,
    ),
    special.GammaIncCInv: Reference(
        function=lambda k, p: root(lambda x: gamma_survival(k, x) - p, False, 1e-9, 1e3) if 0 < p < 1 else NAN_VALUE,
        pools=((0.5, 1, 2, 30), (0.01, 0.3, 0.7, 0.999)),
        boxes=6,
        digits=25,
    ),
    special.BetaIncInv: Reference(
        function=lambda a, b, p: (
            root(lambda x: beta_distribution(a, b, x) - p, True, 1e-9, 1) if 0 < p < 1 else NAN_VALUE
        ),
        pools=((0.5, 1, 2, 30), (0.5, 1, 2, 30), (0.01, 0.3, 0.7, 0.999)),
        boxes=6,
        digits=25,
    ),
    special.Owens_t: Reference(
        function=owens_t, pools=((0, 0.1, -1, 3, 6), (0, 0.3, -1, 2, -5, 30)), boxes=12, digits=25
    ),
}

ATOMS = {
    "SOFTPLUS": REFERENCES[special.Softplus],
    "LOG1MEXP": REFERENCES[special.Log1mexp],
    "LOG_SIGMOID": Reference(function=lambda x: -mp.log1p(mp.exp(-x)), pools=((*WIDE, 800, -800),)),
    "LOG_SHARE": Reference(
        function=lambda x: log_share(x) if x >= 0 else -mp.log1p(x * x) - log_share(-x),
        pools=((*WIDE, -0.57735, -0.6, 1e160, -1e160, -1e-9),),
    ),
    "LOG_NDTR": Reference(
        function=log_ndtr,
        pools=((*WIDE, -1e3, -38, -1.001, 5, 30, 37),),
    ),
    "XLOGX": Reference(function=lambda x: xlogy(x, x), pools=((*WIDE, 1 / math.e),)),
    "XLOGY": Reference(function=xlogy, pools=(WIDE, WIDE), boxes=200),
    "XLOG1PY": Reference(function=lambda x, y: xlogy(x, y, mp.log1p, -1), pools=(ANY, (*ANY, -1 + 2**-53)), boxes=200),
    "LOG_POWER": Reference(function=log_power, pools=(WIDE, ANY), boxes=200),
    "TO_INTEGER": Reference(function=lambda x: mp.sign(x) * mp.floor(abs(x)), pools=(ANY,)),
    "TO_BOOLEAN": Reference(function=lambda x: is_truth(x != 0)),
}
