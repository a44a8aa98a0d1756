"""The word of a release, from released numbers alone: on rows of the model, and on others."""

import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
N = 4000


def counts(rng, spread=0.0):
    """Counts of which the variance is 1 + spread times the mean, for a model that says once."""
    rate = rng.gamma(6.0 / spread, spread, N) if spread else np.full(N, 6.0)
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(pm.Normal("a", 1.5, 1)), observed=np.minimum(rng.poisson(rate), 99))
    return model, {"y": (0, 99)}


def overdispersed(rng):
    return counts(rng, 4.0)


def normal(rng, high=20.0):
    x = rng.uniform(-1, 1, (N, 2))
    with pm.Model() as model:
        mean = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)
        pm.Normal("y", mean, 0.5, observed=np.minimum(0.3 + x @ [0.7, -0.4] + 0.5 * rng.normal(size=N), 19.0))
    return model, {"x": (-1, 1), "y": (-20, high)}


def cut(rng):
    """A twentieth of the responses is above the bound."""
    return normal(rng, 1.2)


CASES = [
    (counts, 3.0, "ok", ()),
    (normal, 3.0, "ok", ()),
    (overdispersed, 3.0, "doubtful", ("times as much as the model says", "Gradients(robust=True)")),
    (cut, 3.0, "doubtful", ("of the responses are at their upper bound", "pm.Censored")),
]


@pytest.mark.parametrize(("build", "epsilon", "word", "says"), CASES, ids=lambda item: getattr(item, "__name__", None))
def test_the_word_and_the_warning_are_those_of_the_rows(build, epsilon, word, says, rng, tmp_path):
    model, bounds = build(rng)
    given = {"epsilon": epsilon, "delta": 1e-5, "domain": dp.Domain(bounds=bounds)}
    with warnings.catch_warnings(record=True) as caught, dp.testing.insecure_randomness(3):
        warnings.simplefilter("always")
        private = dp.privatize(model, statistics=dp.Gradients(steps=20), ledger=dp.Ledger(epsilon, 1e-5), **given)
    own = [str(one.message) for one in caught if issubclass(one.category, dp.errors.PosteriorWarning)]
    verdict = dp.Release.load(dp.Release.of(private).save(tmp_path / "release.json")).verdict
    assert verdict.word == word and all(text in str(verdict) for text in says), str(verdict)
    assert len(own) == verdict.warns == (word in ("doubtful", "do not use"))
    assert not own or (str(verdict) in own[0] and "was made and charged" in own[0])


def test_robust_intervals_are_not_doubted_for_what_they_allow_for(rng):
    model, bounds = overdispersed(rng)
    given = {"epsilon": 3.0, "delta": 1e-5, "domain": dp.Domain(bounds=bounds), "progressbar": False}
    with dp.testing.insecure_randomness(3):
        private = dp.privatize(model, statistics=dp.Gradients(steps=20, robust=True), **given)
    assert "times as much" not in str(dp.Release.of(private).record.tables[0].plan["verdict"])
