"""No accept bit of a chain tells more of a row than it is charged: seen where bits are drawn.

The generator notes what uniform numbers are compared with, single normal numbers are chosen, and noised sums are 0, so
that all tables lead through the same states.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as dp
from pymc_dp.accounting import ZCDPEvent, event_from_dict, total_epsilon
from pymc_dp.kernel import draw
from tests.zoo.kind import Table
from tests.zoo.samplers import QUIET, SAMPLERS, Sampler

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
ROUNDING = 1e-6


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


class Watched:
    """A seeded generator that notes what a uniform or exponential number is compared with; all is accepted."""

    def __init__(self, normal: float, steep: int | None) -> None:
        self.rng, self.normal, self.seen, self.left = np.random.default_rng(5), normal, [], steep

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rng, name)

    def standard_normal(self, size: int | None = None) -> Any:
        """Return a chosen number; of vectors those of a seed, or of which one alone is no zero."""
        if size is None:
            return self.normal
        if self.left is None:
            return self.rng.standard_normal(size)
        self.left -= 1
        return np.eye(1, size).ravel() * (self.left == -1)

    def random(self) -> Watched:
        return self

    standard_exponential = __neg__ = random

    def take(self, chance: float) -> np.ndarray:
        """Note the chance of a bit of the kernel, and accept."""
        self.seen.append(float(chance))
        return np.ones(1, dtype=int)

    def __pow__(self, power: float) -> float:
        return self.rng.random() ** power

    def __lt__(self, chance: float) -> bool:
        self.seen.append(float(chance))
        return True


@contextmanager
def watched(normal: float = 0.0, steep: int | None = None) -> Iterator[list[float]]:
    """Note what is compared with random numbers of chains."""
    own, made = sys.modules["pymc_dp.kernel.randomness"].secure_generator, Watched(normal, steep)
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for module in [item for key, item in sys.modules.items() if key.startswith("pymc_dp.step_methods")]:
            if getattr(module, "secure_generator", None) is own:
                patch.setattr(module, "secure_generator", lambda stream=None: made)
        patch.setattr(draw, "float_generator", lambda: made)
        patch.setattr(draw, "noised", lambda whole, kind, scale: np.zeros_like(whole))
        patch.setattr(draw, "one_of", lambda weights: made.take(weights[0, 1] / weights[0].sum()))
        patch.setattr(draw, "accepted", lambda exponent: made.take(np.exp(exponent * 2.0**-draw.SHIFT)))
        yield made.seen


def chosen(one: Sampler, table: Table, normal: float = 0.0, **given: Any) -> tuple[float, Any]:
    """Return what the first bit is compared with, and the trace."""
    with watched(normal) as seen:
        idata = one.sample(table, random_seed=3, **given)
    return seen[0], idata


ENDS = {"x": (0.0, 1.0), "z": (-1.0, 1.0), "y": (-2.0, 2.0), "yes": (0, 1)}
HOSTILE = (np.inf, 1e308, -np.inf)


def moved(one: Sampler, odds: Callable[[Table], tuple[float, float]]) -> float:
    """Return the largest share of what is charged that a row uses: at the ends of columns, and beyond."""
    names = [name for name in ENDS if name in one.kind.bounded or (name == "yes" and "y" not in one.kind.bounded)]
    rows = list(product(*(ENDS[name] for name in names)))
    rows += [
        tuple(row if name == "yes" else value for name, row in zip(names, rows[0], strict=True)) for value in HOSTILE
    ]
    found = []
    for row in rows:
        table = one.kind.table()
        for name, last in zip(names, row, strict=True):
            table[name][-1] = last
        found.append(odds(table))
    if one.relation == "add_remove":
        found.insert(0, odds({name: column[:-1] for name, column in table.items()}))
    values, charged = np.transpose(found)
    assert np.ptp(charged) <= ROUNDING * charged[0], "what is charged depends on a row"
    apart = values - values[:1] if one.relation == "add_remove" else values[:, None] - values
    return float(np.abs(apart).max() / charged[0])


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name.startswith("Barker")])
def test_no_row_moves_the_odds_of_barkers_bit_by_more_than_is_spent(name: str) -> None:
    one = SAMPLERS[name]

    def odds(table: Table) -> tuple[float, float]:
        chance, idata = chosen(one, table, draws=2, epsilon=500.0, delta=0.0)
        return np.log(chance) - np.log1p(-chance), float(idata["sample_stats"]["epsilon_spent"][0, 0])

    assert 0.3 < moved(one, odds) <= 1 + ROUNDING


def leaves(event: Any) -> list[Any]:
    """Return the events that one is composed of."""
    parts = [event["event"]] if "event" in event else event.get("events", [])
    return [leaf for part in parts for leaf in leaves(part)] or [event]


@pytest.mark.parametrize(
    "name", [name for name, one in SAMPLERS.items() if name.startswith(("penalty", "HMC")) and not one.refused]
)
def test_a_penalty_has_the_noise_that_is_charged_for_what_a_row_moves(name: str) -> None:
    """Two normal numbers show the spread of the noise."""
    one = SAMPLERS[name]
    (low, idata), (lower, _) = (chosen(one, one.kind.table(), normal, draws=1) for normal in (-80.0, -100.0))
    spread = (np.log(low) - np.log(lower)) / 20
    (ratio,) = [bit["ratio"] for bit in leaves(idata.dp.report().record["event"]) if bit["kind"] == "penalty_bit"]
    charged = spread * ratio
    assert 0.3 < moved(one, lambda table: (np.log(chosen(one, table, -80.0, draws=1)[0]), charged)) <= 1 + ROUNDING


def test_a_bit_of_tempered_metropolis_costs_its_share_of_both_numbers() -> None:
    """Acceptances of neighbours lie within a factor, and so do rejections but for δ."""
    one, chances = SAMPLERS["tempered Metropolis"], []

    def odds(table: Table) -> tuple[float, float]:
        chance, idata = chosen(one, table, draws=2)
        asked = idata.dp.report().record["event"]
        chances.append((chance, asked["epsilon"] / 2, asked["delta"] / 2))
        return np.log(chance), asked["epsilon"] / 2

    assert moved(one, odds) <= 1 + ROUNDING
    refused = [(1 - chance) - np.exp(epsilon) * (1 - other)
               for chance, epsilon, _ in chances for other, _, _ in chances]  # fmt: skip
    assert max(refused) <= chances[0][2]


INTERVALS = {"open_share": (0.0, 1.0), "share": (0.1, 0.9), "robust": (-1.0, 1.0)}
"""Of parameters that are moved on the scale of a logit."""


@pytest.mark.parametrize("name", ["Barker", "Barker, numbers", "Barker, rows one by one", "Barker, two coefficients",
                                  "penalty", "penalty, rows one by one", "tempered Metropolis"])  # fmt: skip
def test_the_odds_of_a_bit_are_those_of_the_posterior(name: str) -> None:
    """Between the first two states of a chain, by the model's own formulas."""
    one, table, found = SAMPLERS[name], SAMPLERS[name].kind.table(), []
    assert one.law is not None
    for normal in (-80.0, -100.0) if "penalty" in name else (0.0,):
        with watched(normal) as seen:
            idata = one.sample(table, draws=2, epsilon=500.0 if "Barker" in name else one.epsilon, random_seed=3)
        found.append(seen[1])
    states = {}
    for axis in one.law.axes:
        variable, _, place = axis.partition("[")
        states[axis] = idata["posterior"][variable].values[0].reshape(2, -1)[:, int(place.rstrip("]") or 0)]
    power = idata.dp.report().record["sampler"]["power"]
    logs = one.law.prior(states) + power * one.law.likelihood(table, states)
    for low, high in [INTERVALS[one.kind.name]] if one.kind.name in INTERVALS else []:
        (values,) = states.values()
        logs = logs + np.log((values - low) * (high - values))
    if "penalty" in name:
        spread = (np.log(found[0]) - np.log(found[1])) / 20
        assert np.log(found[0]) + 80 * spread + spread**2 / 2 == pytest.approx(logs[1] - logs[0], rel=1e-4)
    elif "Barker" in name:
        assert np.log(found[0] / (1 - found[0])) == pytest.approx(logs[1] - logs[0], rel=1e-4)
    else:
        assert np.log(found[0]) == pytest.approx(min(0.0, logs[1] - logs[0]), rel=1e-4)


