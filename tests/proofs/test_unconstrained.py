"""Proved ranges of steps against rows that were looked for: never below what a row does, and seldom far above."""

import functools

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.domain import Domain
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.one_row import with_rows
from pymc_dp.inspection.rows import shape_of
from pymc_dp.proofs import meeting_ranges
from pymc_dp.proofs.unconstrained import StepProof
from pymc_dp.transforms.prior_model import prior_model as prior_model_of

N, TRIED = 5, 1500
X = np.random.default_rng(5).normal(size=(N, 3))
NORM = {"x": 1.0}
Y = {"y": (-3.0, 4.0)}


def answers():
    return np.arange(N) % 2


def logistic():
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Data("x", X) @ pm.Normal("b", shape=3)
        pm.Bernoulli("y", logit_p=eta, observed=answers())
    return model


def student():
    with pm.Model() as model:
        mu, s, b = pm.Normal("mu"), pm.HalfNormal("s"), pm.Uniform("b", -1, 1, shape=3)
        pm.StudentT("y", nu=4, mu=mu + pm.Data("x", X) @ b, sigma=s, observed=np.zeros(N))
    return dp.truncate(model, {"s": (0.5, 2.0)})


def mixture():
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(2))
        pm.NormalMixture("y", w, pm.Normal("mu", shape=2), pm.HalfNormal("s", shape=2), observed=np.zeros(N))
    return model


def poisson():
    with pm.Model() as model:
        rate = pm.math.exp(pm.Normal("a") + pm.Data("x", X) @ pm.Normal("b", shape=3))
        pm.Poisson("y", rate, observed=answers())
    return model


def hierarchy():
    """Not centred: coefficients are products of parameters; scales on the log scale, one of them truncated."""
    with pm.Model() as model:
        tau, s = pm.HalfNormal("tau"), pm.HalfNormal("s")
        b = pm.Normal("m") + tau * pm.Normal("z", shape=3)
        pm.Normal("y", pm.Data("x", X) @ b, s, observed=np.zeros(N))
    return dp.truncate(model, {"tau": (0.1, 3.0)})


def groups():
    with pm.Model() as model:
        effect = pm.HalfNormal("t") * pm.Normal("z", shape=4)
        eta = effect[pm.Data("g", np.arange(N) % 4)] + pm.Data("x", X[:, 0]) * pm.Normal("b")
        pm.Bernoulli("y", logit_p=eta, observed=answers())
    return model


def levels():
    with pm.Model() as model:
        p = pm.math.softmax(pm.Data("x", X) @ pm.Normal("b", shape=(3, 4)), axis=-1)
        pm.Categorical("y", p=p, observed=answers())
    return model


def decay():
    with pm.Model() as model:
        mu = pm.Normal("a") * pm.math.exp(-pm.HalfNormal("k") * pm.Data("x", X[:, 0]))
        pm.Normal("y", mu, pm.HalfNormal("s"), observed=np.zeros(N))
    return model


def two():
    with pm.Model() as model:
        a, eta = pm.Normal("a"), pm.Data("x", X) @ pm.Normal("b", shape=3)
        pm.Normal("y", a + eta, pm.HalfNormal("s"), observed=np.zeros(N))
        pm.Bernoulli("w", logit_p=a - eta, observed=answers())
    return model


def clamped():
    """Rows without bounds: only the clamp keeps them."""
    with pm.Model() as model:
        pm.StudentT("y", nu=3, mu=pm.Normal("mu"), sigma=pm.HalfNormal("s"), observed=np.zeros(N))
    return dp.clamp(model, -6.0, 0.0)


