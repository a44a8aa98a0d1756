"""Lipschitz constants in the data: bounds of every pair of rows, tight where a closed form is known."""

import math

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.metrics import EARTH, L1, L2, Geographic, Hamming
from pymc_dp.proofs.lipschitz_in_rows import columns_of, extent_of, prove_per_unit
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.transforms.prior_model import prior_model
from tests.proofs.one_row import OneRow
from tests.proofs.zoo import ZOO

X = np.zeros(5)
MU = {"lower": -1, "upper": 1}


def proved(model, metric, *, papers=False, **domain):
    inspection = inspect(model, dp.Domain(metric=metric, **domain), per_unit=True).rows
    inspection.require()
    rows, _ = row_likelihoods(inspection, prior_model(inspection))
    return prove_per_unit(rows, inspection.columns, metric, papers=papers)


def built(build):
    with pm.Model() as model:
        build()
    return model


def location(kind=pm.Normal, **given):
    return built(lambda: kind("x", mu=pm.Uniform("mu", **MU), observed=X, **given))


def regression():
    z = pm.Data("z", X)
    pm.Normal("x", pm.Uniform("b", **MU) * z, 1.0, observed=X)


def places():
    pm.Normal("lat", pm.Uniform("a", 46, 49), 1.0, observed=X)
    pm.Normal("lon", pm.Uniform("b", 9, 17), 2.0, observed=X)


WIDE = {"bounds": {"x": (-3, 3)}}
BOTH = {"bounds": {"x": (-3, 3), "z": (-1, 1)}}
EXACT = {
    # Model, metric, domain, R per unit, L per unit: by hand.
    "normal": (lambda: location(sigma=1.0), L1("x"), WIDE, 2.0, 4.0),
    "normal, other units": (lambda: location(sigma=1.0), L1({"x": 0.5}), WIDE, 4.0, 8.0),
    "normal, different or not": (lambda: location(sigma=1.0), Hamming("x"), WIDE, 12.0, 8.0),
    "laplace": (lambda: location(pm.Laplace, b=0.5), L1("x"), WIDE, 4.0, 2.0),
    "exponential": (
        lambda: built(lambda: pm.Exponential("x", pm.Uniform("r", 0.1, 2), observed=X)),
        *(L1("x"), {"bounds": {"x": (0, 5)}}, 1.9, 2.0),
    ),
    "poisson": (
        lambda: built(lambda: pm.Poisson("x", pm.Uniform("r", 0.5, 5), observed=X.astype(int))),
        *(L1("x"), {"bounds": {"x": (0, 20)}}, math.log(10), None),
    ),
    "bernoulli": (
        lambda: built(lambda: pm.Bernoulli("x", pm.Uniform("p", 0.2, 0.8), observed=X.astype(int))),
        *(L1("x"), {}, 2 * math.log(4), math.log(4)),
    ),
    "two columns, added": (lambda: built(regression), L1({"x": 1.0, "z": 2.0}), BOTH, 3.0, 4.0),
    "two columns, Euclidean": (lambda: built(regression), L2(["x", "z"]), BOTH, math.hypot(2, 6), math.hypot(4, 4)),
    "one of two, told apart": (lambda: built(regression), L1("x") + Hamming("z"), BOTH, 12.0, None),
    "places": (
        lambda: built(places),
        *(Geographic("lat", "lon"), {"bounds": {"lat": (46, 49), "lon": (9, 17)}}, None, None),
    ),
}


@pytest.mark.few(7)
@pytest.mark.parametrize("name", EXACT)
def test_constants_are_those_found_by_hand(name):
    model, metric, domain, range_, lipschitz = EXACT[name]
    for papers, known in ((False, range_), (True, lipschitz)):
        if known is not None:
            found = proved(model(), metric, papers=papers, **domain).value
            assert known * (1 - 1e-9) <= found <= known * (1 + 2e-3)


def test_kilometres_are_degrees_where_the_region_is_nearest_to_a_pole():
    bounds = {"lat": (46, 49), "lon": (9, 17)}
    found = proved(built(places), Geographic("lat", "lon"), bounds=bounds).value
    degree = math.pi / 180 * EARTH
    by_hand = math.hypot(3 / degree, 8 / 4 / degree / math.cos(math.radians(49)))  # widths of priors over variances
    assert found == pytest.approx(by_hand, rel=2e-3)


