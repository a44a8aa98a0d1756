"""Truncated priors, boxes, balls and simplices: densities, transforms, draws, and refusals."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dp as dp
from pymc_dp.transforms.restricted_priors import BallTransform, TruncatedSimplexTransform

FAST = "FAST_COMPILE"
LAWS = [
    (lambda: pm.Beta("v", 2, 3), stats.beta(2, 3), 0.2, 0.6),
    (lambda: pm.Gamma("v", 2.0, 1.0), stats.gamma(2), 1.0, None),
    (lambda: pm.Gamma("v", 2.0, 1.0), stats.gamma(2), None, 4.0),
    (lambda: pm.Normal("v", 0, 1), stats.norm(), -1.0, 2.5),
    (lambda: pm.Normal("v", 0, 1), stats.norm(), None, 0.5),
    (lambda: pm.Uniform("v", 0, 2), stats.uniform(0, 2), 0.5, None),
    (lambda: pm.HalfNormal("v", 1.0), stats.halfnorm(), 0.5, 2.0),
    (lambda: pm.StudentT("v", nu=4, mu=0, sigma=1), stats.t(4), -2.0, 3.0),
    (lambda: pm.InverseGamma("v", 3, 2), stats.invgamma(3, scale=2), 0.2, 5.0),
]


@pytest.mark.few(6)
@pytest.mark.parametrize(("prior", "law", "low", "high"), LAWS)
def test_truncated_priors_are_normalised(prior, law, low, high):
    with pm.Model() as model:
        prior()
    rv = dp.truncate(model, {"v": (low, high)})["v"]
    first, last = (given if given is not None else end for given, end in zip((low, high), law.support(), strict=True))
    places = np.linspace(max(first, -5), min(last, 5), 9)[1:-1]
    expected = law.logpdf(places) - np.log(law.cdf(last) - law.cdf(first))
    np.testing.assert_allclose(pm.logp(rv, places).eval(mode=FAST), expected, rtol=1e-6, atol=1e-7)
    for end, beyond in ((low, -1e-6), (high, 1e-6)):
        assert end is None or np.isneginf(pm.logp(rv, end + beyond).eval(mode=FAST))


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"group": ["x", "y"], "level": range(3), "term": ["a", "b", "c"]}) as made:
        group = pm.Data("group_index", np.array([0, 1, 1, 0, 0] * 4))
        edge = pm.HalfNormal("edge")
        rate = pm.Gamma("rate", 2.0, 1.0, initval=1.5)
        p = pm.Beta("p", 2, 3, dims="group")
        pm.Deterministic("odds", p / (1 - p), dims="group")
        pm.Uniform("u", 0, 1)
        n = pm.Normal("n", 0, 1, shape=2)
        w = pm.Dirichlet("w", [1.0, 2.0, 3.0], dims="level")
        pm.Normal("ball", 0.0, 2.0, dims="term")
        pm.Potential("pull", -(n.sum() ** 2) * w[0] * rate)
        pm.Bernoulli("y", p[group], observed=np.array([0, 1, 1, 0, 1] * 4))
        # What has no box, or no ball.
        pm.MvNormal("many", np.zeros(2), np.eye(2))
        pm.Uniform("moving", 0, edge)
        pm.Normal("ordered", 0, 1, shape=2, transform=pm.distributions.transforms.ordered, initval=[0, 1])
        pm.Uniform("other ends", 0, 4, default_transform=pm.distributions.transforms.Interval(1, 2), initval=1.5)
        pm.Beta("far", 300, 700)
        pm.Flat("flat")
        pm.Poisson("count", 3)
        pm.SkewNormal("skew", alpha=1)
        pm.Normal("shifted", 0.1, 1.0, shape=2)
        pm.Normal("uneven", 0.0, np.array([1.0, 2.0]), shape=2)
        pm.Normal("deep", 0.0, pm.HalfNormal("s", 1.0), shape=2)
        pm.Normal("table", 0.0, 1.0, shape=(2, 2))
        pm.Normal("started", 0.0, 1.0, shape=2, initval=np.array([3.0, 0.0]))
    return made


BOUNDS = {"rate": (None, 5.0), "p": (0.01, 0.99), "u": (0.2, None), "n": ([-1.0, -2.0], 1.0), "w": (0.1, None)}


@pytest.fixture(scope="module")
def bounded(model):
    return dp.truncate(model, BOUNDS, norms={"ball": 1.5})


@pytest.mark.filterwarnings("ignore:The effect of Potentials")
def test_draws_and_starts_lie_within(bounded, seed):
    assert np.isfinite(bounded.initial_point()["p_interval__"]).all()
    draws = pm.draw([bounded[name] for name in (*BOUNDS, "ball")], 30, random_seed=seed, mode=FAST)
    drawn = dict(zip((*BOUNDS, "ball"), draws, strict=True))
    for name, low, high in [("p", 0.01, 0.99), ("u", 0.2, 1), ("n", [-1, -2], 1), ("w", 0.1, 0.8), ("rate", 0, 5)]:
        assert ((drawn[name] >= low) & (drawn[name] <= high)).all()
    assert np.linalg.norm(drawn["ball"], axis=1).max() <= 1.5


REFUSED = [
    *((text, bounds, None) for text, bounds in {
        "bounds must map names": {}, "no free variable": {"q": (0, 1)}, "dp.Domain": {"y": (0, 1)},
        "Did you mean 'edge'": {"edgee": (0, 1)}, "computed from others": {"odds": (0, 1)},
        "must be a pair": {"p": 0.5}, "both None": {"p": (None, None)}, r"low < high, got \(0.9": {"p": (0.9, 0.1)},
        r"reach outside the support \(0, 1\)": {"p": (-0.5, 0.5)}, r"the support \(0, inf\)": {"rate": (-1, None)},
        r"broadcast to its shape \(2,\)": {"p": ([0.1, 0.2, 0.3], 0.9)}, "finite numbers": {"p": (np.nan, 0.9)},
        "leave nothing": {"p": (1.0, None)}, "lower bounds only": {"w": (0.1, 0.9)}, "sum below 1": {"w": (0.4, None)},
        "initval": {"rate": (2.0, 5.0)}, "multivariate": {"many": (0, 1)}, "not constants": {"moving": (0.1, 0.2)},
        "set by hand": {"ordered": (-1, 2)}, "'interval', set by hand": {"other ends": (0.5, 3)},
        "no mass": {"far": (0.6, 0.9)}, "two finite bounds": {"flat": (0, None)}, "discrete": {"count": (1, 4)},
        "no distribution function": {"skew": (0, 1)},
    }.items()),
    *((text, None, {name: norm}) for name, norm, text in (
        ("u", 1.0, "two entries or more"), ("table", 1.0, "two entries or more"), ("shifted", 1.0, "mean 0 and one sd"),
        ("uneven", 1.0, "mean 0 and one sd"), ("deep", 1.0, "numbers"), ("many", 1.0, "normal prior"),
        ("n", 0.0, "> 0"), ("n", np.inf, "norms"), ("v", 1.0, "no free variable"), ("started", 1.0, "initval"),
    )),
    ("one of them", {"n": (-1, 1)}, {"n": 1.0}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "bounds", "norms"), REFUSED)
def test_what_cannot_be_truncated_is_refused(model, text, bounds, norms):
    given = {**({} if bounds is None else {"bounds": bounds}), **({} if norms is None else {"norms": norms})}
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.truncate(model, **given)


ROWS = np.full((4, 2), 0.25)
COMPUTED = [
    (lambda x: pm.Uniform("u", -2, x.max()), {"bounds": {"u": (-1.5, 0.2)}}),
    (lambda x: pm.Uniform("u", -2, x.max()), {"bounds": {"u": (-1.5, None)}}),
    *((lambda x, f=f: pm.Normal("w", 0.0, f(x), shape=2), {"norms": {"w": 1.0}})
      for f in (lambda x: x.std(), lambda x: abs(x[0, 0]), lambda x: abs(x[0]))),
]  # fmt: skip


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("prior", "given"), COMPUTED)
def test_no_prior_keeps_what_it_was_computed_from(prior, given, shared):
    """A number in the place of the rows that it came from would hide from inspection that the prior looks at rows."""
    with pm.Model() as model:
        x = pm.Data("x", ROWS) if shared else pt.as_tensor(ROWS)
        pm.Bernoulli("y", logit_p=(x * prior(x)).sum(axis=1), observed=[0, 1, 1, 0])
    with pytest.raises(dp.errors.ArgumentError, match="arrays|not constants"):
        dp.truncate(model, **given)


def test_a_ball_has_the_normal_density_inside_and_none_outside(bounded):
    value = np.array([[0.5, -1.0, 0.2], [0.0, 0.0, 0.0], [1.5, 0.1, 0.0]])
    found = [float(pm.logp(bounded["ball"], one).eval(mode=FAST)) for one in value]
    expected = stats.norm(0, 2).logpdf(value).sum(axis=1)
    assert found[0] - found[1] == pytest.approx(expected[0] - expected[1])
    assert found[2] == -np.inf


A, LOWER = np.array([2.0, 0.5, 4.0]), np.array([0.1, 0.05, 0.2])
TRANSFORMS = {
    "ball": (BallTransform(), (1.5,), np.array([0.3, -1.2, 0.4]), 3),
    "simplex": (
        TruncatedSimplexTransform(), dp.TruncatedDirichlet.dist(A, LOWER).owner.inputs, np.array([0.3, -1.2]), 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_inverted_and_their_jacobians_right(name):
    transform, inputs, at, free = TRANSFORMS[name]

    def backward(value):
        return transform.backward(np.asarray(value), *inputs).eval(mode=FAST)

    inside = backward(at)
    assert (
        np.linalg.norm(inside) < 1.5 if name == "ball" else ((inside >= LOWER).all() and abs(inside.sum() - 1) < 1e-9)
    )
    np.testing.assert_allclose(transform.forward(inside, *inputs).eval(mode=FAST), at, rtol=1e-6)
    slopes = [(backward(at + h) - backward(at - h))[:free] / 2e-6 for h in 1e-6 * np.eye(len(at))]
    found = transform.log_jac_det(pt.as_tensor(at), *inputs).eval(mode=FAST)
    np.testing.assert_allclose(found, np.linalg.slogdet(np.array(slopes))[1], atol=1e-6)


def test_a_truncated_dirichlet_is_the_dirichlet_inside_and_nothing_outside(seed):
    rv = dp.TruncatedDirichlet.dist(A, LOWER)
    inside = np.array([[0.3, 0.3, 0.4], [0.1, 0.05, 0.85], [0.5, 0.2, 0.3]])
    found = pm.logp(rv, inside).eval(mode=FAST)
    np.testing.assert_allclose(found, [stats.dirichlet(A).logpdf(p) for p in inside])
    outside = np.array([[0.09, 0.31, 0.6], [0.5, 0.04, 0.46], [0.6, 0.3, 0.1], [-0.1, 0.5, 0.6]])
    assert np.isneginf(pm.logp(rv, outside).eval(mode=FAST)).all()
    draws = pm.draw(dp.TruncatedDirichlet.dist(np.ones(3), 0.2), 4000, random_seed=seed, mode=FAST)
    assert (draws >= 0.2).all()
    for place in range(3):  # 1 - F(p) = ((.6 - p) / .4)^2
        assert stats.kstest((0.6 - draws[:, place]) / 0.4, lambda x: np.asarray(x) ** 2).pvalue > 0.001


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
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.TruncatedDirichlet.dist(a, lower)
