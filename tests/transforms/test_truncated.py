"""Truncated priors, boxes, balls and simplices: densities, transforms, draws, and refusals."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.util import get_untransformed_name
from pytensor.graph.replace import clone_replace
from scipy import stats

import pymc_dp as dp
from pymc_dp.errors import ArgumentError
from pymc_dp.transforms.restricted_priors import BallTransform, TruncatedDirichlet, TruncatedSimplexTransform
from pymc_dp.transforms.truncate import truncate

FAST = "FAST_COMPILE"
Y = np.array([0, 1, 1, 0, 1] * 4)
GROUP = np.array([0, 1, 1, 0, 0] * 4)
BOUNDS = {
    "rate": (None, 5.0),
    "p": (0.01, 0.99),
    "u": (0.2, None),
    "n": ([-1.0, -2.0], 1.0),
    "w": (0.1, None),
    "top": (0.5, 3.0),
}


def build():
    with pm.Model(coords={"group": ["x", "y"], "level": range(3), "unused": range(7)}) as model:
        group = pm.Data("group_index", GROUP)
        scale = pm.Exponential("scale", 1.0)
        rate = pm.Gamma("rate", 2.0, 1.0, initval=1.5)
        p = pm.Beta("p", 2, 3, dims="group")
        pm.Deterministic("odds", p / (1 - p), dims="group")
        u = pm.Uniform("u", 0, 1)
        n = pm.Normal("n", 0, scale, shape=2)
        w = pm.Dirichlet("w", [1.0, 2.0, 3.0], dims="level")
        pm.Potential("pull", -(n.sum() ** 2) * w[0] * rate)
        pm.HalfNormal("top", u)
        pm.Bernoulli("y", p[group], observed=Y)
    return model


@pytest.fixture(scope="module")
def model():
    return build()


@pytest.fixture(scope="module")
def bounded(model):
    return truncate(model, BOUNDS)


def logp_at(model, values, **kwargs):
    """Log-density, without Jacobians, at values of the variables themselves."""
    point = {}
    for rv in model.free_RVs:
        transform, value = model.rvs_to_transforms[rv], np.asarray(values[rv.name], dtype=float)
        where = value
        if transform is not None:
            inputs = [values_of(model, item, values) for item in rv.owner.inputs]
            where = transform.forward(value, *inputs).eval(mode=FAST)
        point[model.rvs_to_values[rv].name] = where
    return model.compile_logp(jacobian=False, mode=FAST, **kwargs)(point)


def values_of(model, item, values):
    known = {rv: np.asarray(values[rv.name], dtype=float) for rv in model.free_RVs}
    known = {rv: rv.type.filter_variable(rv.type.make_constant(v)) for rv, v in known.items()}
    return item if not hasattr(item.type, "dtype") else clone_replace(item, known, rebuild_strict=False)


def points(n, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield {
            "scale": 1.3, "rate": rng.uniform(0.1, 4.9), "p": rng.uniform(0.02, 0.98, 2), "u": 0.6,
            "n": rng.uniform(-0.9, 0.9, 2), "w": 0.1 + 0.7 * rng.dirichlet([1, 1, 1]), "top": rng.uniform(0.6, 2.9),
        }  # fmt: skip


@pytest.mark.slow
def test_density_is_the_original_up_to_a_constant(model, bounded, seed):
    gaps = [logp_at(bounded, point) - logp_at(model, point) for point in points(3, seed)]
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-9)
    assert gaps[0] > 0


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("prior", "law", "low", "high"),
    [
        (lambda: pm.Beta("v", 2, 3), stats.beta(2, 3), 0.2, 0.6),
        (lambda: pm.Gamma("v", 2.0, 1.0), stats.gamma(2), 1.0, None),
        (lambda: pm.Gamma("v", 2.0, 1.0), stats.gamma(2), None, 4.0),
        (lambda: pm.Normal("v", 0, 1), stats.norm(), -1.0, 2.5),
        (lambda: pm.Normal("v", 0, 1), stats.norm(), None, 0.5),
        (lambda: pm.Uniform("v", 0, 2), stats.uniform(0, 2), 0.5, None),
        (lambda: pm.HalfNormal("v", 1.0), stats.halfnorm(), 0.5, 2.0),
        (lambda: pm.StudentT("v", nu=4, mu=0, sigma=1), stats.t(4), -2.0, 3.0),
        (lambda: pm.InverseGamma("v", 3, 2), stats.invgamma(3, scale=2), 0.2, 5.0),
    ],
)
def test_truncated_priors_are_normalised(prior, law, low, high):
    with pm.Model() as model:
        prior()
    rv = truncate(model, {"v": (low, high)})["v"]
    first, last = law.support() if None in (low, high) else (low, high)
    first, last = low if low is not None else first, high if high is not None else last
    mass = law.cdf(last) - law.cdf(first)
    places = np.linspace(max(first, -5), min(last, 5), 9)[1:-1]
    np.testing.assert_allclose(
        pm.logp(rv, places).eval(mode=FAST), law.logpdf(places) - np.log(mass), rtol=1e-6, atol=1e-7
    )
    if low is not None:
        assert np.isneginf(pm.logp(rv, low - 1e-6).eval(mode=FAST))
    if high is not None:
        assert np.isneginf(pm.logp(rv, high + 1e-6).eval(mode=FAST))


def test_everything_else_is_as_it_was(model, bounded):
    assert [rv.name for rv in bounded.free_RVs] == [rv.name for rv in model.free_RVs]
    assert list(bounded.named_vars) == list(model.named_vars)
    assert [v.name for v in bounded.deterministics] == ["odds"]
    assert [v.name for v in bounded.potentials] == ["pull"]
    assert bounded.named_vars_to_dims == model.named_vars_to_dims
    assert bounded.coords == model.coords
    assert {k: v.eval() for k, v in bounded.dim_lengths.items()} == {k: v.eval() for k, v in model.dim_lengths.items()}
    assert bounded["scale"].owner.op == model["scale"].owner.op
    assert bounded.rvs_to_initial_values[bounded["rate"]] == 1.5
    assert [rv.type.ndim for rv in bounded.free_RVs] == [rv.type.ndim for rv in model.free_RVs]


@pytest.mark.filterwarnings("ignore:The effect of Potentials")
def test_draws_and_starts_lie_within_the_bounds(bounded, seed):
    point = bounded.initial_point()
    assert np.isfinite(bounded.compile_logp(mode=FAST)(point))
    with bounded:
        prior = pm.sample_prior_predictive(
            30, var_names=["p", "u", "n", "w", "rate", "top"], random_seed=seed, compile_kwargs={"mode": FAST}
        ).prior
    assert prior.p.dims == ("chain", "draw", "group")
    for name, low, high in [("p", 0.01, 0.99), ("u", 0.2, 1), ("n", [-1, -2], 1), ("w", 0.1, 0.8), ("rate", 0, 5)]:
        assert ((prior[name] >= low) & (prior[name] <= high)).all()


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ({}, "bounds must map names"),
        ({"q": (0, 1)}, "no free variable.*Did you mean 'p'|no free variable"),
        ({"scal": (0, 1)}, "Did you mean 'scale'"),
        ({"y": (0, 1)}, "dp.Domain"),
        ({"odds": (0, 1)}, "computed from others"),
        ({"p": 0.5}, "must be a pair"),
        ({"p": (None, None)}, "both None"),
        ({"p": (0.9, 0.1)}, "low < high, got \\(0.9, 0.1\\)"),
        ({"p": (0.5, 0.5)}, "low < high"),
        ({"p": (-0.5, 0.5)}, "reach outside the support \\(0, 1\\)"),
        ({"rate": (-1, None)}, "reach outside the support \\(0, inf\\)"),
        ({"u": (0.5, 2)}, "reach outside the support \\(0, 1\\)"),
        ({"p": ([0.1, 0.2, 0.3], 0.9)}, "broadcast to its shape \\(2,\\)"),
        ({"p": (np.nan, 0.9)}, "finite numbers"),
        ({"p": ("low", 0.9)}, "finite numbers"),
        ({"p": (1.0, None)}, "leave nothing"),
        ({"w": (0.1, 0.9)}, "lower bounds only"),
        ({"w": (0.4, None)}, "sum below 1"),
        ({"rate": (2.0, 5.0)}, "initval"),
    ],
)
def test_wrong_bounds_are_refused(model, bounds, text):
    with pytest.raises(ArgumentError, match=text):
        truncate(model, bounds)


def test_priors_without_a_rule_are_refused():
    with pm.Model() as model:
        edge = pm.HalfNormal("edge")
        pm.MvNormal("m", np.zeros(2), np.eye(2))
        pm.Uniform("u", 0, edge)
        pm.Normal("o", 0, 1, shape=2, transform=pm.distributions.transforms.ordered, initval=[0, 1])
        pm.Beta("far", 300, 700)
        pm.Flat("f")
        pm.Poisson("count", 3)
        pm.SkewNormal("skew", alpha=1)
    for name, bounds, text in [
        ("m", (0, 1), "multivariate"),
        ("u", (0.1, 0.2), "not constants"),
        ("o", (-1, 2), "set by hand"),
        ("far", (0.6, 0.9), "no mass"),
        ("f", (0, None), "two finite bounds"),
        ("count", (1, 4), "discrete"),
        ("skew", (0, 1), "no distribution function"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            truncate(model, {name: bounds})


@pytest.mark.parametrize("bounds", [(-1.5, None), (-1.5, 0.2)])
def test_no_bound_keeps_what_it_was_computed_from(bounds):
    """A number in place of the rows that it came from would hide from inspection that the prior looks at rows."""
    rows = np.array([0.3, 0.9, 0.5])
    with pm.Model() as model:
        u = pm.Uniform("u", -2, pt.as_tensor(rows).max())
        pm.Normal("y", u, 1.0, observed=rows)
    with pytest.raises(ArgumentError, match="not constants"):
        truncate(model, {"u": bounds})


def model_of(**given):
    with pm.Model(coords={"term": ["a", "b", "c"]}) as model:
        w = pm.Normal("w", 0.0, 2.0, dims="term", **given)
        pm.Normal("y", pm.Data("x", np.ones((4, 3))) @ w, 1.0, observed=np.zeros(4))
    return model


@pytest.fixture(scope="module")
def ball():
    return dp.truncate(model_of(), norms={"w": 1.5})


def test_the_density_is_the_normal_one_inside_and_none_outside(ball):
    value = np.array([[0.5, -1.0, 0.2], [0.0, 0.0, 0.0], [1.5, 0.1, 0.0]])
    found = [float(pm.logp(ball["w"], one).eval()) for one in value]
    expected = stats.norm(0, 2).logpdf(value).sum(axis=1)
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1])
    assert found[2] == -np.inf


@pytest.mark.slow
def test_the_transform_is_a_bijection_with_its_jacobian(rng):
    transform, radius = BallTransform(), 1.5
    for _ in range(5):
        z = rng.normal(size=3) * 10.0 ** rng.uniform(-2, 1)
        w = transform.backward(z, radius).eval()
        assert np.linalg.norm(w) < radius
        assert transform.forward(w, radius).eval() == pytest.approx(z, rel=1e-6)
        step = 1e-6 * max(1.0, abs(z).max())
        columns = [
            (transform.backward(z + h, radius).eval() - transform.backward(z - h, radius).eval()) / (2 * step)
            for h in step * np.eye(3)
        ]
        found = float(transform.log_jac_det(np.asarray(z), radius).eval())
        assert found == pytest.approx(np.linalg.slogdet(np.array(columns))[1], abs=1e-3)
    assert np.linalg.norm(transform.backward(np.full(3, 1e100), radius).eval()) <= radius


@pytest.mark.slow
def test_draws_lie_within_and_have_the_right_length(ball):
    found = np.linalg.norm(pm.draw(ball["w"], 3000, random_seed=1), axis=1)
    assert found.max() <= 1.5
    chi = stats.chi(3, scale=2.0)
    assert stats.kstest(found, lambda x: chi.cdf(x) / chi.cdf(1.5)).pvalue > 1e-3


def several():
    with pm.Model() as model:
        pm.Normal("mean", 0.0, 1.0)
        pm.Normal("shifted", 0.1, 1.0, shape=2)
        pm.Normal("uneven", 0.0, np.array([1.0, 2.0]), shape=2)
        pm.Normal("deep", 0.0, pm.HalfNormal("s", 1.0), shape=2)
        pm.Laplace("other", 0.0, 1.0, shape=2)
        pm.Normal("table", 0.0, 1.0, shape=(2, 2))
        pm.Normal("w", 0.0, 1.0, shape=2)
        pm.Normal("far", 0.0, 1.0, shape=2, initval=np.array([3.0, 0.0]))
    return model


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"norms": {"mean": 1.0}}, "two entries or more"),
        ({"norms": {"shifted": 1.0}}, "mean 0 and one sd"),
        ({"norms": {"uneven": 1.0}}, "mean 0 and one sd"),
        ({"norms": {"deep": 1.0}}, "numbers"),
        ({"norms": {"other": 1.0}}, "normal prior"),
        ({"norms": {"table": 1.0}}, "two entries or more"),
        ({"norms": {"w": 0.0}}, "> 0"),
        ({"norms": {"w": np.inf}}, "norms"),
        ({"norms": {"w": 1.0}, "bounds": {"w": (-1, 1)}}, "one of them"),
        ({"norms": {"v": 1.0}}, "no free variable"),
        ({"norms": {"far": 1.0}}, "initval"),
        ({"norms": [1.0]}, "map names"),
    ],
)
def test_what_has_no_ball_is_refused(given, text):
    with pytest.raises(ArgumentError, match=text):
        dp.truncate(several(), **given)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("scale", [lambda x: x.std(), lambda x: abs(x[0, 0]), lambda x: abs(x[0])])
def test_no_prior_keeps_what_it_was_computed_from(scale, shared):
    """A number in the place of the rows that it came from would hide from inspection that the prior looks at rows."""
    rows = np.full((4, 2), 0.25)
    with pm.Model() as model:
        x = pm.Data("x", rows) if shared else pt.as_tensor(rows)
        w = pm.Normal("w", 0.0, scale(x), shape=2)
        pm.Bernoulli("y", logit_p=x @ w, observed=[0, 1, 1, 0])
    with pytest.raises(ArgumentError, match="arrays"):
        dp.truncate(model, norms={"w": 1.0})


def test_density_is_the_dirichlet_inside_and_nothing_outside():
    a, lower = np.array([2.0, 0.5, 4.0]), np.array([0.1, 0.05, 0.2])
    rv = TruncatedDirichlet.dist(a, lower)
    inside = np.array([[0.3, 0.3, 0.4], [0.1, 0.05, 0.85], [0.5, 0.2, 0.3]])
    found = pm.logp(rv, inside).eval(mode=FAST)
    np.testing.assert_allclose(found, [stats.dirichlet(a).logpdf(p) for p in inside])
    outside = np.array([[0.09, 0.31, 0.6], [0.5, 0.04, 0.46], [0.6, 0.3, 0.1], [-0.1, 0.5, 0.6]])
    assert np.isneginf(pm.logp(rv, outside).eval(mode=FAST)).all()


def test_draws_are_exact_not_sequential(seed):
    draws = pm.draw(TruncatedDirichlet.dist(np.ones(3), 0.2), 4000, random_seed=seed, mode=FAST)
    assert draws.shape == (4000, 3)
    assert (draws >= 0.2).all()
    for place in range(3):  # 1 - F(p) = ((.6 - p) / .4)^2
        assert stats.kstest((0.6 - draws[:, place]) / 0.4, lambda x: np.asarray(x) ** 2).pvalue > 0.001


@pytest.fixture(scope="module")
def batched():
    with pm.Model(coords={"group": ["a", "b"], "level": range(3)}) as model:
        TruncatedDirichlet("p", np.ones(3), 0.1, dims=("group", "level"))
        TruncatedDirichlet("q", [[900.0, 50, 50], [1, 1, 1]], [0.2, 0.1, 0.1])
        TruncatedDirichlet("r", np.ones(4), 0.01, shape=(5, 4))
    return model


def test_start_lies_inside(batched):
    point = batched.initial_point()
    assert all(np.isfinite(value).all() for value in point.values())
    assert [get_untransformed_name(name) for name in point] == ["p", "q", "r"]
    assert np.isfinite(batched.compile_logp(mode=FAST)(point))


def test_transform_is_inverted_and_its_jacobian_right():
    transform, lower = TruncatedSimplexTransform(), np.array([0.1, 0.05, 0.2])
    inputs = TruncatedDirichlet.dist(np.ones(3), lower).owner.inputs
    places = np.array([0.3, -1.2])

    def backward(value):
        return transform.backward(np.asarray(value), *inputs).eval(mode=FAST)

    p = backward(places)
    assert (p >= lower).all()
    np.testing.assert_allclose(p.sum(), 1)
    np.testing.assert_allclose(transform.forward(p, *inputs).eval(mode=FAST), places)
    step = 1e-6
    slopes = [(backward(places + step * e) - backward(places - step * e))[:2] / (2 * step) for e in np.eye(2)]
    found = transform.log_jac_det(pt.as_tensor(places), *inputs).eval(mode=FAST)
    np.testing.assert_allclose(found, np.log(abs(np.linalg.det(slopes))), atol=1e-7)


def test_parameters_must_be_numbers():
    with pm.Model():
        scale = pm.Exponential("scale", 1.0)
        with pytest.raises(ArgumentError, match="normalising constant"):
            TruncatedDirichlet("p", scale * np.ones(3), 0.1)
        with pytest.raises(ArgumentError, match="lower of a truncated Dirichlet"):
            TruncatedDirichlet("p", np.ones(3), pm.Data("least", 0.1))


@pytest.mark.parametrize(
    ("a", "lower", "text"),
    [
        (1.0, 0.1, "one entry per category"),
        ([1.0, 0.0, 1.0], 0.1, "a must be finite and > 0"),
        ([1.0, 1.0, 1.0], 0.4, "Take less than 0.333"),
        ([1.0, 1.0, 1.0], -0.1, "lower must be >= 0"),
        ([1.0, 1.0, 1.0], [0.1, 0.1], "2 entries for 3"),
        ("many", 0.1, "a must be numbers"),
    ],
)
def test_what_is_no_truncated_dirichlet_is_refused(a, lower, text):
    with pytest.raises(ArgumentError, match=text):
        TruncatedDirichlet.dist(a, lower)