QUICK = ["normal", "exponential", "poisson"]
MORE = [
    *("truncated normal", "half-normal", "beta", "kumaraswamy", "laplace", "cauchy", "half-cauchy", "gamma", "weibull"),
    *("log-normal", "wald", "pareto", "inverse gamma", "von mises", "gumbel", "moyal", "logistic", "logit-normal"),
    *("bernoulli", "binomial", "geometric", "hypergeometric", "categorical", "groups"),
]
LOOSE = ["skew-normal", "student", "ex-gaussian", "rice", "negative binomial", "ordered logistic", "regression"]
"""Whose proofs are bounds, but not near to the worst pair."""


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in (*MORE, *LOOSE))])
def test_no_pair_of_rows_exceeds_the_proof(name, rng):
    likelihood = ZOO[name]
    model = likelihood.model()
    metric = L1(sorted({"y", *(str(data.name) for data in model.data_vars)}))
    both = {papers: proved(model, metric, papers=papers, bounds=likelihood.bounds).value for papers in (False, True)}
    change, distance = pairs(OneRow(model, dp.Domain(bounds=likelihood.bounds)), rng)
    assert (np.ptp(change, axis=1) / distance).max() <= both[False] * (1 + 1e-9)
    assert (np.abs(change).max(axis=1) / distance).max() <= both[True] * (1 + 1e-9)
    assert (np.ptp(change, axis=1) / distance).max() >= (0.05 if name in LOOSE else 0.8) * both[False]


def pairs(one, rng, count=200):
    """Differences of log-likelihoods of pairs of rows, near and far, under many parameters; and L1 distances."""
    first = one.rows(rng, count)
    second = []
    for place, values in enumerate(first):
        low, high = one.low[place], one.high[place]
        whole = np.dtype(one.dtypes[place]).kind in "iub"
        step = np.ones(values.shape) if whole else 10.0 ** rng.uniform(-4, 0, values.shape) * (high - low)
        moved = np.clip(values + step * rng.choice([-1, 1], values.shape), low, high)
        keep = rng.random(count) < (0.5 if len(first) > 1 else 0.0)
        second.append(np.where(keep.reshape(-1, *(1,) * (values.ndim - 1)), values, moved))
    parameters = one.parameters(rng, 150)
    change = one.table(first, parameters) - one.table(second, parameters)
    distance = sum(np.abs(a - b).reshape(count, -1).sum(axis=1) for a, b in zip(first, second, strict=True))
    told = (distance > 1e-9) & np.isfinite(change).all(axis=1)
    return change[told], distance[told]


@pytest.mark.slow
def test_the_range_is_never_above_twice_the_lipschitz_constant():
    for name in ("student", "ex-gaussian", "normal mixture"):
        likelihood = ZOO[name]
        model = likelihood.model()
        both = [proved(model, L1("y"), papers=papers, bounds=likelihood.bounds).value for papers in (False, True)]
        assert both[0] <= 2 * both[1] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("build", "metric", "domain", "where"),
    [
        (lambda: pm.Uniform("x", 0, pm.Uniform("r", 1, 2), observed=X), L1("x"), WIDE, "x"),  # jumps at 0 and at r
        (lambda: pm.Normal("x", pm.Normal("mu"), 1, observed=X), L1("x"), WIDE, "x"),  # parameters without bounds
        (lambda: pm.Normal("x", 0, pm.Uniform("s", 0.5, 2), observed=X), L1("x"), {}, "x"),  # values without bounds
        (lambda: pm.Normal("x", pm.Normal("mu"), 1, observed=X), Hamming(), WIDE, "row"),
    ],
)
def test_what_has_no_constant_is_refused(build, metric, domain, where):
    with pytest.raises(UnsupportedModelError) as caught:
        proved(built(build), metric, **domain)
    assert [problem.where for problem in caught.value.problems] == [where]
    assert "no Lipschitz constant" in str(caught.value)


def test_squares_of_a_column_are_no_linear_predictor():
    """β·x² moves by 2 β x per unit of x, not by β."""

    def square():
        z = pm.Data("z", np.zeros((5, 2)))
        pm.Bernoulli("x", logit_p=(3 * z**2) @ pm.Uniform("b", -0.1, 0.1, shape=2), observed=X.astype(int))

    bounds = {"z": (-1.0, 1.0)}
    with pytest.raises(UnsupportedModelError):
        proved(built(square), L1("z") + Hamming("x"), bounds=bounds)
    found = dp.sensitivity(built(square), dp.Domain(bounds=bounds)).certificates.by_column
    assert math.isinf(found["z"].value)


