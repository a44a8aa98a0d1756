"""Under a metric no two tables are told apart by more than is charged per unit of their distance.

Seen where a choice or a bit is drawn; whatever does not account per unit refuses a metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from tests.promises import test_bits, test_choices
from tests.promises.test_choices import CALLS
from tests.zoo.samplers import QUIET

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
ROUNDING, EPSILON, N = 1e-6, 0.5, 40
Build = Callable[[], object]
ENDS = {"x": (-3.0, 3.0), "z": (-1.0, 1.0), "k": (0, 12), "lat": (46.0, 49.0), "lon": (9.0, 17.0)}


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


def mean() -> None:
    pm.Normal("x", pm.Uniform("mu", -1, 1), 1.0, observed=np.zeros(N))


def location() -> None:
    pm.Laplace("x", pm.TruncatedNormal("mu", 0.2, 0.7, lower=-1, upper=1), 0.5, observed=np.zeros(N))


def slope() -> None:
    pm.Normal("x", pm.Uniform("b", -1, 1) * pm.Data("z", np.zeros(N)), 1.0, observed=np.zeros(N))


def rate() -> None:
    pm.Poisson("k", pm.Uniform("rate", 0.5, 5), observed=np.zeros(N, dtype=int))


def places() -> None:
    pm.Normal("lat", pm.Uniform("a", 46, 49), 1.0, observed=np.zeros(N))
    pm.Normal("lon", pm.Uniform("b", 9, 17), 3.0, observed=np.zeros(N))


def jump() -> None:
    """At 0 the density of a row is another one."""

    def logp(value: Any, mu: Any) -> Any:
        return -((value - mu) ** 2) / 2 + 30 * pt.sign(value) * pt.sin(7 * mu)

    pm.CustomDist("x", pm.Uniform("mu", -1, 1), logp=logp, observed=np.zeros(N))


CASES: dict[str, tuple[Build, dp.metrics.Metric]] = {
    "a mean": (mean, dp.metrics.L1("x")),
    "a mean, in other units": (mean, dp.metrics.L1({"x": 0.1})),
    "whole rows": (mean, dp.metrics.Hamming()),
    "a location": (location, dp.metrics.L1("x")),
    "a slope": (slope, dp.metrics.L2(["x", "z"])),
    "a slope, added": (slope, dp.metrics.L1({"x": 1.0, "z": 3.0})),
    "a slope, told apart": (slope, dp.metrics.L1("x") + dp.metrics.Hamming({"z": 2.0})),
    "a rate": (rate, dp.metrics.L1("k")),
    "a place": (places, dp.metrics.Geographic("lat", "lon", 0.01)),
}
SAMPLERS: Mapping[str, Callable[..., Any]] = {
    **{name: call for name, call in CALLS.items() if name != "TemperedGibbs"},
    "annealed": lambda **given: dp.find_map(annealed=True, progressbar=False, **given),
    "OPS, papers": lambda **given: dp.sample(1, tune=0, chains=1, step=dp.OPS(grid=64, papers=True), **QUIET, **given),
}


def domain_of(build: Build, metric: dp.metrics.Metric) -> tuple[pm.Model, dp.Domain]:
    with pm.Model() as model:
        build()
    names = {var.name for var in (*model.observed_RVs, *model.data_vars)}
    return model, dp.Domain(bounds={name: ENDS[name] for name in names}, metric=metric)


def tables(domain: dp.Domain) -> list[dict[str, np.ndarray]]:
    """Tables whose rows are at an end; one row, or all, moved by nothing to all there is, in steps of public nodes."""
    found = []
    for end in (0, 1):
        for share, many in ((0, False), (1 / 64, False), (0.5, False), (1, False), (1 / 4, True)):
            table = {}
            for name, ends in domain.bounds.items():
                whole = name == "k"
                moved = ends[end] + (ends[1 - end] - ends[end]) * (np.ceil(share * 4) / 4 if whole else share)
                table[name] = np.full(N, ends[end], dtype=int if whole else float)
                table[name][0 if many else -1 :] = moved
            found.append(table)
    return found


def used(
    call: Callable[[pm.Model, dp.Domain], tuple[list[np.ndarray], list[float]]], build: Build, metric: Any
) -> float:
    """Return the largest share of what is charged for their distance by which two tables are told apart."""
    model, domain = domain_of(build, metric)
    given, most = tables(domain), 0.0
    found = []
    for table in given:
        test_choices.put(model, table)
        found.append(call(model, domain))
    for one, (weights, charged) in zip(given, found, strict=True):
        for other, (others, same) in zip(given, found, strict=True):
            apart = float(metric.distance(one, other).sum())
            assert charged == pytest.approx(same, rel=1e-9) and len(weights) == len(others) == len(charged)
            for first, second, cost in zip(weights, others, charged, strict=True):
                moved = float(np.ptp(first - second))
                most = max(most, (moved - 1e-9) / (cost * apart)) if apart else most
                assert apart or moved < 1e-9
    return most


@cache
def warm(name: str) -> None:
    """Import what a sampler needs, before anything is patched."""
    model, domain = domain_of(*CASES["a mean"])
    SAMPLERS[name](model=model, domain=domain, epsilon=EPSILON)


def chosen(name: str) -> Callable[[pm.Model, dp.Domain], tuple[list[np.ndarray], list[float]]]:
    """Return log weights of all choices, and what is charged for each."""

    def call(model: pm.Model, domain: dp.Domain) -> tuple[list[np.ndarray], list[float]]:
        warm(name)
        with test_choices.watched(3) as noted, dp.testing.insecure_randomness(1):
            idata = SAMPLERS[name](
                model=model, domain=domain, epsilon=EPSILON, ledger=dp.Ledger(EPSILON, metric=domain.metric)
            )
        event = idata.dp.report().record["event"]
        assert idata.dp.epsilon_per_unit <= EPSILON
        pure = [event["event"]["epsilon"]] if event["event"]["kind"] == "pure" else test_choices.charged(event)
        return list(noted), pure

    return call


def accepted(model: pm.Model, domain: dp.Domain) -> tuple[list[np.ndarray], list[float]]:
    """Return log odds of the first bit of a chain, and what is spent for it."""
    with test_bits.watched() as seen:
        idata = dp.sample(2, tune=0, chains=1, step=dp.BarkerMetropolis(scale=0.5), model=model, domain=domain,
                          epsilon=90.0, random_seed=1, **QUIET)  # fmt: skip
    odds = np.log(seen[0]) - np.log1p(-seen[0])
    per_unit = idata.dp.epsilon_per_unit / idata.dp.epsilon
    return [np.array([0.0, odds])], [float(idata["sample_stats"]["epsilon_spent"][0, 0]) * per_unit]


@pytest.mark.few(6)
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("case", CASES)
def test_no_choice_tells_more_than_is_charged_per_unit(case: str, name: str) -> None:
    assert 0.05 < used(chosen(name), *CASES[case]) <= 1 + ROUNDING


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES)
def test_no_bit_tells_more_than_is_spent_per_unit(case: str) -> None:
    assert 0.05 < used(accepted, *CASES[case]) <= 1 + ROUNDING


def test_where_a_density_jumps_near_rows_are_told_apart_by_no_more() -> None:
    """What candidates are weighed by is enforced, and not proved."""
    assert 0.005 < used(chosen("find_map"), jump, dp.metrics.L1("x")) <= 1 + ROUNDING


# --- what is refused --------------------------------------------------------------------------------------------------

OTHERS = {
    "TemperedGibbs": {},
    "PenaltyMetropolis": {},
    "TemperedMetropolis": {},
    "PrivateHMC": {},
    "SGLD": {"batch_size": 2, "clip_norm": 1.0},
    "SGHMC": {"batch_size": 2, "clip_norm": 1.0},
    "SGNHT": {"batch_size": 2, "clip_norm": 1.0},
    "SGFS": {"batch_size": 2, "clip_norm": 1.0},
}
REFUSED = [
    *((mean, dp.metrics.L1("x"), name, given, 1e-6, "not per unit of a metric") for name, given in OTHERS.items()),
    (mean, dp.metrics.L1("x"), "OPS", {}, 1e-6, "does not grow in proportion"),
    (mean, dp.metrics.L1("x"), "BarkerMetropolis", {"clamp": 1.0}, 0.0, "says nothing about two rows that are close"),
    (slope, dp.metrics.L1("x"), "OPS", {}, 0.0, "z"),
]


@pytest.mark.parametrize(("build", "metric", "name", "given", "delta", "words"), REFUSED)
def test_a_metric_that_means_nothing_is_refused_before_a_row_is_read(
    build: Build, metric: Any, name: str, given: Any, delta: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pymc_dp.rows.gate._array", lambda leaf: pytest.fail("rows were read"))
    model, domain = domain_of(build, metric)
    with pytest.raises(dp.errors.PrivacyError) as error:
        dp.sample(epsilon=1.0, delta=delta, step=getattr(dp, name)(**given), model=model, domain=domain, **QUIET)
    assert words in "\n".join([str(error.value), *map(str, getattr(error.value, "problems", ()))])


def test_every_sampler_is_looked_at() -> None:
    kinds = {name for name in dp.__all__ if hasattr(getattr(dp, name), "knows_metric")}
    assert {name for name in kinds if not getattr(dp, name).knows_metric} == {*OTHERS} & kinds