# Model, domain, and what some row does of the range that is proved, at the least and at the most of a few steps.
CASES = {
    "logistic": (logistic, {"norms": NORM}, 0.6, 0.95),
    "logistic in a box": (logistic, {"bounds": {"x": (0.0, 1.0)}}, 0.6, 0.95),
    "logistic of public rows": (logistic, {"norms": NORM, "public": ("x",)}, 0.6, 0.95),
    "student": (student, {"norms": NORM, "bounds": Y}, 0.25, 0.7),
    "mixture": (mixture, {"bounds": Y}, 0.25, 0.9),
    "poisson": (poisson, {"norms": NORM, "bounds": {"y": (0, 20)}}, 0.4, 0.95),
    "poisson of public rows": (poisson, {"norms": NORM, "public": ("x",), "bounds": {"y": (0, 20)}}, 0.7, 0.95),
    "hierarchy": (hierarchy, {"norms": NORM, "bounds": Y}, 0.2, 0.8),
    "hierarchy of public rows": (hierarchy, {"norms": NORM, "public": ("x",), "bounds": Y}, 0.1, 0.7),
    "groups": (groups, {"bounds": {"x": (-1.0, 2.0)}}, 0.4, 0.85),
    "public groups": (groups, {"bounds": {"x": (-1.0, 2.0)}, "public": ("g",)}, 0.1, 0.6),
    "levels": (levels, {"norms": NORM}, 0.2, 0.5),
    "decay": (decay, {"bounds": Y | {"x": (0.0, 2.0)}}, 0.4, 0.9),
    "two observed": (two, {"norms": NORM, "bounds": Y}, 0.3, 0.8),
    "clamped": (clamped, {}, 0.3, 0.9),
}


class Rows:
    """Rows that a domain allows, many of them at its ends, and their log-likelihoods at any place."""

    def __init__(self, name, rng):
        build, given, *_ = CASES[name]
        self.inspection = inspect(build(), Domain(**given)).rows
        self.inspection.require()
        self.prior_model = prior_model_of(self.inspection)
        self.public = set(given.get("public", ()))
        self.columns = [self.drawn(column, rng) for column in self.inspection.columns]
        start = self.prior_model.initial_point()
        self.shapes = [np.shape(start[str(value.name)]) for value in self.prior_model.value_vars]
        self._logp = self._compiled()

    def proof(self, relation):
        inspection = self.inspection
        if relation == "add_remove":
            given = CASES[self.name][1]
            inspection = inspect(CASES[self.name][0](), Domain(**given, neighbours=relation, n_max=9)).rows
        return StepProof(inspection, self.prior_model)

    @staticmethod
    def drawn(column, rng):
        shape, kind = (TRIED, *shape_of(column.leaf)[1:]), np.dtype(column.leaf.type.dtype).kind
        radius = column.norm or 60.0
        low, high = column.bounds if column.bounds is not None else (-radius, radius)
        if kind in "iub":
            return column.clamped(rng.integers(int(low), int(high) + 1, size=shape).astype(column.leaf.type.dtype))
        values = np.where(rng.random(shape) < 0.5, rng.uniform(low, high, shape), rng.choice([low, high], shape))
        if column.norm is not None:
            on_sphere = rng.normal(size=shape)
            on_sphere *= column.norm / np.linalg.norm(on_sphere, axis=1, keepdims=True)
            values = np.where(rng.random((TRIED, 1)) < 0.7, on_sphere, values)
        return column.clamped(values)

    def _compiled(self):
        free = dict(
            zip(
                self.inspection.stand_ins,
                self.prior_model.replace_rvs_by_values(self.prior_model.free_RVs),
                strict=True,
            )
        )
        many = [pt.tensor(shape=rows.shape, dtype=rows.dtype) for rows in self.columns]
        leaves = dict(zip((column.leaf for column in self.inspection.columns), many, strict=True))
        terms = [with_rows(term, leaves, free) for term in self.inspection.terms]
        total = sum(pt.broadcast_to(term.reshape((term.shape[0], -1)).sum(axis=1), (TRIED,)) for term in terms)
        inputs = [*self.prior_model.value_vars, *many]
        return pytensor.function(inputs, total, mode="FAST_COMPILE", on_unused_input="ignore")

    def ratios(self, here, there, columns=None):
        """g of every row."""
        rows = self.columns if columns is None else columns
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)])
        at = [
            [place[a:b].reshape(shape) for a, b, shape in zip(ends, ends[1:], self.shapes, strict=False)]
            for place in (there, here)
        ]
        return self._logp(*at[0], *rows) - self._logp(*at[1], *rows)

    def widest(self, here, there, relation):
        """Range of g over the rows that were drawn: within equal public values, where there are some."""
        if relation == "add_remove":
            return np.abs(self.ratios(here, there)).max()
        if not self.public:
            return np.ptp(self.ratios(here, there))
        named = [column.name in self.public for column in self.inspection.columns]
        tables = (
            [np.repeat(rows[i : i + 1], TRIED, axis=0) if shared else rows for rows, shared in zip(self.columns, named)]  # noqa: B905
            for i in range(40)
        )
        return max(np.ptp(self.ratios(here, there, table)) for table in tables)