@pytest.mark.parametrize("metric", [L1(["x", "g"]), L1("x") + Hamming("g")], ids=str)
def test_a_column_that_chooses_a_number_is_not_hidden_by_it(metric):
    """An element of a public table, chosen by a column, stands for that column: no slope is 0 for that reason."""

    def chosen():
        table, g = pm.Data("table", np.array([0.0, 1.0, 5.0])), pm.Data("g", np.zeros(5, dtype=int))
        pm.Normal("x", pm.Uniform("b", **MU) * table[g], 1.0, observed=X)

    found = proved(built(chosen), metric, bounds={"x": (-3, 3), "g": (0, 2)}, public=["table"]).value
    x, b = 3.0, np.linspace(-1, 1, 201)
    change = np.ptp((x - 5 * b) ** 2 / 2 - x**2 / 2)  # from the last element to the first
    assert found >= change / metric.distance({"x": [x], "g": [0]}, {"x": [x], "g": [2]})[0]


def chosen_and_multiplied():
    g = pm.Data("g", np.zeros(5, dtype=int))
    pm.Normal("x", pm.Uniform("p", **MU, shape=6)[g] + pm.Uniform("c", 0, 0.01) * g, 1.0, observed=X)


def met_and_multiplied():
    g = pm.Data("g", np.zeros((5, 2), dtype=int))
    pm.Normal("x", g @ pm.Uniform("b", **MU, shape=2) + pm.Uniform("c", 0, 0.01) * g[:, 0], 1.0, observed=X)


@pytest.mark.few(2)
@pytest.mark.parametrize("build", [chosen_and_multiplied, met_and_multiplied])
@pytest.mark.parametrize("papers", [False, True])
def test_a_whole_number_that_is_used_twice_is_not_hidden_by_one_of_its_uses(build, papers, rng):
    """As a number it moves the mean by c, at most 0.01; as an index, or by the predictor, by up to 2 at once."""
    bounds = {"x": (-3, 3), "g": (0, 5)}
    model = built(build)
    found = dict(proved(model, L1("g") + L1("x"), papers=papers, bounds=bounds).parts)["|Δg|"]
    one = OneRow(model, dp.Domain(bounds=bounds))
    first, parameters, place = one.rows(rng, 150), one.parameters(rng, 150), one.names.index("g")
    second = [np.minimum(values + 1, 5) if at == place else values for at, values in enumerate(first)]
    distance = (second[place] - first[place]).reshape(150, -1).sum(axis=1)
    change = (one.table(first, parameters) - one.table(second, parameters))[distance > 0]
    worst = (np.abs(change).max(axis=1) if papers else np.ptp(change, axis=1)) / distance[distance > 0]
    assert 0.3 * found <= worst.max() <= found * (1 + 1e-9)


def test_places_all_around_the_earth_are_refused():
    for bounds in ({"lat": (46, 49), "lon": (-180, 180)}, {"lat": (46, 90), "lon": (9, 17)}):
        with pytest.raises(UnsupportedModelError, match="less than once around the Earth"):
            proved(built(places), Geographic("lat", "lon"), bounds=bounds)


def test_other_columns_stay_where_they_are():
    """Of two columns told apart, each may change alone: changing both costs the sum of both."""
    found = [
        proved(built(regression), metric, **BOTH).value
        for metric in (Hamming("x") + L1("z"), Hamming(["x", "z"]), Hamming())
    ]
    assert found[1] <= found[2]


def test_extents_are_what_rows_are_clamped_to():
    domain = dp.Domain(metric=L2("z") + L1("x"), bounds={"x": (-3, 3)}, norms={"z": 2.0})

    def build():
        z = pm.Data("z", np.zeros((5, 3)))
        pm.Normal("x", z @ pm.Uniform("b", -1, 1, shape=3), 1.0, observed=X)

    inspection = inspect(built(build), domain, per_unit=True).rows
    extents = {name: extent_of(column) for name, column in columns_of(domain.metric, inspection.columns).items()}
    assert extents["z"].norm == 2.0 and extents["z"].size == 3 and extents["x"].low == -3.0
    assert domain.metric.diameter(extents) == 10.0


def test_a_kink_for_all_parameters_at_once_is_no_obstacle():
    """At x = 0 any slope of max(b x, 0) is possible, at every b; beside it those of one side alone."""

    def build():
        mean = pt.exp(0.3 * pt.maximum(pm.Data("x", X) * pm.Uniform("b", **MU), 0))
        pm.NegativeBinomial("y", mu=mean, alpha=2.0, observed=X.astype(int))

    found = proved(built(build), L1("x") + L1("y"), bounds={"x": (-3, 3), "y": (0, 6)})
    assert 1 <= dict(found.parts)["|Δx|"] <= 2 * 1.001  # by hand: 0.3 (6 - 8/3) where b is 1, 0 where it is -1
