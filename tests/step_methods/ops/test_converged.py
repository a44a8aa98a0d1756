"""Chains that are assumed to have converged: their length is public, their target is tempered, nothing else leaves."""

import logging
import sys
import warnings

import numpy as np
import pymc as pm
import pytensor
import pytest
from tests.step_methods.ops.models import bound

import pymc_dp as dp
from pymc_dp.audit import contains_canary
from pymc_dp.domain import Domain
from pymc_dp.errors import PrivacyError, UnsupportedModelError
from pymc_dp.release.paid import forget_releases
from pymc_dp.step_methods.ops import OPS, converged
from pymc_dp.step_methods.ops import converged as tempered_chain
from pymc_dp.step_methods.ops.converged import ConvergedPosterior

CANARY = 0.98765432
SHORT = {"TRIAL": 8, "TRIALS": 1, "LEAST": 10, "CORRELATION_TIMES": 1, "GOOD_RHAT": 20.0, "FEW_DIVERGENCES": 1.0}
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


@pytest.fixture(autouse=True)
def quick(request, monkeypatch):
    """Few steps per graph: interpreting them takes less than compiling."""
    forget_releases()
    if "slow" in request.keywords:
        yield
        return
    monkeypatch.setattr(tempered_chain, "TUNE", 5)
    for name, value in SHORT.items():
        monkeypatch.setattr(converged, name, value)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


def table(n_rows=20, seed=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, n_rows), rng.integers(0, 4, n_rows), rng.integers(0, 2, n_rows)


def groups(x, g, y):
    """A product of parameters: not concave, and no grid has six axes. A Potential belongs to the prior."""
    with pm.Model(coords={"of": range(4)}) as model:
        scale = pm.TruncatedNormal("scale", 0, 1, lower=0.5, upper=2)
        b = pm.Uniform("b", -1, 1, dims="of")
        pm.Potential("pull", -2 * ((b - 0.5) ** 2).sum())
        slope = pm.Uniform("slope", -1, 1)
        pm.Bernoulli("y", logit_p=scale * b[pm.Data("g", g)] + slope * pm.Data("x", x), observed=y)
    return model


BOUNDS = {"x": (-1.0, 1.0)}
RELATIONS = {
    "replace": Domain(bounds=BOUNDS),
    "add_remove": Domain(bounds=BOUNDS, neighbours="add_remove", n_max=40),
}


def converging(model, public=RELATIONS["replace"], epsilon=2.0, delta=0.0, **settings):
    step, event = bound(model, public, epsilon, delta, assume_converged=True, **settings)
    assert isinstance(step.posterior, ConvergedPosterior)
    return step, event


@pytest.fixture(scope="module")
def step():
    """A step that holds the rows of `table`, compiled once; the length of its chains is given, not judged."""
    with pytest.MonkeyPatch.context() as patch, pytensor.config.change_flags(mode="FAST_COMPILE"):
        patch.setattr(ConvergedPosterior, "_judged", lambda self, inverse: 10)
        made, _ = converging(groups(*table()))
        made.posterior._chain  # noqa: B018
        made.posterior.length(made.temperature.inverse)
    return made


@pytest.fixture
def shared(step, monkeypatch):
    """Every chain of `groups` is that of `step`."""
    monkeypatch.setattr(converged, "TemperedChain", lambda *args, **kwargs: step.posterior._chain)


def draw(step, seed=1):
    return step.posterior.draw(np.random.default_rng(seed), step.sums, step.temperature.inverse, False)


# --- asked for by name ------------------------------------------------------------------------------------------------


def test_without_the_word_of_the_caller_it_is_refused_and_the_word_is_named():
    with pytest.raises(UnsupportedModelError, match=r"asymptotic: dp.OPS\(assume_converged=True\)"):
        bound(groups(*table()), RELATIONS["replace"], 2.0)


@pytest.mark.parametrize(
    ("prior", "text"),
    [(lambda: pm.Poisson("k", 2), "it is discrete"), (lambda: pm.HalfCauchy("k", 1), "may have no mass")],
)
def test_what_nuts_cannot_do_is_said(prior, text):
    with pm.Model() as model:
        b = pm.Uniform("b", -1, 1, shape=3)
        pm.Bernoulli("y", logit_p=b[pm.Data("g", table()[1] % 3)] * pm.math.tanh(prior()), observed=table()[2])
    with pytest.raises(UnsupportedModelError, match=text):
        bound(model, Domain(), 2.0, assume_converged=True, papers=True)


# --- what is public ---------------------------------------------------------------------------------------------------


def neighbour(relation):
    x, g, y = table()
    if relation == "add_remove":
        return np.append(x, 0.5), np.append(g, 3), np.append(y, 1)
    x[0], g[0], y[0] = -x[0], 3 - g[0], 1 - y[0]
    return x, g, y


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_length_of_a_chain_is_known_before_rows_are_read_and_hangs_on_none(relation, shared, blind):
    tables = table(), neighbour(relation)
    found = [converging(groups(*rows), RELATIONS[relation], read=False)[0].posterior for rows in tables]
    assert len({tuple(one._lengths.items()) for one in found}) == 1
    (length,) = found[0]._lengths.values()
    assert isinstance(length, int) and length > 1
    one, other = (converged.simulated(item.inspection, item.prior_model, 7, np.random.default_rng(1)) for item in found)
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


# --- refusals, before anything is charged -----------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("limit", "text"),
    [({"GOOD_RHAT": 0.5}, "do not agree \\(R-hat"), ({"FEW_DIVERGENCES": -1.0}, "of the steps of NUTS")],
)
def test_chains_that_do_not_agree_on_public_data_are_refused_before_the_charge(limit, text, shared, blind, monkeypatch):
    for name, value in limit.items():
        monkeypatch.setattr(converged, name, value)
    ledger = dp.Ledger(epsilon=5.0)
    options = {"domain": RELATIONS["replace"], "model": groups(*table()), "ledger": ledger, **QUIET}
    with pytest.raises(UnsupportedModelError, match=text) as refused:
        dp.sample(step=OPS(assume_converged=True), epsilon=2.0, **options)
    assert ledger.spent.epsilon == 0
    assert "assume_converged" not in str(refused.value) and "dp.SGLD()" in str(refused.value)


# --- while a chain runs -----------------------------------------------------------------------------------------------


class Spill(Exception):
    pass


@pytest.mark.slow
def test_what_goes_wrong_with_a_private_chain_tells_nothing(step, monkeypatch, caplog, capfd, recwarn):
    def astep(*args):
        sys.stdout.write(f"{CANARY}")
        sys.stderr.write(f"{CANARY}")
        logging.getLogger("pymc").critical("%s", CANARY)
        warnings.warn(f"{CANARY}", stacklevel=1)
        np.log(np.zeros(1))
        raise Spill(f"{CANARY}")

    monkeypatch.setattr(step.posterior._chain._step, "astep", astep)
    with np.errstate(all="raise"), pytest.raises(PrivacyError, match="nothing was released") as failed:
        draw(step)
    assert failed.value.__cause__ is None and failed.value.__context__ is None
    assert capfd.readouterr() == ("", "") and not caplog.records and not list(recwarn)
    assert not contains_canary([failed.value, str(failed.value)], [CANARY])
