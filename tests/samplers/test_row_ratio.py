"""Ranges that are found on public rows, against those of other rows; and what pays for a chain."""

import copy
from contextvars import copy_context

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.accounting import ApproximateEvent, PureEvent, ZCDPEvent
from pymc_dp.inspection.inspect import inspect
from pymc_dp.kernel.account import repeated
from pymc_dp.rows.gate import opened_gate
from pymc_dp.samplers.chain_account import ChainAccount, Token
from pymc_dp.samplers.row_ratio import RowRatio
from pymc_dp.step_methods.metropolis.coefficients import coefficients_of
from pymc_dp.transforms.prior_model import shared_prior_model

X = np.linspace(-1, 1, 40).reshape(10, 4)
YES = np.arange(10) % 2


def logistic():
    x = pm.Data("x", X)
    pm.Bernoulli("y", logit_p=x @ pm.Normal("b", 0, 1, shape=4), observed=YES)
    return {"bounds": {"x": (-1, 1)}}


def within_a_norm():
    x = pm.Data("x", X)
    pm.Bernoulli("y", logit_p=x @ pm.Normal("b", 0, 1, shape=4), observed=YES)
    return {"norms": {"x": 1.5}}


def wide():
    x = pm.Data("x", np.zeros((10, 20)))
    pm.Bernoulli("y", logit_p=x @ pm.Normal("b", 0, 1, shape=20), observed=YES)
    return {"bounds": {"x": (-1, 1)}}


def public_predictors():
    x = pm.Data("x", X)
    pm.Bernoulli("y", logit_p=x @ pm.Normal("b", 0, 1, shape=4), observed=YES)
    return {"public": ["x"]}


def counts():
    x = pm.Data("x", X[:, 0])
    pm.Poisson("y", pt.exp(pm.Normal("a") + x * pm.Normal("b")), observed=YES)
    return {"bounds": {"x": (-1, 1), "y": (0, 9)}}


def robust():
    pm.StudentT("y", nu=4, mu=pm.Normal("mu"), sigma=pm.HalfNormal("sigma"), observed=X[:, 0])
    return {"bounds": {"y": (-3, 3)}}


def groups():
    which = pm.Data("which", np.arange(10) % 3)
    pm.StudentT("y", nu=4, mu=pm.Normal("mu", shape=3)[which], sigma=1.0, observed=X[:, 0])
    return {"bounds": {"y": (-3, 3), "which": (0, 2)}}


def made(build, neighbours):
    with pm.Model() as model:
        given = build()
    n_max = 50 if neighbours == "add_remove" else None
    found = inspect(model, dp.Domain(**given, neighbours=neighbours, n_max=n_max)).rows
    prior_model = shared_prior_model(found)
    return found, prior_model, coefficients_of(prior_model, ())


def other_rows(ratio, rng, count=20_000):
    """Rows that nobody looked at: at random, at corners, and as long as a norm allows."""
    found = {}
    for name, column in ratio.rows.columns.items():
        var, (low, high) = ratio.rows.inputs[name], column.ends
        shape = (count, *var.type.shape)
        if column.norm is not None:
            values = rng.normal(size=shape)
            values *= column.norm / np.linalg.norm(values, axis=1, keepdims=True)
        else:
            share = np.where(
                rng.random((count, *[1] * var.type.ndim)) < 0.5, rng.integers(0, 2, shape), rng.random(shape)
            )
            values = low + (high - low) * share
        found[name] = np.rint(values).astype(int) if column.integer else values
    return found


