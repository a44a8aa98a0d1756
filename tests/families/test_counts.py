"""Rows of counts, with one total for all or one of their own: what they add."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


@pytest.mark.parametrize("levels", [2, 3])
def test_plug_in_is_the_density_of_the_rows_up_to_a_constant(levels, rng):
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(levels))
        pm.Multinomial("y", 6, p, observed=rng.multinomial(6, np.ones(levels) / levels, 40))
    with dp.testing.without_noise():
        private = dp.privatize(model, epsilon=1.0, statistics=dp.Statistics(noise_aware=False))
    whole, sums = (item.compile_logp(mode="FAST_COMPILE") for item in (model, private))
    points = [{"p_simplex__": rng.normal(size=levels - 1)} for _ in range(5)]
    differences = [float(whole(at)) - float(sums(at)) for at in points]
    np.testing.assert_allclose(differences, differences[0], rtol=1e-9)


TRUTH = np.array([0.2, 0.5, 0.8])
DOMAIN = dp.Domain(bounds={"n": (1, 20)})


def table(rng, rows=400):
    trials, group = rng.integers(1, 21, rows), rng.integers(0, 3, rows)
    return trials, group, rng.binomial(trials, TRUTH[group])


def successes(trials, group, y):
    with pm.Model(coords={"group": range(3)}) as model:
        n, g = pm.Data("n", trials), pm.Data("g", group)
        p = pm.Beta("p", 1, 1, dims="group")
        pm.Binomial("y", n=n, p=p[g], observed=y)
    return model


def released(model, domain=DOMAIN):
    with dp.testing.without_noise():
        private = dp.privatize(model, epsilon=1.0, domain=domain)
    return private.rvs_to_values[private["y"]].get_value()


@pytest.mark.parametrize(
    "domain",
    [
        DOMAIN,
        dp.Domain(bounds={"n": (1, 20)}, public=["g"]),
        dp.Domain(public=["n"]),
        dp.Domain(bounds={"n": (1, 20)}, neighbours="add_remove", n_max=1000),
    ],
)
def test_sums_are_those_of_failures_and_successes_by_group(domain, rng):
    trials, group, y = table(rng)
    expected = [[(trials - y)[group == k].sum(), y[group == k].sum()] for k in range(3)]
    np.testing.assert_array_equal(released(successes(trials, group, y), domain), expected)


def test_what_is_not_between_0_and_the_trials_counts_as_the_nearest():
    trials, y = np.array([5, 5, 50, -3, 20]), np.array([9, -2, 30, 4, 20])
    found = released(successes(trials, np.zeros(5, dtype=int), y))
    np.testing.assert_array_equal(found[0], [0 + 5 + 0 + 0 + 0, 5 + 0 + 20 + 1 + 20])
