from __future__ import annotations

import logging
import warnings

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases
from tests.trace.conftest import CANARY, LABELS, build_model, table

SHORT = {
    "draws": 20,
    "tune": 20,
    "chains": 2,
    "cores": 1,
    "random_seed": 3,
    "progressbar": False,
    "compute_convergence_checks": False,
}


@pytest.fixture(autouse=True)
def _no_history():
    forget_releases()
    yield
    forget_releases()


def _texts(tree: xr.DataTree) -> str:
    return "\n".join(
        [
            str(tree),
            tree._repr_html_(),
            str(tree.dp.report()),
            tree.dp.report()._repr_html_(),
            str(tree.dp.history),
            str(tree.dp.release),
        ]
    )


def test_no_canary_leaves(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(5)
    with pm.Model(coords={"patient": LABELS}) as model:
        mu = pm.Normal("mu", 0, 10)
        pm.Deterministic("residual", mu - pm.Data("raw", np.full(60, float(CANARY)), dims="patient"), dims="patient")
        pm.Normal("income", mu, 1, observed=np.where(np.arange(60) == 7, CANARY, rng.normal(size=60)), dims="patient")
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree = dp.sample(epsilon=1.0, model=model, domain=dp.Domain(bounds={"income": (-5, 5)}), **SHORT)
    said = _texts(tree) + caplog.text + "\n".join(str(item.message) for item in caught)
    assert str(CANARY) not in said and not any(label in said for label in LABELS)
    for node in tree.subtree:
        for name, variable in node.to_dataset().variables.items():
            assert "patient" not in variable.dims and name not in ("residual", "raw")
            assert not np.any(variable.values == CANARY) if variable.dtype.kind in "fiu" else True


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"epsilon": 0}, "epsilon must be > 0, got 0"),
        ({"epsilon": -1.0}, "epsilon must be > 0, got -1"),
        ({"epsilon": float("nan")}, "epsilon must be finite"),
        ({"epsilon": "1"}, "epsilon must be a number, got '1'"),
        ({"epsilon": 1.0, "delta": 1e-6, "statistics": dp.Statistics()}, "Use delta=0"),
        ({"epsilon": 1.0, "delta": 1.0}, r"delta must lie in \[0, 1\)"),
        ({"epsilon": 1.0, "step": "nuts"}, "Leave step out"),
        ({"epsilon": 1.0, "return_inferencedata": False}, "Leave it out"),
    ],
)
def test_bad_arguments_name_value_range_and_way_out(arguments: dict, text: str) -> None:
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.sample(model=build_model(*table()), **arguments)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore::pymc_dp.errors.PosteriorWarning")  # of so few rows little is released
def test_the_release_is_chosen_and_the_trace_says_why() -> None:
    """A δ that exact sums do not need is not spent; noised gradients are taken where there are no such sums."""
    ledger = dp.Ledger(epsilon=6.0, delta=1e-5)
    sums = dp.sample(epsilon=1.0, delta=1e-6, model=build_model(*table()), ledger=ledger, **SHORT)
    assert (sums.dp.epsilon, sums.dp.delta) == (1.0, 0.0)
    assert "exact sums, because a few of them are sufficient" in sums["privacy"].attrs["dp_record"]
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.StudentT("y", nu=4, mu=mu * pm.Data("x", np.linspace(-1, 1, 30)), sigma=1.0, observed=np.zeros(30))
    domain = dp.Domain(bounds={"x": (-1, 1), "y": (-9, 9)})
    with pytest.raises(
        dp.errors.UnsupportedModelError, match="(?s)^1. Pass delta=1e-06.*noised gradients fit it as it is"
    ):
        dp.sample(epsilon=1.0, model=model, domain=domain, ledger=ledger, **SHORT)
    assert len(ledger.history) == 1
    gradients = dp.sample(epsilon=1.0, delta=1e-6, model=model, domain=domain, ledger=ledger, **SHORT)
    report = " ".join(str(gradients.dp.report()).replace("│", " ").split())
    assert "noised gradients, because there are no exact sums to release" in report
    assert gradients.dp.delta == 1e-6 and ledger.history[-1].label == "noised gradients of y"
    asked = dp.sample(
        epsilon=1.0, delta=1e-6, model=model, domain=domain, statistics=dp.Gradients(steps=10),
        ledger=ledger, **SHORT,
    )  # fmt: skip
    assert "chosen" not in asked["privacy"].attrs["dp_record"]


def _shares() -> pm.Model:
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("p", 0.05, 0.95), observed=np.array([0, 1, 1, 0, 1]))
    return model


RELEASES = {
    "statistics": lambda model, **given: dp.privatize(model, **given),
    "posterior": lambda model, **given: dp.sample(model=model, **given),
    "step": lambda model, **given: dp.sample(model=model, step=dp.OPS(), **given),
    "find_map": lambda model, **given: dp.find_map(model=model, **given),
    "sample_ais": lambda model, **given: dp.sample_ais(model=model, **given),
}


def _funded(model: pm.Model, **given: float) -> None:
    with model:
        dp.OPS(**given)


@pytest.mark.few(1)
@pytest.mark.parametrize("release", [*RELEASES.values(), _funded], ids=[*RELEASES, "funded step"])
def test_a_release_beside_an_open_ledger_is_seen_before_anything_is_spent(release) -> None:
    ledger, fresh = dp.Ledger(3.0), dp.Ledger(1.0)
    dp.privatize(_shares(), epsilon=0.5, ledger=ledger)
    for given in ({}, {"ledger": fresh}):
        if given and release is _funded:
            continue
        with pytest.raises(dp.errors.RepeatedReleaseWarning, match=r"columns: y.*ε=0.5 of 3 is spent"):
            release(_shares(), epsilon=1.0, **given)
    assert fresh.history == [] and ledger.spent.epsilon == 0.5


@pytest.mark.few(5)
@pytest.mark.parametrize("release", [*RELEASES.values(), _funded], ids=[*RELEASES, "funded step"])
@pytest.mark.filterwarnings("error:ε = .* bounds very little:UserWarning")
def test_a_weak_budget_is_named_before_anything_is_spent(release) -> None:
    with pytest.raises(dp.errors.WeakGuaranteeWarning, match="ε = 20 bounds very little"):
        release(_shares(), epsilon=20.0)
    assert dp.privatize(_shares(), epsilon=1.0)


def test_third_release_without_a_ledger_is_seen() -> None:
    model = build_model(*table())
    dp.privatize(model, epsilon=1.0)
    with pytest.warns(dp.errors.RepeatedReleaseWarning, match="second release from these rows"):
        dp.privatize(build_model(*table()), epsilon=1.0)
    with pytest.warns(dp.errors.RepeatedReleaseWarning, match="third release from these rows, ε=3 in total"):
        dp.privatize(model, epsilon=1.0)
