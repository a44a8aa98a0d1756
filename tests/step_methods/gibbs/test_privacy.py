"""Every conditional by quadrature on adversarial neighbours: its true loss is never above what is paid for it."""

import math

import numpy as np
import pymc as pm
import pytest

from pymc_dp.accounting.events import BoundedRangeEvent
from pymc_dp.audit.quadrature import compare_with_event, density_loss, privacy_loss
from pymc_dp.domain import Domain
from pymc_dp.step_methods.gibbs import conjugate_draws, grid
from pymc_dp.transforms.truncate import truncate
from tests.step_methods.gibbs.conftest import bound, domain

pytestmark = pytest.mark.usefixtures("paid")

BETA = 0.7


class Law(Exception):
    """Raised in the place of a draw, with what would have been drawn from."""


class Audited:
    """One model whose rows are exchanged; the conditional of one variable as a density, the others held."""

    def __init__(self, model, public, columns, name, held, bounds=None, **settings):
        self.model, self.columns, self.held, self.bounds = model, columns, held, bounds
        self.step, _ = bound(model, public, epsilon=1e9, **settings)
        self.update = next(item for item in self.step.scan.updates if item.name == name)

    def sums(self, rows):
        table = np.array(rows, dtype=float).reshape(len(rows), len(self.columns))
        for place, name in enumerate(self.columns):
            self.model[name].set_value(table[:, place].astype(self.model[name].get_value().dtype))
        return {item.name: item.read() for item in self.step.tables}

    def law(self, rows, monkeypatch):
        """Name and arguments of the draw that one update makes."""

        def seen(name):
            def draw(rng, *arguments):
                raise Law(name, *arguments)

            return draw

        names = ("truncated_beta", "truncated_gamma", "truncated_normal", "truncated_dirichlet", "choose")
        for name in names:
            monkeypatch.setattr(grid if name == "choose" else conjugate_draws, name, seen(name))
        with pytest.raises(Law) as caught:
            self.update.draw(np.random.default_rng(1), self.held, self.sums(rows), BETA)
        monkeypatch.undo()
        return caught.value.args

    def loss(self, rows, neighbour, monkeypatch):
        name, *one = self.law(rows, monkeypatch)
        _, *other = self.law(neighbour, monkeypatch)
        if name == "choose":
            return discrete(one[0][0], other[0][0])
        one, other = ([float(np.ravel(item)[0]) for item in law] for law in (one, other))
        density = DENSITIES[name]
        box = [(one[2], one[3])]
        return density_loss(
            lambda x: density(x[:, 0], *one),
            lambda x: density(x[:, 0], *other),
            box,
            normalise=True,
            panels=512,
            tolerance=1e-3,
        )


def discrete(one, other):
    one, other = (item - np.logaddexp.reduce(item) for item in (one, other))
    return privacy_loss(one, other)


DENSITIES = {
    "truncated_beta": lambda x, a, b, *_: (a - 1) * np.log(x) + (b - 1) * np.log1p(-x),
    "truncated_gamma": lambda x, shape, rate, *_: (shape - 1) * np.log(x) - rate * x,
    "truncated_normal": lambda x, mean, sd, *_: -((x - mean) ** 2) / (2 * sd**2),
}


def beta_bernoulli(relation, settings):
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.1, 0.7)
        pm.Bernoulli("y", p, observed=pm.Data("d", np.array([0, 1])))
    return Audited(model, domain(relation), ["d"], "p", {"p": np.float64(0.5)}), [(0,), (1,)]


def gamma_poisson(relation, settings):
    with pm.Model() as model:
        rate = pm.Truncated("rate", pm.Gamma.dist(2.0, 1.0), 0.5, 5.0)
        pm.Poisson("y", rate, observed=pm.Data("d", np.array([0, 1])))
    audited = Audited(model, domain(relation, bounds={"y": (0, 6)}), ["d"], "rate", {"rate": np.float64(1.0)})
    return audited, [(0,), (6,)]


def _normal(relation, name, held, sd=None):
    with pm.Model() as model:
        mean = pm.Truncated("mean", pm.Normal.dist(0.0, 1.0), -1.0, 1.0)
        sd = pm.Uniform("sd", 0.7, 2.0) if sd is None else sd()
        pm.Normal("y", mean, sd, observed=pm.Data("d", np.array([0.0, 1.0])))
    values = {key: np.float64(value) for key, value in held.items()}
    audited = Audited(model, domain(relation, bounds={"y": (-2, 2)}), ["d"], name, values, grid=512)
    return audited, [(-2.0,), (2.0,), (0.0,), (1.0,)]


