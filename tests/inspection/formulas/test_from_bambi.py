"""What bambi's formula means stays, and nothing but the columns comes from rows."""

import bambi
import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.given import from_bambi
from pymc_dp.inspection.interpreted import plain_function
from tests.inspection.formulas.models import BOUNDS, GIVEN, bounded, table

pytestmark = pytest.mark.usefixtures("interpreted")
POISSON = bambi.Likelihood("Poisson", params=["mu"], parent="mu")
SOFT = bambi.Link("softplus", link=np.log, linkinv=np.exp, linkinv_backend=pm.math.log1pexp)
OWN = bambi.Family("own", POISSON, SOFT)


class Nosy(bambi.Family):
    """A family that looks at the response."""

    @staticmethod
    def transform_backend_kwargs(kwargs):
        return kwargs | {"mu": kwargs["mu"] + kwargs["observed"].mean()}


FORMULAS = {
    "y ~ x + w + g": {},
    "y ~ 0 + g:h + (x|g) + (g|h) + (1|g:h)": {},
    "y ~ bs(x, df=3, lower_bound=0, upper_bound=1) + I(x**2) + np.log(w) + S(g)": {},
    "b ~ x": {"family": "bernoulli"},
    "h['u'] ~ x": {"family": "bernoulli", "link": "probit"},
    "b ~ w": {"family": "bernoulli", "link": "cloglog"},
    "c ~ x + offset(np.log(w))": {"family": "poisson"},
    "y ~ w": {"family": "t"},
    "x ~ w": {"family": "beta"},
    "w ~ x": {"family": "gamma", "link": "log"},
    "w ~ g": {"family": "exponential"},
    "p(k, n) ~ x + (1|g)": {"family": "binomial"},
    "prop(k, n) ~ x": {"family": "beta_binomial"},
    "g ~ 0 + x": {"family": "cumulative"},
    "g ~ x + (1|h)": {"family": "categorical"},
    "counts(c, k, m) ~ x + (x|g)": {"family": "multinomial"},
    "counts(c, k) ~ x": {"family": "dirichlet_multinomial"},
    "m ~ x": {"family": "zero_inflated_poisson"},
    "p(k, n) ~ w": {"family": "zero_inflated_binomial"},
    "c ~ w": {"family": "hurdle_poisson"},
    "w ~ h": {"family": "hurdle_gamma"},
    "w ~ x + h": {"family": "wald", "link": "log"},
    "y ~ g": {"family": "vonmises"},
    "y ~ x": {"family": "asymmetriclaplace"},
    "c ~ x:w": {"family": OWN},
    "truncated(y, lb=-3, ub=n) ~ x": {},
    "constrained(w, lb=0.5) ~ x": {"family": "lognormal"},
    bambi.Formula("y ~ x + offset(w)", "sigma ~ w + (1|g)"): {},
    bambi.Formula("m ~ x", "psi ~ w", "alpha ~ g"): {"family": "zero_inflated_negativebinomial"},
}


def densities(model, point):
    """Log-densities of a model's variables, by name, at values of its free ones."""
    values = [model.rvs_to_values[rv] for rv in model.basic_RVs]
    logps = model.logp(sum=False, jacobian=False)
    plain = {}
    for rv in model.free_RVs:
        transform = model.rvs_to_transforms[rv]
        value = np.sort(point[rv.name], axis=-1) if rv.ndim else point[rv.name]  # cutpoints are in order
        plain[model.rvs_to_values[rv]] = (
            value if transform is None else transform.forward(value, *rv.owner.inputs).eval()
        )
    free = [value for value in values if value in plain]
    found = plain_function(free, logps)(*(plain[value] for value in free))
    return dict(zip([rv.name for rv in model.basic_RVs], found, strict=True))


def point_of(model, seed=3):
    rng = np.random.default_rng(seed)
    return {rv.name: np.abs(rng.normal(0.2, 0.1, size=tuple(rv.shape.eval()))) for rv in model.free_RVs}


@pytest.mark.few(2)
@pytest.mark.parametrize("formula", FORMULAS)
def test_the_density_is_that_of_bambi(formula):
    options = {"priors": {**GIVEN, "sigma": bambi.Prior("HalfNormal", sigma=2)}, "center_predictors": False}
    options = {**options, **FORMULAS[formula]}
    if options.get("family"):
        spread = {"t": "sigma", "vonmises": "kappa"}.get(options["family"])  # bambi scales its prior by the rows
        options["priors"] = {**GIVEN, **({spread: bambi.Prior("HalfNormal", sigma=2)} if spread else {})}
    if isinstance(formula, bambi.Formula):
        options["priors"] |= dict.fromkeys(formula.additionals_lhs, GIVEN)
    source, model, _ = bounded(formula, **options)
    source.build()
    theirs = source.backend.model
    assert [rv.name for rv in model.free_RVs] == [rv.name for rv in theirs.free_RVs]
    assert all(model.named_vars_to_dims.get(rv.name) == theirs.named_vars_to_dims.get(rv.name) for rv in model.free_RVs)
    point = point_of(model)
    found, expected = densities(model, point), densities(theirs, point)
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9)


LOCAL = {
    "y ~ scale(x) + np.log(w) + I(x**2):g + (w|g)": {},
    "y ~ hsgp(x, m=4, c=1.5, by=g) + bs(w, df=5)": {},
    "p(k, n) ~ x": {"family": "binomial"},
    "counts(c, k, m) ~ x": {"family": "multinomial"},
    "truncated(w, ub=n) ~ hsgp(x, y, m=3, L=2)": {"family": "lognormal"},
}


