"""The likelihood of three noised counts, as the private model has it, is that of all tables that add up to the rows."""

import numpy as np
import pymc as pm
import pytest
from scipy.special import gammaln, logsumexp

import pymc_dp as dp
from tests.promises.test_release_density import NOISES, log_noise

pytestmark = pytest.mark.usefixtures("interpreted")
EDGE = np.linspace(0.02, 0.98, 25)
SHARES = np.array([(a, b, 1 - a - b) for a in EDGE for b in EDGE if a + b < 0.99])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("n", "epsilon", "error"), [(30, 4.0, 0.25), (30, 1.0, 0.15), (60, 0.5, 0.15)])
def test_three_counts_of_a_public_size_are_summed_out(noise, n, epsilon, error, rng):
    """A constant aside, the log density is right to `error` (standard deviation over the posterior)."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3), default_transform=None)
        pm.Categorical("y", p, observed=rng.choice(3, n, p=[0.2, 0.3, 0.5]))
    with dp.testing.insecure_randomness(7):
        private = dp.privatize(
            model, epsilon=epsilon, delta=NOISES[noise], statistics=dp.Statistics(noise), ledger=dp.Ledger(9, 1e-3)
        )
    release, logp = dp.Release.of(private), private.compile_logp(vars=[private["y"]])
    (value,), scale = release.tables["y"], release.record.tables[0].scales[0]
    i, j = (item.ravel() for item in np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"))
    counts = np.stack([i, j, n - i - j])[:, i + j <= n]
    ways = gammaln(n + 1) - gammaln(counts + 1).sum(axis=0)
    terms = ways + log_noise(value[:, None] - counts, scale, noise).sum(axis=0)
    exact = logsumexp(terms + np.log(SHARES) @ counts, axis=1)
    weight = np.exp(exact - logsumexp(exact))
    difference = np.array([logp({"p": one}) for one in SHARES]) - exact
    assert np.sqrt(weight @ (difference - weight @ difference) ** 2) < error


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_densities_and_slopes_are_finite_far_from_what_was_released(noise, relation):
    with pm.Model(coords={"of": range(2), "level": range(3)}) as model:
        g, z = pm.Data("g", np.arange(60) % 2), pm.Normal("z", 0, 30, dims="of")
        q = pm.Dirichlet("q", np.full(3, 0.1), dims=("of", "level"))
        pm.Bernoulli("yes", logit_p=z[g], observed=pm.Data("d", np.arange(60) % 3 % 2))
        pm.Categorical("k", q[g], observed=pm.Data("e", np.arange(60) % 3))
    domain = dp.Domain(neighbours=relation, n_max=500 if relation == "add_remove" else None)
    given = {"delta": NOISES[noise], "statistics": dp.Statistics(noise), "domain": domain}
    private = dp.privatize(model, epsilon=0.3, **given, ledger=dp.Ledger(1, 1e-3, neighbours=relation))
    logp, slope = private.compile_logp(), private.compile_dlogp()
    for far in (0.0, 3.0, 30.0, 300.0):
        for sign in (1, -1):
            point = {"z": sign * np.array([far, -far]), "q_simplex__": sign * np.array([[far, 0], [-far, far]]) / 10}
            assert np.isfinite(logp(point)) and np.isfinite(slope(point)).all()