def normal_mean(relation, settings):
    return _normal(relation, "mean", {"mean": 0.0, "sd": settings})


def normal_sd(relation, settings):
    return _normal(relation, "sd", {"mean": settings, "sd": 1.0})


def normal_sd_on_a_grid(relation, settings):
    def prior():
        return pm.Truncated("sd", pm.HalfNormal.dist(1.0), 0.7, 2.0)

    return _normal(relation, "sd", {"mean": settings, "sd": 1.0}, prior)


def logistic_on_a_grid(relation, settings):
    with pm.Model() as model:
        a, b = pm.Uniform("a", -1, 1), pm.Uniform("b", -0.5, 1)
        x = pm.Data("x", np.array([0, 1]))
        pm.Bernoulli("y", logit_p=a + b * x, observed=pm.Data("d", np.array([0, 1])))
    public = domain(relation, bounds={"x": (0, 2)})
    held = {"a": np.float64(0.2), "b": np.float64(settings)}
    return Audited(model, public, ["x", "d"], "b", held, grid=512), [(x, y) for x in range(3) for y in range(2)]


def discrete_latent(relation, settings):
    with pm.Model() as model:
        z = pm.DiscreteUniform("z", 0, 2)
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.1, 0.9, shape=3)
        pm.Bernoulli("y", p[z], observed=pm.Data("d", np.array([0, 1])))
    held = {"z": np.int64(0), "p": np.array(settings)}
    return Audited(model, domain(relation), ["d"], "z", held, grid=64), [(0,), (1,)]


CASES = [
    (beta_bernoulli, None, 0.97),
    (gamma_poisson, None, 0.8),
    (normal_mean, 0.7, 0.9),
    (normal_mean, 2.0, 0.0),
    (normal_sd, -1.0, 0.6),
    (normal_sd, 0.0, 0.0),
    (normal_sd, 1.0, 0.6),
    (normal_sd_on_a_grid, 1.0, 0.6),
    (logistic_on_a_grid, 1.0, 0.0),
    (logistic_on_a_grid, -0.5, 0.0),
    (discrete_latent, (0.1, 0.9, 0.3), 0.9),
]


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
@pytest.mark.parametrize(("make", "settings", "share"), CASES)
def test_no_conditional_loses_more_than_its_range(make, settings, share, relation, monkeypatch):
    audited, kinds = make(relation, settings)
    (paid,) = audited.update.ranges
    event = BoundedRangeEvent(eta=BETA * paid)
    worst = None
    for base in (kinds[0], kinds[-1]):
        for n in (0, 20, 400):
            for place, one in enumerate(kinds):
                for other in kinds[:place] if relation == "replace" else [None]:
                    rows = [base] * n
                    found = audited.loss([*rows, one], rows + [other] * (other is not None), monkeypatch)
                    assert found.epsilon <= event.eta * (1 + 1e-6), (base, n, one, other)
                    worst = found if worst is None or found.epsilon > worst.epsilon else worst
    checked = compare_with_event(worst, event)
    assert checked.passed, checked.report()
    assert worst.epsilon >= share * event.eta, f"{worst.epsilon / event.eta:.3f} of the claim is reached"


def test_a_dirichlet_moves_by_no_more_than_its_range(rng):
    """The log-ratio of two neighbours is β log(p_1 / p_2) plus a constant, whatever the counts."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        pm.Categorical("y", p, observed=pm.Data("d", np.array([0, 1, 1, 2, 1])))
    step, _ = bound(truncate(model, {"p": (0.1, None)}), epsilon=1e9)
    (update,) = step.scan.updates
    # Two components move, the third at its least: log(p_1 / p_2) runs over +-log(.8 / .1).
    assert update.ranges[0] == pytest.approx(2 * math.log(8), rel=1e-4)
    drawn = np.array([update.draw(rng, {}, step.sums, 1.0) for _ in range(50)])
    assert (drawn >= 0.1).all() and np.allclose(drawn.sum(axis=1), 1)


@pytest.mark.parametrize("public", [True, False])
def test_rows_that_change_their_group_are_paid_for(public):
    """A row under a private column leaves one group and enters another; under a public one it stays."""
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.1, 0.5, shape=2)
        pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1]))], observed=pm.Data("d", np.array([0, 1])))
    step, _ = bound(model, Domain(public=["g"] if public else []), epsilon=1e9)
    (paid,) = step.scan.updates[0].ranges
    stays = math.log(0.5 / 0.1) + math.log(0.9 / 0.5)
    assert paid == pytest.approx(stays if public else max(stays, 2 * math.log(5)), rel=1e-9)