@pytest.mark.few(3)
@pytest.mark.parametrize("formula", LOCAL)
def test_one_row_moves_itself_only_whatever_it_holds(formula, recwarn):
    options, strange = LOCAL[formula], table(0)
    _, model, domain = bounded(formula, **options)
    strange = strange.astype(dict.fromkeys("ckmn", float))
    strange.loc[7, ["y", "x", "w", "c", "k", "n"]] = np.inf, np.inf, -1e300, np.nan, 1e300, -np.inf
    strange.loc[7, "g"] = np.nan if strange.loc[7, "g"] != "b" else "c"
    strange.loc[7, "status"] = np.nan
    source = bambi.Model(formula, table(0), **options)
    source.data = strange
    moved, found = dp.models.from_bambi(source, dp.Domain(bounds={name: BOUNDS[name] for name in BOUNDS}))
    assert found == domain
    (rv,), (other,) = model.observed_RVs, moved.observed_RVs
    differs = model.rvs_to_values[rv].data != moved.rvs_to_values[other].data
    assert set(np.flatnonzero(differs.reshape(len(strange), -1).any(axis=1))) <= {7}
    for data in model.data_vars:
        differs = data.get_value() != moved[data.name].get_value()
        if data.name in domain.public:
            assert not differs.any()
            continue
        assert set(np.flatnonzero(differs.reshape(len(strange), -1).any(axis=1))) <= {7}
        if data.name in domain.bounds:
            low, high = domain.bounds[data.name]
            assert (moved[data.name].get_value() >= low).all() and (moved[data.name].get_value() <= high).all()
    assert not recwarn.list


REFUSED = {
    "strings": ("y ~ s", {}, "astype(pd.CategoricalDtype"),
    "labels without an order": ("y ~ u", {}, "ordered=True"),
    "intervals": ("y ~ sliced", {}, "its labels are intervals, whose ends may be those of its rows"),
    "groups of numbers": ("y ~ (1|b)", {}, "groups are the values of b"),
    "levels of numbers": ("y ~ C(b)", {}, "levels of C(b)"),
    "a family that reads rows": ("c ~ x", {"family": Nosy("nosy", POISSON, "log")}, "computes something"),
    "weights": ("weighted(y, w * 2) ~ x", {}, "Write weighted(y, w)"),
    "successes that are computed": ("p(k, n + 1) ~ x", {"family": "binomial"}, "trials a column or a whole number"),
    "censoring": ("censored(w, status) ~ x", {"family": "weibull"}, "pm.Censored(..., upper=end)"),
    "labels that are counted": ("counts(c, g) ~ x", {"family": "multinomial"}, "column of numbers"),
    "groups of a process": ("y ~ hsgp(x, m=3, c=2, by=b)", {}, "groups of hsgp"),
    "numbers of a process": ("y ~ hsgp(x, m=3, c=SHIFT)", {}, "no number or label"),
    "a column of another formula": (bambi.Formula("y ~ x", "sigma ~ free"), {}, 'bounds={"free"'),
    "missing rows": ("y ~ x", {"dropna": True}, "private count"),
    "no bounds": ("y ~ free", {}, 'bounds={"free"'),
    "not finite": ("y ~ np.log(x)", {}, "not a finite number"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_may_come_from_rows_is_refused_with_a_remedy(name):
    formula, options, remedy = REFUSED[name]
    kinds = {"u": pd.Categorical(np.resize(list("pq"), 40)), "sliced": pd.qcut(np.arange(40.0), 3)}
    data = table(0).assign(free=np.linspace(0, 5, 40), **kinds)
    if name == "strings":
        data["s"] = np.resize(list("pq"), 40)
    real = bambi.Model("y ~ x", table(0))
    with pytest.raises(dp.errors.UnsupportedModelError) as refused:
        try:
            bounded(formula, data=data, **options)
        except (
            ValueError,
            AssertionError,
            KeyError,
            TypeError,
            AttributeError,
        ):  # bambi's own, of what it cannot build
            real.formula, real.data = bambi.Formula(formula), data
            from_bambi(real, dp.Domain(bounds={name: pair for name, pair in BOUNDS.items() if name in data}))
    assert remedy in " ".join(map(str, refused.value.problems))


@pytest.mark.parametrize("argument", ["np.log(np.abs(x))", "np.reciprocal(x)"])
def test_a_basis_that_is_no_number_for_a_row_is_no_error(argument):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(0.1, 1, 60) * rng.choice([-1, 1], 60), "y": rng.normal(size=60)})
    source = bambi.Model(f"y ~ hsgp({argument}, m=3, c=1.5)", data)
    found = []
    for value in (0.5, 0.0, np.nan, np.inf):  # the middle of the bounds, where a missing value is put, is 0
        source.data = data.assign(x=[value, *data["x"][1:]])
        model, _ = dp.models.from_bambi(source, dp.Domain(bounds={"x": (-1, 1), "y": (-5, 5)}))
        (basis,) = (one.get_value() for one in model.data_vars if one.name.endswith("_basis"))
        found.append(basis)
    assert all(np.isfinite(basis).all() and (basis[1:] == found[0][1:]).all() for basis in found)
