"""Likelihoods by hand that are no density of their column are refused, and those that are one are taken."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.gradients.interface import interface_of

N = 60
T = np.linspace(0.2, 20, N)
HAPPENED = np.arange(N) % 2


def model_of(logp, observed, *, flagged, domain, dtype="float64"):
    with pm.Model() as model:
        rate = pm.math.exp(pm.Normal("a", 0, 1))
        given = [rate, pm.Data("event", HAPPENED)] if flagged else [rate]
        pm.CustomDist("t", *given, logp=logp, observed=observed, dtype=dtype)
    return model, dp.Domain(bounds=domain)


def with_events(t, rate, event):
    return pt.switch(pt.eq(event, 1), pt.log(rate) - rate * t, -rate * t)


def with_events_and_a_support(t, rate, event):
    return pt.switch(t > 0, with_events(t, rate, event), -np.inf)


@pytest.mark.parametrize("logp", [with_events, with_events_and_a_support])
@pytest.mark.parametrize("domain", [{"t": (0.1, 25)}, {"t": (0.1, 25), "event": (0, 1)}])
def test_an_event_indicator_is_refused_with_what_to_write_instead(logp, domain):
    with pytest.raises(UnsupportedModelError, match=r"pm\.Censored\('t', dist, lower=None, upper=end\)"):
        interface_of(*model_of(logp, T, flagged=True, domain=domain))


def test_counts_with_too_much_mass_are_refused():
    def logp(k, rate):
        return k * pt.log(rate) - pt.gammaln(k + 1)  # without exp(-rate)

    with pytest.raises(UnsupportedModelError, match="adds up to more than 1"):
        interface_of(*model_of(logp, np.arange(N) % 5, flagged=False, domain={"t": (0, 30)}, dtype="int64"))


@pytest.mark.parametrize(
    "logp",
    [
        lambda t, rate: pt.log(rate) - rate * t,  # grows without end below 0, where nobody looks
        lambda t, rate: pt.switch(t > 0, pt.log(rate) - rate * t, -np.inf),
        lambda t, rate: pm.logp(pm.Normal.dist(rate, 2.0), t),
        lambda t, rate: pm.logp(pm.LogNormal.dist(pt.log(rate), 0.5), t),
    ],
)
def test_densities_are_taken(logp):
    found = interface_of(*model_of(logp, T, flagged=False, domain={"t": (0.1, 25)}))
    assert [part.name for part in found.parts] == ["a"]


def poisson(k, rate):
    return k * pt.log(rate) - rate - pt.gammaln(k + 1)


def test_probabilities_of_counts_that_are_called_real_are_refused():
    with pytest.raises(UnsupportedModelError, match="complete logp, .* dtype='int64'"):
        interface_of(*model_of(poisson, np.arange(N) % 5, flagged=False, domain={"t": (0, 30)}))


def test_probabilities_of_counts_are_taken():

    found = interface_of(*model_of(poisson, np.arange(N) % 5, flagged=False, domain={"t": (0, 30)}, dtype="int64"))
    assert [part.name for part in found.parts] == ["a"]