@functools.cache
def rows_of(name):
    found = Rows(name, np.random.default_rng(7))
    found.name = name
    return found


def steps(proof, rng, count=8):
    """Pairs of places, near the start and far from it, of short and of long steps, some along few values only."""
    for k in range(count):
        here = proof.start + rng.normal(size=proof.start.size) * (0.1, 0.5, 1.0)[k % 3]
        step = rng.normal(size=here.size) * (0.003, 0.03, 0.3)[k // 3 % 3]
        alone = np.where(np.arange(here.size) == k % here.size, step, 0.0)
        yield here, here + (alone if k % 4 == 3 else step)


def audit(name, relation, rng):
    """Shares of the proved range that rows attain, and steps at which they exceed it."""
    rows = rows_of(name)
    proof = rows.proof(relation)
    assert not proof.problems
    shares, wrong = [], []
    for here, there in steps(proof, rng):
        span, found = proof.between(here, there), rows.ratios(here, there)
        room = 1e-12 * (1 + np.abs(found).max())
        attained = rows.widest(here, there, relation)
        inside = span.low - room <= found.min() and found.max() <= span.high + room
        if not inside or attained > span.reach + room:
            wrong.append((span, found.min(), found.max(), attained))
        shares.append(attained / span.reach)
    return np.array(shares), wrong


RELATIONS = [
    (name, relation)
    for name, (_, given, *_) in CASES.items()
    for relation in ("replace", "add_remove")
    # A Dirichlet's array of ones may hold rows, for all that is known under add_remove.
    if relation == "replace" or not (given.get("public") or name == "mixture")
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "relation"), RELATIONS)
def test_no_row_moves_a_ratio_by_more_than_is_proved(name, relation, rng):
    shares, wrong = audit(name, relation, rng)
    assert not wrong
    *_, least, most = CASES[name]
    assert shares.min() > least and shares.max() > most, np.round(shares, 2)


@pytest.mark.parametrize("name", ["logistic", "logistic of public rows", "hierarchy", "clamped"])
def test_the_range_is_the_same_both_ways(name, rng):
    proof = rows_of(name).proof("replace")
    for here, there in steps(proof, rng, 4):
        one, other = proof.between(here, there), proof.between(there, here)
        assert (one.reach, one.low, one.high) == (other.reach, -other.high, -other.low)
    assert proof.between(here, here).reach == 0


def test_public_covariates_bring_the_range_down_towards_half():
    """Across the predictor private rows of opposite scores may pull opposite ways: max 2 sigmoid(8 a) sqrt(1 - a^2)."""
    private, public = (rows_of(name).proof("replace") for name in ("logistic", "logistic of public rows"))
    here, step = np.array([0.0, 8.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.01, 0.0])
    a = np.linspace(0, 1, 2001)
    true = 0.01 * (2 * np.sqrt(1 - a**2) / (1 + np.exp(-8 * a))).max()
    assert true <= private.between(here, here + step).reach <= 1.01 * true
    assert 0.01 <= public.between(here, here + step).reach <= 1.05 * 0.01