# --- HMC: noised gradients beside the bits ----------------------------------------------------------------------------


def test_hmc_draws_the_noised_gradients_and_bits_that_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many of each, every gradient with noise of one scale, whatever the state is."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.array([1.0, 2.0]))
    step, made = dp.PrivateHMC(clip_norm=0.3, n_leapfrog=3), []
    with watched(-1.0) as seen:
        monkeypatch.setattr(draw, "noised", lambda whole, *noise: made.append(noise) or np.zeros_like(whole))
        idata = dp.sample(4, tune=0, chains=1, epsilon=2.0, delta=1e-6, step=step, model=model, **QUIET)
    bits, gradients = idata.dp.report().record["event"]["events"]
    assert (bits["event"]["kind"], bits["count"], len(seen)) == ("penalty_bit", 4, 4)
    assert (gradients["event"]["kind"], gradients["count"]) == ("discrete_gaussian", 13)
    assert made == [("gaussian", gradients["event"]["scale"])] * 13


# --- where nothing is proved, and where a budget ends -----------------------------------------------------------------


def test_what_is_no_number_counts_for_no_more_than_its_clamp() -> None:
    """A density of one row that is no number, infinite, or near the ends of floats, by its value."""

    def logp(value: Any, mu: Any) -> Any:
        found = -mu * value
        for place, number in enumerate((np.nan, np.inf, -np.inf, 1e308, -1e308), start=1):
            found = pt.switch(pt.eq(value, float(place)), pt.constant(number) * pt.sign(mu), found)
        return found

    odds = []
    for value in (*np.arange(6.0), -0.5, 0.5, 1e300):
        with pm.Model() as model:
            pm.CustomDist("y", pm.Normal("mu", initval=-0.7), logp=logp, observed=np.array([0.0, value]))
        with watched() as seen:
            step = dp.BarkerMetropolis(clamp=1.0, scale=1.5)
            idata = dp.sample(2, tune=0, chains=1, epsilon=90.0, step=step, model=model, random_seed=1, **QUIET)
        odds.append(np.log(seen[0]) - np.log1p(-seen[0]))
        spent = float(idata["sample_stats"]["epsilon_spent"][0, 0])
    assert np.isfinite(odds).all() and 0.5 < np.ptp(odds) / spent <= 1 + ROUNDING


