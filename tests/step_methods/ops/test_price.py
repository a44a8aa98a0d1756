"""What one posterior sample of coefficients is charged: what neighbouring posteriors differ by, hardly more."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special, stats

import pymc_dp as dp
from pymc_dp.accounting import event_from_dict, total_delta
from pymc_dp.audit.quadrature import compare_with_event, privacy_loss
from pymc_dp.kernel.accounting.rdp import divergence

pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]
SEEN, MOST = 2.0, 10
"""Standard deviation of the priors, and largest count."""


SIZES = {"replace": (1, 20, 200), "add_remove": (0, 1, 200)}
ORDERS = np.array([1.5, 2.0, 8.0, 32.0])
SHARES = np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.95])
"""Of the loss that is charged: where hockey-sticks are compared."""
RELATIONS = ("replace", "add_remove")


def slope(name, wide):
    return pm.TruncatedNormal(name, 0, SEEN, lower=-wide, upper=wide)


def logistic(rows, wide):
    x, y = columns(rows)
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=slope("b", wide) * pm.Data("x", x), observed=y)
    return model


def poisson(rows, wide):
    x, y = columns(rows)
    with pm.Model() as model:
        pm.Poisson("y", pt.exp(slope("b", wide) * pm.Data("x", x)), observed=y)
    return model


def columns(rows):
    """Columns x and y of pairs."""
    table = np.asarray(rows, dtype=float).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].astype(int)


def logistic_logp(b, x, y):
    return np.where(y == 1, -np.logaddexp(0, -b * x), -np.logaddexp(0, b * x))


def poisson_logp(b, x, y):
    return y * b * x - np.exp(b * x) - special.gammaln(y + 1)


@dataclass(frozen=True)
class Line:
    """A model of one coefficient b, and rows (x, y) at its corners: x in [-1, 1]."""

    model: object
    logp: object
    corners: tuple[tuple[float, int], ...]
    wide: float
    bounds: dict[str, tuple[float, float]]

    def quadrature(self, panels=160):
        """Places b, both edges included, and weights of a Gauss-Legendre rule."""
        nodes, weights = np.polynomial.legendre.leggauss(8)
        half = self.wide / panels
        middles = np.linspace(-self.wide + half, self.wide - half, panels)
        inner = (middles[:, None] + half * nodes).ravel()
        return np.append(inner, [-self.wide, self.wide]), np.append(np.tile(half * weights, panels), [0.0, 0.0])

    def posterior(self, rows, inverse):
        """Log density of b at the places of the quadrature, and its weights."""
        return self.law(self.corners, [rows.count(corner) for corner in self.corners], inverse)

    def law(self, cells, counts, inverse):
        """The same for so many rows in each of some cells (x, y)."""
        b, weights = self.quadrature()
        held = stats.norm.logpdf(b, 0, SEEN) + inverse * self.logp(b[:, None], *np.array(cells).T) @ np.array(counts)
        inside = weights > 0
        return held - special.logsumexp(held[inside] + np.log(weights[inside])), weights

    def tables(self, size):
        """Data sets of `size` rows: all at one corner, two separable ones, and all corners evenly."""
        found = [[one] * size for one in self.corners] if size else [[]]
        if size > 1:
            found += [[self.corners[i], self.corners[-1 - i]] * (size // 2) for i in (0, 1)]
            found += [list(self.corners) * (size // 4)] * (size > 3)
        return found

    def neighbours(self, size, relation):
        """Pairs of data sets that differ in one row."""
        for table in self.tables(size):
            if relation == "add_remove":
                yield from ((table, [*table, row]) for row in self.corners)
            else:
                yield from ((table, [*table[1:], row]) for row in self.corners if row != table[0])


X = {"x": (-1.0, 1.0)}
BITS, COUNTS = ((-1.0, 0), (-1.0, 1), (1.0, 0), (1.0, 1)), ((-1.0, 0), (-1.0, MOST), (1.0, 0), (1.0, MOST))
LINES = {
    "logistic": Line(logistic, logistic_logp, BITS, 3.0, X),
    "Poisson": Line(poisson, poisson_logp, COUNTS, 1.5, {**X, "y": (0, MOST)}),
}


@cache
def priced(name, relation, epsilon=1.0):
    """The power of the likelihood at a budget, and the event of one draw."""
    line = LINES[name]
    domain = dp.Domain(neighbours=relation, n_max=1000 if relation == "add_remove" else None, bounds=line.bounds)
    given = {"epsilon": epsilon, "model": line.model([(1.0, 0)] * 3, line.wide), "domain": domain}
    record = dp.sample(1, step=dp.OPS(), progressbar=False, **given).dp.report().record
    return record["sampler"]["power"], event_from_dict(record["event"]["event"])


def loss_of(line, pair, power, share=1.0):
    """Privacy loss of two data sets at a power of the likelihood, over `share`."""
    (p, weights), (q, _) = (line.posterior(rows, power / share) for rows in pair)
    return privacy_loss(p, q, weights)


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.3, 20.0])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", sorted(LINES))
def test_no_row_shows_more_than_is_charged(name, relation, epsilon):
    """theory.md 10: hockey-sticks, Rényi divergences and sup log-ratios."""
    power, event = priced(name, relation, epsilon)
    places = SHARES * event.eta
    deltas = np.array([total_delta(event, place) for place in places])
    moments = np.array([divergence(event, order) for order in ORDERS])
    line, worst = LINES[name], None
    for pair in (pair for size in SIZES[relation] for pair in line.neighbours(size, relation)):
        loss = loss_of(line, pair, power)
        assert (loss.hockey_stick(places) <= deltas * (1 + 1e-6) + 1e-12).all()
        assert (loss.renyi(ORDERS) <= moments * (1 + 1e-6)).all()
        worst = max(worst or loss, loss, key=lambda one: one.epsilon)
    found = compare_with_event(worst, event)
    assert found.passed, found.report()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("name", "least"), [("logistic", 0.93), ("Poisson", 0.98)])
def test_some_row_shows_nearly_what_is_charged(name, relation, least):
    """So half a range would be found out."""
    power, event = priced(name, relation)
    line, sizes = LINES[name], {"replace": (1, 200), "add_remove": (0, 200)}[relation]
    pairs = [pair for size in sizes for pair in line.neighbours(size, relation)]
    share, pair = max((loss_of(line, pair, power).epsilon / event.eta, pair) for pair in pairs)
    assert least < share <= 1
    assert loss_of(line, pair, power, 0.5).epsilon / event.eta > 1.5