def test_the_range_of_a_clamped_model_is_that_of_its_clamp(rng):
    proof = rows_of("clamped").proof("replace")
    here, there = proof.start, proof.start + np.array([30.0, 1.0])
    assert 6.0 < proof.between(here, there).reach <= 12.0 * (1 + 1e-8)


def test_places_where_a_row_could_be_impossible_have_no_range():
    with pm.Model() as model:
        s = pm.HalfNormal("s", default_transform=None, initval=0.5)
        pm.Normal("y", 0.0, s, observed=np.zeros(N))
    inspection = inspect(model, Domain(bounds=Y)).rows
    proof = StepProof(inspection, prior_model_of(inspection))
    assert proof.between(np.array([0.5]), np.array([0.6])).reach < np.inf
    assert proof.between(np.array([0.5]), np.array([-0.1])).reach == np.inf


def test_parameter_checks_hold_between_places():
    """Beta's density has a value for parameters below 0; PyMC says that it has none."""
    with pm.Model() as model:
        pm.Beta("y", pm.Normal("a", initval=2.0), 2.0, observed=np.full(N, 0.5))
    inspection = inspect(model, Domain(bounds={"y": (0.1, 0.9)})).rows
    proof = StepProof(inspection, prior_model_of(inspection))
    assert not proof.unchecked
    assert proof.between(np.array([2.0]), np.array([2.1])).reach < np.inf
    assert proof.between(np.array([-0.5]), np.array([-0.4])).reach == np.inf
    assert rows_of("mixture").proof("replace").unchecked == ("y",)  # that weights add up to 1 is not seen


# Mistakes that must show.


def test_mutant_one_part_of_the_range_for_both_places(monkeypatch, rng):
    """The row's linear predictor lies in a part of its range at one place, but not at the other."""

    def narrow(low, high, whole):
        return meeting_ranges.Enclosed(meeting_ranges.Interval.of(low, high), whole.change)

    assert not audit("poisson", "replace", rng)[1]
    monkeypatch.setattr(meeting_ranges, "_widened", narrow)
    assert audit("poisson", "replace", rng)[1]


def test_mutant_private_columns_taken_for_public(rng):
    private, public = rows_of("logistic"), rows_of("logistic of public rows").proof("replace")
    shares = [private.widest(*step, "replace") / public.between(*step).reach for step in steps(public, rng)]
    assert max(shares) > 1.05


def test_mutant_range_for_one_row_less(rng):
    """Under add_remove sup |g| is what counts: far from 0 it exceeds sup g - inf g."""
    rows = rows_of("poisson")
    proof = rows.proof("replace")
    here = proof.start + np.array([3.5, 0.0, 0.0, 0.0])
    there = here + np.array([0.02, 0.0, 0.0, 0.0])
    assert rows.widest(here, there, "add_remove") > proof.between(here, there).reach
    assert rows.widest(here, there, "add_remove") <= rows.proof("add_remove").between(here, there).reach


@pytest.mark.parametrize(
    ("domain", "units", "norm"),
    [
        (Domain(norms=NORM), None, np.sqrt(2)),
        (Domain(norms=NORM), {"a": np.array(3.0), "b": np.full(3, 0.5)}, np.hypot(3, 0.5)),
    ],
)
def test_gradients_of_rows_are_no_longer_than_proved(domain, units, norm, rng):
    """Logistic: at most half of the way from 0 to 1 and more, times the units of the intercept and of a row."""
    found = inspect(logistic(), domain).rows
    proof = StepProof(found, prior_model_of(found)).gradient_norm(units)
    assert norm <= proof.value <= norm * (1 + 1e-5)
    assert proof.attained > 0.99 * norm


def test_gradients_without_a_bound_are_not_proved():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.zeros(N))
    found = inspect(model, Domain(bounds=Y)).rows
    proof = StepProof(found, prior_model_of(found))
    assert not proof.problems and np.isinf(proof.gradient_norm().value)
