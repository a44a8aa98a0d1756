"""Models of rows held one by one, their log-likelihoods written out once more, and steps that hold them."""

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special, stats

from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.ops import OPS

SEEN, MOST = 2.0, 10
"""Standard deviation of the priors, and largest count."""
N_MAX = 1000


def domain(relation="replace", public=(), **options):
    return Domain(neighbours=relation, n_max=N_MAX if relation == "add_remove" else None, public=public, **options)


def bound(model, public, epsilon=1.0, delta=0.0, *, steps=1, read=True, **settings):
    """A step with a budget, which holds the rows, and what it is charged."""
    specification = OPS(**settings)
    found = specification.inspect(model, public)
    step, event = specification.bound(found, Budget(epsilon, delta), chains=1, steps=steps)
    if read:
        with opened_gate():
            step.load()
    return step, event


def draws(step, count, rng):
    one = [step.posterior.draw(rng, step.sums, step.temperature.inverse, step.temperature.prior) for _ in range(count)]
    return {name: np.array([item[name] for item in one]) for name in one[0]}


def slope(name, wide, sd=SEEN):
    """Prior of a coefficient: normal, or truncated."""
    return pm.Normal(name, 0, sd) if wide is None else pm.TruncatedNormal(name, 0, sd, lower=-wide, upper=wide)


def logistic(rows, wide=None, sd=SEEN):
    x, y = columns(rows)
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=slope("b", wide, sd) * pm.Data("x", x), observed=y)
    return model


def poisson(rows, wide=1.5, sd=SEEN):
    x, y = columns(rows)
    with pm.Model() as model:
        pm.Poisson("y", pt.exp(slope("b", wide, sd) * pm.Data("x", x)), observed=y)
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
    wide: float | None
    sd: float
    bounds: dict[str, tuple[float, float]]

    @property
    def edge(self):
        return 12 * self.sd if self.wide is None else self.wide

    def quadrature(self, panels=160):
        """Places b, both edges included, and weights of a Gauss-Legendre rule."""
        nodes, weights = np.polynomial.legendre.leggauss(8)
        half = self.edge / panels
        middles = np.linspace(-self.edge + half, self.edge - half, panels)
        inner = (middles[:, None] + half * nodes).ravel()
        return np.append(inner, [-self.edge, self.edge]), np.append(np.tile(half * weights, panels), [0.0, 0.0])

    def posterior(self, rows, inverse):
        """Log density of b at the places of the quadrature, and its weights."""
        return self.law(self.corners, [rows.count(corner) for corner in self.corners], inverse)

    def law(self, cells, counts, inverse):
        """The same for so many rows in each of some cells (x, y)."""
        b, weights = self.quadrature()
        held = stats.norm.logpdf(b, 0, self.sd) + inverse * self.logp(b[:, None], *np.array(cells).T) @ np.array(counts)
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
    "logistic": Line(logistic, logistic_logp, BITS, None, SEEN, X),
    "truncated logistic": Line(logistic, logistic_logp, BITS, 3.0, SEEN, X),
    "Poisson": Line(poisson, poisson_logp, COUNTS, 1.5, SEEN, {**X, "y": (0, MOST)}),
    "narrow Poisson": Line(poisson, poisson_logp, COUNTS, 1.5, 0.2, {**X, "y": (0, MOST)}),
}
