"""Private posteriors of bambi's models, with hardly any noise, are those that bambi fits, name by name."""

import bambi
import numpy as np
import pandas as pd
import pytest

import pymc_dp as dp

N = 400
BOUNDS = {"x": (0, 20), "w": (-1, 3), "z": (-2, 2), "y": (-20, 60), "t": (-20, 60), "c": (0, 60), "m": (0, 120)}
NUMBERS = ("x", "w", "z")
BOTH, GRADIENTS = (dp.Statistics(), dp.Gradients()), (dp.Gradients(),)
WITHIN = 0.6
"""Posterior sds between the means of two posteriors that differ by the noise of ε = 100 and of their chains.

Also by automatic priors, of which those of bambi are scaled by its rows."""
FORMULAS = {
    "y ~ x": (BOTH, {}),
    "y ~ x*h + w": (GRADIENTS, {}),
    "y ~ 0 + h + x": (GRADIENTS, {}),
    "y ~ center(z) + x": (BOTH, {}),
    "y ~ scale(z) + poly(z, 2)": (GRADIENTS, {}),
    "y ~ bs(z, df=4)": (GRADIENTS, {}),
    "y ~ x + (1|g)": (GRADIENTS, {}),
    "c ~ z + h + offset(w / 2)": (GRADIENTS, {"family": "poisson"}),
    "c ~ h": (BOTH, {"family": "poisson"}),
    "b ~ x + scale(z)": (GRADIENTS, {"family": "bernoulli"}),
    "t ~ x": (GRADIENTS, {"family": "t"}),
    "m ~ z + w": (GRADIENTS, {"family": "negativebinomial"}),
    "k ~ x": (GRADIENTS, {"family": "categorical"}),
    "k ~ 0 + z": (GRADIENTS, {"family": "cumulative"}),
}


def spread(rng, low, high):
    """Values spread evenly, as the table from which means and knots are learned has them."""
    return rng.permutation(np.linspace(low, high, N))


@pytest.fixture(scope="module")
def table():
    """Predictors fill a part of their bounds, not about their middle, but for z, of which transforms learn."""
    rng = np.random.default_rng(20)
    x, w, z = spread(rng, 1, 9), spread(rng, 0, 2), spread(rng, *BOUNDS["z"])
    h, g = rng.permutation(np.arange(N) % 2), rng.permutation(np.arange(N) % 4)
    latent = 0.4 * (x - 4) + rng.logistic(size=N)
    effects = np.array([-2.0, 0.5, 1.0, 2.5])[g]
    return pd.DataFrame(
        {
            "x": x,
            "w": w,
            "z": z,
            "h": pd.Categorical.from_codes(h, ["u", "v"], ordered=True),
            "g": pd.Categorical.from_codes(g, list("abcd"), ordered=True),
            "y": 1 + 2 * x + h * x / 2 + effects + z**2 + rng.normal(0, 2, N),
            "t": 1 + 2 * x + rng.standard_t(4, N),
            "c": rng.poisson(np.exp(1 + 0.4 * z + 0.5 * h + w / 2)),
            "m": rng.negative_binomial(3, 3 / (3 + np.exp(1 + 0.4 * z + 0.5 * w))),
            "b": (latent > 0).astype(int),
            "k": pd.Categorical.from_codes(np.digitize(latent + z, [-1, 1]), ["low", "mid", "high"], ordered=True),
        }
    )


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # of a first step of NUTS
@pytest.mark.few(1, cases="all")
@pytest.mark.parametrize("formula", FORMULAS)
def test_every_parameter_is_that_which_bambi_fits(formula, table, seed):
    releases, options = FORMULAS[formula]
    model = bambi.Model(formula, table, **options)
    chains = {"chains": 2, "cores": 1, "random_seed": seed, "progressbar": False}
    expected = model.fit(draws=600, tune=600, quiet=True, **chains).posterior.dataset
    domain = dp.Domain(bounds={name: BOUNDS[name] for name in table if name in BOUNDS and name in formula_names(model)})
    for statistics in releases:
        delta = 0.0 if isinstance(statistics, dp.Statistics) else 1e-5
        with pytest.warns(dp.errors.WeakGuaranteeWarning):
            found = dp.sample(
                600,
                tune=600,
                epsilon=100.0,
                delta=delta,
                statistics=statistics,
                domain=domain,
                model=model,
                ledger=dp.Ledger(epsilon=100.0, delta=1e-5),
                quiet=True,
                **chains,
            ).posterior
        assert set(expected.data_vars) <= set(found.data_vars)
        for name, theirs in expected.data_vars.items():
            ours = found[name]
            assert set(ours.dims) == set(theirs.dims)
            off = (ours.mean(("chain", "draw")) - theirs.mean(("chain", "draw"))) / theirs.std(("chain", "draw"))
            assert float(abs(off).max()) < WITHIN, (name, type(statistics).__name__, off.values)


def formula_names(model):
    """Columns of numbers that a formula of these tests uses."""
    words = set("".join(one if one.isalnum() else " " for one in model.formula.main).split())
    return words & set(model.data.columns)