def test_bits_of_a_small_range_are_charged_an_eighth_of_its_square() -> None:
    """The same moves at δ = 0, where ranges add, and at δ > 0."""
    runs = []
    for given in ({"epsilon": 500.0, "delta": 0.0}, {"epsilon": 50.0, "delta": 1e-3}):
        with watched():
            idata = SAMPLERS["Barker"].sample(draws=30, random_seed=3, **given)
        runs.append((idata["posterior"]["p"].values[0], idata["sample_stats"]["epsilon_spent"].values[0, :-1]))
    (states, added), (same, spent) = runs
    assert np.array_equal(states, same)
    rho = (np.diff(added, prepend=0.0) ** 2).sum() / 8
    assert 1 - ROUNDING <= spent[-1] / total_epsilon(ZCDPEvent(rho=rho), 1e-3).epsilon < 1.01


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_chain_ends_before_its_budget_is_exceeded(delta: float) -> None:
    with pytest.warns(UserWarning, match="was spent after"), dp.testing.insecure_randomness(1):
        idata = SAMPLERS["Barker"].sample(draws=500, epsilon=1.0, delta=delta, random_seed=1)
    spent = idata["sample_stats"]["epsilon_spent"].values[0]
    assert len(spent) < 500 and (np.diff(spent) >= 0).all() and 0.3 < spent[-1] <= 1.0


def test_a_scan_of_penalties_is_charged_a_bit_for_every_block() -> None:
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=np.linspace(-1, 2, 40))
    step, domain = dp.PenaltyMetropolis(blocks="each", scale=0.1), dp.Domain(bounds={"y": (-3, 3)})
    with dp.testing.insecure_randomness(1):
        idata = dp.sample(3, tune=0, chains=1, epsilon=1.0, delta=1e-6, step=step, model=model, domain=domain, **QUIET)
    event = event_from_dict(idata.dp.report().record["event"])
    assert 0.99 < total_epsilon(event, 1e-6).epsilon <= 1.0


REFUSED = [
    (dp.BarkerMetropolis, {"blocks": "all"}, "blocks"),
    (dp.BarkerMetropolis, {"blocks": [["mu"], []]}, "blocks"),
    (dp.BarkerMetropolis, {"blocks": [["mu", "nu"]]}, "once"),
    (dp.BarkerMetropolis, {"blocks": [["mu"], ["mu"]]}, "once"),
    (dp.TemperedMetropolis, {"radius": 1e6}, "no certificate at the initial point"),
    (dp.PrivateHMC, {}, "Give clip_norm"),
]


@pytest.mark.parametrize(("make", "given", "words"), REFUSED)
def test_what_is_wrong_costs_nothing(make: Any, given: dict[str, Any], words: str) -> None:
    one, ledger = SAMPLERS["Barker, numbers"], dp.Ledger(2.0, 1e-6)
    with pytest.raises(dp.errors.PrivacyError, match=words):
        model, domain = one.kind.build(one.kind.table()), one.domain()
        dp.sample(5, model=model, domain=domain, epsilon=1.0, delta=1e-6, ledger=ledger, step=make(**given), **QUIET)
    assert ledger.history == []
