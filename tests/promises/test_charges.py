"""What chains, latents, groups, balls and particles are charged is what a row moves: by formulas, or where drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.step_methods.ops import converged
from tests.promises import test_choices
from tests.promises.test_choices import CALLS, ENOUGH, ROUNDING, charged, hostile, put, watched
from tests.step_methods.ops.test_converged import SHORT
from tests.zoo.likelihoods import ZOO, Likelihood
from tests.zoo.samplers import QUIET, SAMPLERS, Sampler

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
NONE = np.zeros(test_choices.ROWS, dtype=int)


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


def ran(model: pm.Model, step: Any, domain: dp.Domain | None = None, **given: Any) -> Any:
    """Return the trace of a short chain."""
    asked = {"draws": 1, "tune": 0, "chains": 1, "epsilon": 1.0, **given}
    return dp.sample(
        step=step,
        model=model,
        domain=domain,
        ledger=dp.Ledger(
            asked["epsilon"], given.get("delta", 0.0), neighbours="replace" if domain is None else domain.neighbours
        ),
        **QUIET,
        **asked,
    )


def etas_over_power(idata: Any) -> list[float]:
    record = idata.dp.report().record
    return [eta / record["sampler"]["power"] for eta in charged(record["event"])]


# --- latents and particles: seen where they are chosen ----------------------------------------------------------------


def classes() -> None:
    """A class per row, of which only the mean is known to differ."""
    z = pm.Categorical("z", pm.Dirichlet("w", np.ones(2)), shape=len(NONE))
    means = pm.Uniform("means", [-2.0, 0.0], [0.0, 2.0], shape=2)
    pm.Normal("y", means[z], 1.0, observed=NONE.astype(float))


def classes_beside_a_column() -> None:
    z, p = pm.Bernoulli("z", 0.4, shape=len(NONE)), pm.Uniform("p", [[0.1], [0.5]], [[0.5], [0.9]], shape=(2, 2))
    pm.Bernoulli("y", p[z, pm.Data("group", NONE)], observed=NONE)


def classes_of_regions() -> None:
    z = pm.Categorical("z", pm.Dirichlet("w", np.ones(2)), shape=2)
    p = pm.Uniform("p", 0.1, 0.9, shape=2, initval=[0.11, 0.89])
    pm.Bernoulli("y", p[z[pm.Data("group", NONE)]], observed=NONE)


def used(call: Callable[..., Any], likelihood: Likelihood, relation: str, epsilon: float, several: bool) -> float:
    """Return the most of its η that a choice uses: of the first one, or of all."""
    call(model=likelihood.model(), domain=likelihood.domain(relation), epsilon=1.0)  # imports what it needs
    tables, seen = hostile(likelihood, likelihood.model()), []
    if relation == "add_remove":
        tables = [{name: rows[:-1] for name, rows in tables[0].items()}, *tables]
    for table in tables:
        model = likelihood.model()
        put(model, table)
        with watched(3) as noted, np.errstate(all="ignore"), dp.testing.insecure_randomness(1):
            idata = call(
                model=model,
                domain=likelihood.domain(relation),
                epsilon=epsilon,
                ledger=dp.Ledger(epsilon, neighbours=relation),
            )
        etas = charged(idata.dp.report().record["event"])
        if several:
            seen.append(list(zip([one for entry in noted for one in entry], etas, strict=True)))
        else:
            seen.append([(noted[0], etas[0])])
    most = 0.0
    for place, (_, eta) in enumerate(seen[0]):
        assert {found[place][1] for found in seen} == {eta}
        weights = np.stack([found[place][0] for found in seen])
        for other in weights[:1] if relation == "add_remove" else weights:
            most = max(most, float(np.ptp(weights - other, axis=-1).reshape(len(weights), -1).sum(axis=1).max()) / eta)
    return most


@pytest.mark.parametrize("build", [classes, classes_beside_a_column, classes_of_regions])
def test_a_row_moves_the_choice_of_latents_by_what_is_charged(build: Callable[[], None]) -> None:
    likelihood = Likelihood(build=build, bounds={"y": (-3, 3)} if build is classes else {"group": (0, 1)})
    assert 0.35 < used(CALLS["TemperedGibbs"], likelihood, "replace", ENOUGH, False) <= 1 + ROUNDING


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_a_row_moves_particles_and_their_weights_by_what_is_charged(relation: str) -> None:
    def call(**given: Any) -> Any:
        return dp.sample_ais(2, random_seed=3, particles=8, temperatures=2, grid=16, progressbar=False, **given)

    assert 0.4 < used(call, ZOO["laplace"], relation, 1.0, True) <= 1 + ROUNDING


def test_a_row_moves_the_draw_of_a_mode_by_what_is_charged() -> None:
    def call(**given: Any) -> Any:
        return dp.find_map(annealed=True, progressbar=False, **given)

    one = Likelihood(
        build=lambda: pm.Laplace("y", pm.Uniform("mu", -1, 1), 1.0, observed=NONE.astype(float)), bounds={"y": (-3, 3)}
    )
    assert 0.8 < used(call, one, "replace", 1.0, False) <= 1 + ROUNDING


# --- by formulas ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [dp.OPS, dp.TemperedGibbs])
@pytest.mark.parametrize("public", [True, False])
def test_a_row_that_may_change_its_group_is_charged_for_both(step: Any, public: bool) -> None:
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.1, 0.5, shape=2)
        pm.Bernoulli("y", p[pm.Data("g", np.array([0, 1, 1]))], observed=np.array([0, 1, 0]))
    found = etas_over_power(ran(model, step(), dp.Domain(public=["g"] if public else [])))
    stays = math.log(0.5 / 0.1) + math.log(0.9 / 0.5)
    assert found == pytest.approx([stays if public else max(stays, 2 * math.log(5))], rel=1e-6)


@pytest.mark.parametrize("step", [dp.OPS, dp.TemperedGibbs])
def test_levels_are_charged_for_two_probabilities(step: Any) -> None:
    """Two probabilities of three move, the third at its least: log(p_1 / p_2) runs over ±log(.8 / .1)."""
    with pm.Model() as model:
        pm.Categorical("y", dp.TruncatedDirichlet("p", np.ones(3), 0.1), observed=np.array([0, 1, 1, 2]))
    assert etas_over_power(ran(model, step())) == pytest.approx([2 * math.log(8)], rel=1e-4)


def test_latents_of_many_rows_are_charged_as_those_of_few() -> None:
    """A row has its own class; which one was redrawn is seen, so that nothing is hidden among the others."""
    for n in (3, 60):
        with pm.Model() as model:
            z = pm.Bernoulli("z", 0.5, shape=n)
            pm.Bernoulli("y", pm.math.switch(z, 0.9, 0.1), observed=np.resize([0, 1], n))
        assert etas_over_power(ran(model, dp.TemperedGibbs())) == pytest.approx([2 * math.log(9)])


def test_hidden_states_are_charged_for_all_profiles_of_a_row_and_each_profile_for_itself() -> None:
    numbers = np.arange(24)
    with pm.Model(coords={"region": range(2), "month": range(3)}) as model:
        start, moves = pm.Dirichlet("start", np.ones(2)), pm.Dirichlet("moves", np.ones((2, 2)))
        states = dp.markov.MarkovStates("states", start, moves, dims=("region", "month"))
        cell = states[pm.Data("region_index", numbers % 2), pm.Data("month_index", numbers // 2 % 3)]
        for name, levels in (("two", 2), ("three", 3)):
            profile = dp.TruncatedDirichlet(f"{name}_profile", np.ones((2, levels)), 0.1)
            pm.Categorical(name, profile[cell], observed=numbers % (2 * levels + 1) % levels)
    idata = ran(model, dp.TemperedGibbs(), dp.Domain(public=["region_index", "month_index"]))
    facts = dict(idata.dp.report().record["sampler"]["facts"])
    found = {
        name.removeprefix("update of "): float(text.split("range ")[1].split()[0])
        for name, text in facts.items()
        if name.startswith("update of ") and "; range " in text
    }
    two, three = 2 * math.log(9), 2 * math.log(8)
    assert found["two_profile"] == pytest.approx(two, rel=1e-4)
    assert found["three_profile"] == pytest.approx(three, rel=1e-4)
    assert 0.9 * (two + three) < found["states"] <= (two + three) * (1 + 1e-4)


@pytest.mark.parametrize("public", [True, False])
def test_one_category_in_two_cells_is_charged_for_both_profiles(public: bool) -> None:
    """A row whose columns are private may leave its cell and keep its category, of which two profiles say much."""
    numbers, least = np.arange(24), np.array([0.01, 0.2, 0.2])
    with pm.Model(coords={"region": range(2), "month": range(3)}) as model:
        start, moves = pm.Dirichlet("start", np.ones(2)), pm.Dirichlet("moves", np.ones((2, 2)))
        states = dp.markov.MarkovStates("states", start, moves, dims=("region", "month"))
        cell = states[pm.Data("region_index", numbers % 2), pm.Data("month_index", numbers // 2 % 3)]
        profile = dp.TruncatedDirichlet("profile", np.ones((2, 3)), least)
        pm.Categorical("y", profile[cell], observed=numbers % 7 % 3)
    columns = {"region_index": (0, 1), "month_index": (0, 2)}
    domain = dp.Domain(public=list(columns)) if public else dp.Domain(bounds=columns)
    idata = ran(model, dp.OPS(assume_converged=True, scans=5), domain)
    wide = np.log((least + 1 - least.sum()) / least)
    assert etas_over_power(idata) == pytest.approx([wide[0] + (wide[1] if public else wide[0])])


@pytest.mark.parametrize("kind", ["logistic", "linear"])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_coefficients_in_a_ball_are_charged_for_their_range(
    kind: str, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SHORT.items():
        monkeypatch.setattr(converged, name, value)
    rng, radius = np.random.default_rng(1), 1.2
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 1.0, shape=2)
        at = pm.Data("x", rng.uniform(-1, 1, (24, 2))) @ w
        if kind == "logistic":
            pm.Bernoulli("y", logit_p=at, observed=rng.integers(0, 2, 24))
        else:
            pm.Normal("y", at, 1.0, observed=rng.normal(size=24))
    ends = (0, 1) if kind == "logistic" else (-2.0, 2.0)
    bounds = {"x": (-1, 1), **({} if kind == "logistic" else {"y": ends})}
    domain = dp.Domain(bounds=bounds, neighbours=relation, n_max=24 if relation == "add_remove" else None)
    idata = ran(dp.truncate(model, norms={"w": radius}), dp.OPS(assume_converged=True), domain)
    turns, lengths = np.linspace(0, 2 * math.pi, 64), np.linspace(0, radius, 9)
    points = np.array([[r * math.cos(t), r * math.sin(t)] for r in lengths for t in turns])
    assert np.linalg.norm(idata["posterior"]["w"].values.ravel()) <= radius
    logs = []
    for x in np.array([(1, 1), (1, -1), (-1, 1), (-1, -1), (0, 0)]):
        for y in np.linspace(*ends, 2 if kind == "logistic" else 9):
            eta = points @ x
            logs.append(-np.logaddexp(0, (1 - 2 * y) * eta) if kind == "logistic" else -((y - eta) ** 2) / 2)
    logs = np.array(logs)
    apart = logs if relation == "add_remove" else np.concatenate([logs - row for row in logs])
    (charge,) = etas_over_power(idata)
    assert 0.6 < np.ptp(apart, axis=1).max() / charge <= 1 + ROUNDING


COUNTED = ["OPS", "OPS, papers", "Gibbs", "Barker", "penalty", "tempered Metropolis", "HMC", "SGLD", "SGNHT, start"]


@pytest.mark.parametrize("one", [pytest.param(SAMPLERS[name], id=name) for name in COUNTED])
def test_all_chains_are_charged_together(one: Sampler) -> None:
    """Two chains at the noise of one would cost more than was asked for; chains draw other numbers."""
    with dp.testing.insecure_randomness(1):  # chains may stay where they start, by chance
        both, alone = (one.sample(chains=chains, draws=3, random_seed=1) for chains in (2, 1))
    assert both.dp.epsilon <= one.epsilon * (1 + 1e-9)

    (two, events), (one_chain, event) = (
        (record["sampler"], record["event"]) for record in (both.dp.report().record, alone.dp.report().record)
    )
    assert (two["chains"], one_chain["chains"]) == (2, 1) and two["steps"] == one_chain["steps"]
    assert one.name in ("Barker", "tempered Metropolis") or events != event
    first, second = (both["posterior"].isel(chain=chain) for chain in (0, 1))
    name = next(iter(first.data_vars))
    assert not np.array_equal(first[name].values, second[name].values)


@pytest.mark.parametrize(("relation", "rows"), [("replace", 2), ("add_remove", 1)])
def test_candidates_are_weighed_by_the_range_of_all_rows_that_there_can_be(relation: str, rows: int) -> None:
    """No more is charged, and by less the numbers of rows would be cut."""
    with pm.Model() as model:
        p = pm.Uniform("p", 0.1, 0.9)
        pm.CustomDist(
            "y", p, logp=lambda v, p: v * pm.math.log(p) + (1 - v) * pm.math.log1p(-p), observed=np.arange(9) % 2
        )
    domain = dp.Domain(bounds={"y": (0, 1)}, neighbours=relation, n_max=20 if relation == "add_remove" else None)
    grid = {"p": np.linspace(0.1, 0.9, 9)}
    idata = dp.find_map(epsilon=1.0, model=model, domain=domain, grid=grid, progressbar=False)
    record = idata.dp.report().record
    (eta,) = charged(record["event"])
    assert f"{rows * math.log(9):.4g}" in str(record["sampler"]) and eta == pytest.approx(1.0)


def test_an_element_is_charged_where_it_meets_rows_in_a_sum_with_others_too() -> None:
    """Elements in [-1, 1]: given the other one, two rows differ by 2 in a sum of both, and by 2 where one is alone.

    Less a cell of a grid.
    """
    rows = np.array([0, 1, 1, 0, 1, 0])
    with pm.Model() as model:
        b = pm.Uniform("b", -1.0, 1.0, shape=2)
        pm.Bernoulli("y", logit_p=b[0] + b[1], observed=rows)
        pm.Bernoulli("z", logit_p=b[pm.Data("group", rows)], observed=rows)
    assert min(etas_over_power(ran(model, dp.TemperedGibbs(), epsilon=50.0))) >= 3.99