@pytest.mark.few(4)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("build", [logistic, within_a_norm, wide, counts, robust, groups])
def test_a_found_range_is_that_of_other_rows(build, neighbours):
    """What other rows exceed it by is cut, and what it exceeds those of all rows by would be paid for in vain."""
    found, prior_model, places = made(build, neighbours)
    ratio, rng, here = RowRatio(found, prior_model), np.random.default_rng(3), places.start
    for size in (0.001, 0.05, 0.05, 0.3, 0.3):
        there, rows = places.at(here.values + size * rng.standard_normal(places.dimension)), other_rows(ratio, rng)
        if places.dimension == 20:  # of a million corners, those that a slope of the ratio points to
            shares = rng.uniform(-1, 1, (len(rows["0 x"]), 2))
            rows["0 x"] = np.sign(shares @ np.stack([here.values, there.values]))
        reach = ratio.reach(here, there)
        one, other = (ratio._compiled.held.on(rows, [place.values, 0.0], 1)[:, 0] for place in (here, there))
        largest = np.ptp(other - one) if neighbours == "replace" else np.abs(other - one).max()
        assert 0.99 * largest <= reach <= 1.02 * largest
        assert reach == pytest.approx(ratio.reach(there, here), rel=1e-9)
        here = there


@pytest.mark.parametrize("levels", [20, 300])
def test_a_found_range_is_that_of_all_combinations_of_two_indices(levels):
    """A table has too many of them to look at each: the best value of one column is looked for after another."""
    with pm.Model() as model:
        mean = sum(pm.Normal(name.upper(), shape=levels)[pm.Data(name, np.arange(600) % levels)] for name in ("i", "j"))
        pm.StudentT("y", nu=4, mu=mean, sigma=1.0, observed=np.linspace(-2, 2, 600))
    domain = dp.Domain(bounds={"y": (-3, 3), "i": (0, levels - 1), "j": (0, levels - 1)})
    found = inspect(model, domain).rows
    prior_model = shared_prior_model(found)
    ratio, places, rng = RowRatio(found, prior_model), coefficients_of(prior_model, ()), np.random.default_rng(0)
    y = np.linspace(-3, 3, 601)
    for _ in range(3):
        there = places.at(places.start.values + 0.02 * rng.standard_normal(places.dimension))
        one, other = there.values[:levels], there.values[levels:]
        means = np.array([one.min() + other.min(), one.max() + other.max(), 0.0])[:, None]
        g = -2.5 * (np.log1p((y - means) ** 2 / 4) - np.log1p(y**2 / 4))
        assert ratio.reach(places.start, there) == pytest.approx(np.ptp(g), rel=1e-3)


def test_hardly_a_row_of_a_real_table_is_cut():
    """6,366 answers on affairs, by a walk through states: what lies beyond a found range changes the target."""
    table = pytest.importorskip("statsmodels.api").datasets.fair.load_pandas().data
    x = table[["age", "yrs_married", "religious", "rate_marriage"]].to_numpy()
    x = 2 * (x - x.min(axis=0)) / np.ptp(x, axis=0) - 1
    with pm.Model() as model:
        logit = pm.Data("x", x) @ pm.Normal("b", 0, 1, shape=4)
        pm.Bernoulli("y", logit_p=logit, observed=(table["affairs"] > 0).to_numpy().astype(int))
    found = inspect(model, dp.Domain(bounds={"x": (-1, 1)})).rows
    prior_model = shared_prior_model(found)
    ratio, places, rng = RowRatio(found, prior_model), coefficients_of(prior_model, ()), np.random.default_rng(0)
    with opened_gate():
        ratio.load()
    rows = {name: column.values for name, column in ratio._table.columns.items()}
    here, cut = places.start.values, []
    for _ in range(60):
        there = here + 0.05 * rng.standard_normal(4)
        (low, high), g = ratio._within(here, there), ratio._of(rows, here, there)
        assert low - 0.02 * (high - low) < g.min() and g.max() < high + 0.02 * (high - low)
        cut.append(((g < low) | (g > high)).mean())
        here = there
    assert np.mean(cut) < 1e-3


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_with_public_predictors_half_of_the_range_is_paid(share):
    """The response alone is private: a row may range by |x (θ' - θ)|, about a middle that is public."""
    found, prior_model, places = made(public_predictors, "replace")
    ratio = RowRatio(found, prior_model)
    with opened_gate():
        ratio.load()
    there = places.at(places.start.values + share)
    assert ratio.reach(places.start, there) == pytest.approx(np.abs(X.sum(axis=1) * share).max(), rel=1e-4)


