"""Settings of `dp.BarkerMetropolis`: what is refused before a charge, shapes of proposals, blocks, and tuned chains."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1, "chains": 1}
MATRIX = np.array([[0.5, 0.2], [0.2, 0.3]])
BOUNDED = dp.Domain(bounds={"y": (-4, 4)})
PAID = xr.Dataset(attrs={"guarantee": "exact"})


def trace(privacy=PAID, **draws):
    """A trace as one would be that was released."""
    held = {name: (("chain", "draw", *map(str, range(values.ndim - 2))), values) for name, values in draws.items()}
    groups = {"posterior": xr.Dataset(held), "privacy": privacy}
    return xr.DataTree.from_dict({name: group for name, group in groups.items() if group is not None})


def normal() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=np.linspace(-1, 2, 30))
    return model


def sampled(draws, *, tune=0, model=None, domain=BOUNDED, ledger=None, **settings):
    with dp.testing.insecure_randomness(4):
        return dp.sample(
            draws, tune=tune, model=model or normal(), domain=domain, step=dp.BarkerMetropolis(**settings),
            ledger=ledger or dp.Ledger(1e5, 1e-6), epsilon=1e4, delta=1e-6, **QUIET,
        )  # fmt: skip


LINE = np.linspace(0.1, 1, 8)[None]
REFUSED = [
    ({"covariance": [[1.0, 0.5], [0.4, 1.0]]}, r"not symmetric. Give \(covariance \+ covariance.T\) / 2"),
    ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "not positive definite"),
    ({"covariance": [1.0, 2.0]}, r"finite numbers, got shape \(2,\)"),
    ({"covariance": [[np.nan]]}, "finite numbers"),
    ({"covariance": "identity"}, r"\(d, d\) array of public numbers or a released trace, got 'identity'"),
    ({"covariance": MATRIX, "scale": {"mu": 1.0, "sigma": 1.0}}, "scale must be one number"),
    ({"covariance": [[1.0]]}, r"\(mu, sigma_log__, in this order\) are 2"),
    ({"covariance": trace(None, mu=LINE)}, "without a /privacy or a /posterior group"),
    ({"covariance": trace(mu=LINE)}, r"without the free variables \['sigma'\]"),
    ({"covariance": trace(mu=LINE, sigma=np.ones((1, 8, 2)))}, r"in which \['sigma'\] have other shapes"),
    ({"covariance": trace(mu=LINE[:, :1], sigma=LINE[:, :1])}, "fewer than two draws"),
    ({"covariance": trace(mu=LINE * 0, sigma=LINE)}, "not positive definite"),
    ({"scale": 0}, "scale must be > 0, got 0.* Leave it out for the default"),
    ({"scale": {"mu": -1.0}}, r"scale\['mu'\] must be > 0 everywhere, got -1"),
    ({"scale": {"mu": "wide"}}, r"scale\['mu'\] must be a number or an array, got 'wide'"),
    ({"scale": {"mu": 1.0}}, r"scale names \['mu'\], but the free variables are \['mu', 'sigma'\]"),
    ({"scale": {"mu": [1.0, 2.0], "sigma": 1.0}}, "do not fit the variables on the unconstrained scale"),
    ({"clamp": -1}, "clamp must be > 0"),
    ({"blocks": "all"}, 'blocks must be None, "each" or a list of lists of names, got .all'),
    ({"blocks": []}, "blocks is empty, or one of them"),
    ({"blocks": [["mu"]]}, r"must name each of the free variables \['mu', 'sigma'\] once"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "says"), REFUSED, ids=[next(iter(given)) for given, _ in REFUSED])
def test_wrong_settings_are_named_and_cost_nothing(settings, says):
    ledger = dp.Ledger(1e5, 1e-6)
    with pytest.raises(dp.errors.ArgumentError, match=says):
        sampled(1, ledger=ledger, **settings)
    assert ledger.history == []


def test_a_trace_whose_noise_was_seeded_gives_no_covariance():
    seeded = trace(xr.Dataset(attrs={"guarantee": "none"}), mu=LINE, sigma=LINE**2)
    with pytest.raises(dp.errors.ArgumentError, match="seeded or left out .* not private"):
        dp.BarkerMetropolis(covariance=seeded)


@pytest.fixture(scope="module")
def tuned():
    return sampled(400, tune=400)


def test_tuned_proposals_of_two_values_find_the_posterior(tuned):
    """Of 30 rows: the mean within five errors, and scales that are those of the posterior."""
    mu, sigma = (tuned["posterior"][name].values[0] for name in ("mu", "sigma"))
    rows = np.linspace(-1, 2, 30)
    assert abs(mu.mean() - rows.sum() / (30 + rows.var())) < 0.15
    assert abs(sigma.mean() - rows.std()) < 0.15
    assert 0.5 < mu.std() / (rows.std() / np.sqrt(30)) < 1.6
    assert 0.2 < np.mean(np.diff(mu) != 0) < 0.8


def test_a_released_trace_is_the_shape_of_proposals(tuned):
    """The covariance is that of its draws on the unconstrained scale: a chain with that matrix is the same."""
    values = np.stack([tuned["posterior"]["mu"].values[0], np.log(tuned["posterior"]["sigma"].values[0])])
    with dp.testing.insecure_randomness(1):
        by_trace = sampled(20, covariance=tuned)
    by_matrix = sampled(20, covariance=np.cov(values))
    for name in ("mu", "sigma"):
        np.testing.assert_allclose(by_trace["posterior"][name], by_matrix["posterior"][name], rtol=1e-9)
    assert "of a public covariance" in str(by_trace.dp.report())


@pytest.mark.parametrize("tune", [0, 30])
def test_a_scan_goes_over_blocks_each_charged_its_own_range(tune):
    found = sampled(30, tune=tune, blocks=[["mu"], ("sigma",)], covariance=MATRIX, scale=0.3)
    moved = [np.diff(found["posterior"][name].values[0]) != 0 for name in ("mu", "sigma")]
    assert (moved[0] & ~moved[1]).any() and (moved[1] & ~moved[0]).any() and (moved[0] & moved[1]).any()
    assert "a scan over 2 blocks, each charged its own range: mu, sigma" in str(found.dp.report())


def test_a_scale_multiplies_draws_of_the_covariance():
    with pm.Model() as flat:
        w = pm.MvNormal("w", np.zeros(2), 1e6 * np.eye(2))
        pm.Normal("y", pm.math.tanh(w[0] * 0), 1.0, observed=np.zeros(4))
    found = sampled(3000, model=flat, covariance=MATRIX, scale=0.1)["posterior"]["w"].values[0]
    steps = np.diff(found, axis=0)
    steps = steps[(steps != 0).all(axis=1)]
    np.testing.assert_allclose(np.cov(steps.T), 0.01 * MATRIX, atol=0.0006)


def test_what_a_step_is_given_is_in_its_text():
    assert repr(dp.BarkerMetropolis(covariance=MATRIX)) == "BarkerMetropolis(covariance=a (2, 2) array)"
    assert repr(dp.BarkerMetropolis(blocks=[["mu"], ("s",)])) == "BarkerMetropolis(blocks=(('mu',), ('s',)))"
