"""Closed-form ranges of one unknown parameter against brute force over rows and parameters: never below, and close."""

import itertools

import numpy as np
import pytest
from scipy import stats

from pymc_dp.families import FAMILIES
from pymc_dp.families.closed_form import OneParameter
from pymc_dp.families.features import BoundedFeatures, feature
from pymc_dp.families.statistic import BoundedMoments
from pymc_dp.proofs.closed_form_ranges import row_range

ONE_PARAMETER = {name: form for name, found in FAMILIES.items() if isinstance(form := found.closed_form, OneParameter)}
FEATURES = {
    "exponential": ("identity", None),
    "gamma": ("identity", None),
    "invgamma": ("reciprocal", None),
    "laplace": ("distance", 0.7),
    "halfnormal": ("square", 0.0),
    "weibull": ("power", "known"),
}
LOGP = {
    "binomial": lambda x, p, c: stats.binom.logpmf(x, c, p),
    "geometric": lambda x, p, c: stats.geom.logpmf(x, p),
    "negative_binomial": lambda x, p, c: stats.nbinom.logpmf(x, c, p),
    "exponential": lambda x, s, c: stats.expon.logpdf(x, scale=s),
    "gamma": lambda x, s, c: stats.gamma.logpdf(x, c, scale=s),
    "invgamma": lambda x, b, c: stats.invgamma.logpdf(x, c, scale=b),
    "laplace": lambda x, s, c: stats.laplace.logpdf(x, 0.7, s),
    "halfnormal": lambda x, s, c: stats.halfnorm.logpdf(x, scale=s),
    "weibull": lambda x, s, c: stats.weibull_min.logpdf(x, c, scale=s),
}


def scenario(rng, name, known):
    """Statistic, rows, known number and two cells' bounds of the parameter."""
    if name in ("binomial", "geometric", "negative_binomial"):
        low = 0 if name == "binomial" else int(rng.integers(1, 4))
        high = int(known) if name == "binomial" else low + int(rng.integers(1, 12))
        rows = np.arange(low, high + 1.0)
        half = (high - low) / 2
        statistic = BoundedMoments(low=low, high=high, centre=0.0, unit=1.0, half_width=half, powers=(1,))
        ends = np.sort(rng.uniform(0.01, 0.99, (2, 2)), axis=1)
    else:
        low, high = np.sort(rng.uniform(0.1, 5, 2))
        transform, argument = FEATURES[name]
        given = known if argument == "known" else argument or 0.0
        item = feature(transform, low, high, argument=given)
        statistic = BoundedFeatures(low=low, high=high, features=(item,))
        rows = np.unique([low, high, *np.linspace(low, high, 15), np.clip(0.7, low, high)])
        ends = np.sort(rng.uniform(0.2, 5, (2, 2)), axis=1)
    return statistic, rows, ends


def brute(name, rows, ends, known):
    """Range of two rows of one cell, and of a row alone, from finitely many parameters."""
    thetas = np.linspace(*ends, 400)
    table = LOGP[name](rows[:, None], thetas, known)
    pairs = table[:, None] - table[None]
    return (pairs.max(axis=2) - pairs.min(axis=2)).max(), (table.max(axis=1) - table.min(axis=1)).max()


def found(name, statistic, boxes, touched=None, neighbours="replace", moves=False):
    moving = None if touched is None else [np.array(touched)] * len(boxes)
    return row_range(FAMILIES[name], statistic, boxes, neighbours=neighbours, moves=moves, moving=moving).value


@pytest.mark.parametrize("name", ONE_PARAMETER)
def test_ranges_are_never_below_brute_force_and_close(name, rng):
    family = ONE_PARAMETER[name]
    for _ in range(25):
        known = float(rng.integers(1, 9)) if name == "binomial" else float(rng.uniform(0.4, 4))
        known = 1.0 if family.known is None else known
        statistic, rows, ends = scenario(rng, name, known)
        numbers = (np.full(2, known),) * 2
        boxes = [numbers] * (2 if family.slot else 1)
        boxes[family.slot] = (ends[:, 0], ends[:, 1])
        claims = {
            (relation, moves, touched): found(name, statistic, boxes, touched, relation, moves)
            for relation, moves in [("replace", False), ("replace", True), ("add_remove", False)]
            for touched in itertools.product((True, False), repeat=2)
        }
        truth = [brute(name, rows, end, known) for end in ends]
        for touched in itertools.product((True, False), repeat=2):
            same = max(item[0] * hit for item, hit in zip(truth, touched, strict=True))
            alone = [item[1] * hit for item, hit in zip(truth, touched, strict=True)]
            moved = max(same, sum(alone))
            for key, value in [
                (("replace", False), same),
                (("replace", True), moved),
                (("add_remove", False), max(alone)),
            ]:
                claim = claims[(*key, touched)]
                assert value <= claim * (1 + 1e-9) + 1e-12
                assert claim <= value * 1.001 + 1e-9