def test_a_column_without_bounds_is_refused_by_name():
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Normal("mu"), sigma=1.0, observed=X[:, 0])
    with pytest.raises(dp.errors.UnsupportedModelError, match=r"Domain\(bounds=.*clamp(.|\n)*'y' has no bounds"):
        dp.sample(3, tune=0, step=dp.BarkerMetropolis(), model=model, epsilon=1.0, progressbar=False)


@pytest.mark.usefixtures("begins")
def test_a_chain_may_charge_once_and_no_more_than_was_paid():
    account = ChainAccount("replace", ZCDPEvent(rho=0.1))
    with pytest.raises(dp.errors.BudgetExceeded, match="more than was paid"):
        account.charge(ZCDPEvent(rho=0.11), "chain")
    account.charge(ZCDPEvent(rho=0.1), "chain")
    with pytest.raises(dp.errors.BudgetExceeded):
        account.charge(ZCDPEvent(rho=0.01), "chain")
    with pytest.raises(dp.errors.BudgetExceeded):
        ChainAccount("replace", PureEvent(epsilon=1.0)).charge(ZCDPEvent(rho=0.1), "chain")
    with pytest.raises(dp.errors.PrivacyError, match="copied"):
        copy.deepcopy(ChainAccount("replace", ZCDPEvent(rho=0.1)))
    steps = repeated(ApproximateEvent(epsilon=0.1, delta=1e-9), 7)
    ChainAccount("replace", steps).charge(steps, "chain")
    both = ChainAccount("replace", steps, ZCDPEvent(rho=0.1))
    both.charge(ZCDPEvent(rho=0.05), "chain")
    for event in (ZCDPEvent(rho=0.01), repeated(ApproximateEvent(epsilon=0.1, delta=1e-9), 8)):
        with pytest.raises(dp.errors.BudgetExceeded):  # a part was used, and the other is for less
            both.charge(event, "chain")
    both.charge(steps, "chain")


def test_a_token_counts_while_its_chain_begins_and_neither_later_nor_in_a_fork(monkeypatch):
    token, event = Token(0), ZCDPEvent(rho=0.1)
    with token.begins():
        kept = copy_context()
        kept.run(ChainAccount, "replace", event)
        with Token(1).begins():
            ChainAccount("replace", event)
        ChainAccount("replace", event)
        with monkeypatch.context() as fork:
            fork.setattr("pymc_dp.kernel.process._generation", object())  # as the hook of a fork does
            with pytest.raises(dp.errors.PrivacyError, match="by setup_chain alone"):
                ChainAccount("replace", event)
    with pytest.raises(dp.errors.PrivacyError, match="by setup_chain alone"):
        kept.run(ChainAccount, "replace", event)
    with pytest.raises(dp.errors.BudgetExceeded, match="has begun by this token"), token.begins():
        pass


@pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
@pytest.mark.parametrize(
    "step", [dp.BarkerMetropolis, dp.PenaltyMetropolis, lambda: dp.PrivateHMC(clip_norm=2.0, n_leapfrog=1)]
)
def test_chains_in_processes_of_their_own_pay_for_their_bits(step):
    with pm.Model() as model:
        domain = dp.Domain(**robust())
    idata = dp.sample(
        6,
        tune=2,
        chains=2,
        cores=2,
        step=step(),
        model=model,
        domain=domain,
        epsilon=1.0,
        delta=1e-6,
        progressbar=False,
    )
    assert idata["posterior"].sizes["chain"] == 2
    assert idata.dp.report().record["guarantee"] == "stepwise"


@pytest.mark.usefixtures("begins")
def test_a_copy_of_a_ratio_leaves_behind_what_pays():
    found, prior_model, _ = made(robust, "replace")
    ratio = RowRatio(found, prior_model)
    with opened_gate():
        ratio.load()
    ratio.begin([ZCDPEvent(rho=0.1)], lambda kernel: kernel.pool(rho=0.1))
    assert ratio.pays is not None and ratio.__getstate__()["_pay"] is None is ratio.__getstate__()["_kernel"]
