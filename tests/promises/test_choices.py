"""No draw is made from numbers that one row moves by more than is charged: seen where a choice is randomised.

The exponential mechanism is replaced by one that notes its log weights and chooses by public numbers, so that all
tables lead through the same states.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.draws import finite_choice
from pymc_dp.kernel import draw
from tests.zoo.densities import ODD
from tests.zoo.likelihoods import ZOO, Likelihood
from tests.zoo.samplers import QUIET

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
ENOUGH, ROUNDING, ROWS = 1e9, 1e-9, 6
"""An ε at which nothing is tempered; rounding of the differences that are taken here; rows of a table."""
OTHERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0)
SHARES = (1e-16, 1e-9, 1e-3, 0.03, 0.2, 0.5)
Table = Mapping[str, np.ndarray]
CALLS: dict[str, Callable[..., Any]] = {
    "OPS": lambda **given: dp.sample(1, tune=0, chains=1, step=dp.OPS(grid=64), **QUIET, **given),
    "TemperedGibbs": lambda **given: dp.sample(2, tune=0, chains=1, step=dp.TemperedGibbs(grid=32), **QUIET, **given),
    "find_map": lambda **given: dp.find_map(grid=64, progressbar=False, **given),
}


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


@contextmanager
def watched(seed: int) -> Iterator[list[np.ndarray]]:
    """Note the (n_elements, n_choices) log weights of every choice; half of all choices are the first or the last."""
    noted: list[np.ndarray] = []
    rng, own, one_of = np.random.default_rng(seed), finite_choice.choose, draw.one_of

    def choose(_: Any, log_weights: Any) -> np.ndarray:
        weights = np.array(log_weights, dtype=float)
        noted.append(weights.reshape(-1, weights.shape[-1]))
        shape, count = weights.shape[:-1], weights.shape[-1]
        ends = np.where(rng.random(shape) < 0.5, 0, count - 1)
        return np.asarray(np.where(rng.random(shape) < 0.5, ends, rng.integers(count, size=shape)))

    def whole_weights(scores: Any, span: int, eta: float, public: Any) -> np.ndarray:
        """Of the kernel: what a choice of its own is made of."""
        place = int(choose(None, np.asarray(scores * (eta / span) + public)))
        return np.eye(1, len(scores), place, dtype=np.int64)[0]

    def weights_behind(behind: np.ndarray, possible: np.ndarray) -> np.ndarray:
        """Of the kernel: what choices by exact sums are made of, of each element or row."""
        weights = np.where(possible, behind / 2**draw.SHIFT, -np.inf)
        return np.eye(weights.shape[-1], dtype=np.int64)[[int(choose(None, one)) for one in weights]]

    def all_cells(weights: np.ndarray) -> np.ndarray:
        """Of the kernel: choices of all cells, which are paid for as one."""
        noted[-len(weights) :] = [np.concatenate(noted[-len(weights) :])]
        return np.asarray(one_of(weights))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw, "whole_weights", whole_weights)
        patch.setattr(draw, "weights_behind", weights_behind)
        patch.setattr(draw, "one_of", all_cells)
        for module in [item for key, item in sys.modules.items() if key.startswith("pymc_dp")]:
            for name in [name for name, held in vars(module).items() if held is own]:
                patch.setattr(module, name, choose)
        yield noted


def charged(event: Mapping[str, Any]) -> list[float]:
    """Return η of every choice, in their order."""
    if event["kind"] == "bounded_range":
        return [event["eta"]]
    parts = event.get("events", [event["event"]] if "event" in event else [])
    return [eta for part in parts for eta in charged(part)] * int(event.get("count", 1))


def together(event: Mapping[str, Any]) -> float:
    """Return ε of all choices of a pool of pure losses."""
    assert event["kind"] == "pure"
    return float(event["epsilon"])


def put(model: pm.Model, table: Table) -> None:
    """Let a model hold other rows."""
    for name, rows in table.items():
        if name in model and hasattr(model[name], "set_value"):
            model[name].set_value(rows)
        else:
            model.rvs_to_values[model[name]].data = rows


def hostile(likelihood: Likelihood, model: pm.Model) -> list[Table]:
    """Return tables that differ in their last row: at ends, near them, and by what is no number of the column."""
    dtypes = {
        name: np.dtype((model[name] if hasattr(model[name], "set_value") else model.rvs_to_values[model[name]]).dtype)
        for name in {
            *likelihood.bounds,
            *(var.name for var in model.observed_RVs),
            *(var.name for var in model.data_vars),
        }
    }
    ends = {name: likelihood.bounds.get(name, (0, 1)) for name in dtypes}
    rows = [dict(zip(ends, corner, strict=True)) for corner in product(*ends.values())]
    rows += [{name: low + share * (high - low) for name, (low, high) in ends.items()} for share in SHARES]
    rows += [{**rows[0], name: value} for name in ends for value in OTHERS]
    found = []
    for row in rows:
        table = {}
        for name, dtype in dtypes.items():
            whole = dtype.kind != "f"
            usual, last = (np.nan_to_num(value, posinf=99, neginf=-99) if whole else value
                           for value in (ends[name][0], row[name]))  # fmt: skip
            shape = (ROWS, *np.shape(held_by(model, name))[1:])
            table[name] = np.full(shape, np.clip(usual, -99, 99) if whole else usual).astype(dtype)
            table[name][-1] = np.clip(last, -99, 99) if whole else last
        found.append(table)
    return found


def held_by(model: pm.Model, name: str) -> np.ndarray:
    var = model[name]
    return np.asarray(var.get_value() if hasattr(var, "get_value") else model.rvs_to_values[var].data)


def worst(sampler: str, likelihood: Likelihood, epsilon: float = ENOUGH, relation: str = "replace") -> float:
    """Return the most of its η that a choice uses on any two of the tables."""
    calls, etas, pool = [], None, 0.0
    CALLS[sampler](model=likelihood.model(), domain=likelihood.domain(relation), epsilon=1.0)  # imports what it needs
    tables = hostile(likelihood, likelihood.model())
    if relation == "add_remove":
        tables = [{name: rows[:-1] for name, rows in tables[0].items()}, *tables]
    for table in tables:
        model = likelihood.model()
        put(model, table)
        ledger = dp.Ledger(epsilon, neighbours=relation)
        with watched(3) as noted, np.errstate(all="ignore"), dp.testing.insecure_randomness(1):
            idata = CALLS[sampler](model=model, domain=likelihood.domain(relation), epsilon=epsilon, ledger=ledger)
        found = charged(idata.dp.report().record["event"])
        assert etas in (None, found), "what is charged depends on a row"
        etas, pool = found, 0.0 if found else together(idata.dp.report().record["event"])
        calls.append(list(noted))
    if not any(calls):
        return 0.0  # drawn exactly from a known distribution, and not among candidates: test_conjugate_pairs
    counts = {len(noted) for noted in calls}
    assert len(counts) == 1 and (pool or counts == {len(etas or [])}), "how many choices there are depends on a row"
    used = 0.0
    for place, eta in enumerate(etas or [pool] * counts.pop()):
        weights, most = np.stack([noted[place] for noted in calls]), 0.0
        for other in weights[:1] if relation == "add_remove" else weights:
            never = np.isneginf(weights) & np.isneginf(other)
            apart = np.where(never, np.nan, weights - np.where(never, 0, other))
            span = np.nan_to_num(np.nanmax(apart, axis=-1) - np.nanmin(apart, axis=-1), nan=np.inf).sum(axis=-1)
            most = max(most, float(span.max()) / eta)
        used = used + most if pool else max(used, most)
    return used


QUICK = ("log of a normal tail", "sigmoid times 1", "1 - exp(-x)", "tail of groups", "ratio of gammas")


@pytest.mark.few(3)
@pytest.mark.parametrize("sampler", CALLS)
@pytest.mark.parametrize(("name", "relation"), [(name, one) for name in QUICK for one in ODD[name].relations])
def test_no_row_moves_a_choice_by_more_than_is_charged(name: str, relation: str, sampler: str) -> None:
    assert 0.05 < worst(sampler, ODD[name], relation=relation) <= 1 + ROUNDING


@pytest.mark.parametrize("sampler", CALLS)
def test_what_costs_an_epsilon_of_1_is_used_up_and_no_more(sampler: str) -> None:
    """Of a plain density, so that half of a bound, or twice as much, would be seen."""
    found = worst(sampler, ZOO["laplace"], 1.0)
    assert 0.7 < found <= 1 + ROUNDING


# --- a million rows ---------------------------------------------------------------------------------------------------

MILLION = 1_000_000


def far_normal(low: float = 999.0) -> None:
    """A normal far from its rows, drawn on a grid: its sums are whole numbers, and its density one of floats."""
    pm.Normal("y", low + 2 * pm.Uniform("u", 0, 1), 1.0, observed=np.zeros(1))


def wide_laplace() -> None:
    """Rows that leave a float sum of them few digits for what depends on the parameter."""
    pm.CustomDist("y", pm.Uniform("mu", 0, 1), logp=lambda v, mu: -abs(v - mu), observed=np.zeros(1))


def tall(
    build: Callable[[], None], rows: np.ndarray, bounds: tuple[float, float], epsilon: float = ENOUGH
) -> tuple[np.ndarray, float]:
    """Return the log weights of a draw given a million rows, and what is charged for it."""
    with pm.Model() as model:
        build()
    put(model, {"y": rows})
    with watched(3) as noted, dp.testing.insecure_randomness(1):
        idata = CALLS["OPS"](
            model=model, domain=dp.Domain(bounds={"y": bounds}), epsilon=epsilon, ledger=dp.Ledger(epsilon)
        )
    return noted[0], idata.dp.report().record["event"]["event"]["eta"]


@pytest.mark.parametrize(
    ("build", "ends", "epsilon"), [(far_normal, (0.0, 1.0), 4e-6), (wide_laplace, (-1e5, 1e5), ENOUGH)]
)
def test_one_row_of_a_million_moves_what_is_charged_and_no_order_shows(
    build: Callable[[], None], ends: tuple[float, float], epsilon: float, rng: np.random.Generator
) -> None:
    """Candidates are compared where they are drawn: none of them may be too far behind to be seen."""
    rows = rng.uniform(*ends, MILLION)
    rows[0] = ends[0]
    other = rng.permutation(rows)
    other[np.argmin(other)] = ends[1]
    (one, eta), (shuffled, _), (changed, _) = (
        tall(build, table, ends, epsilon) for table in (rows, rng.permutation(rows), other)
    )
    assert (one == shuffled).all()
    assert 0.5 * eta < float(np.ptp(one - changed)) <= eta * (1 + ROUNDING)


def test_sums_beside_which_one_row_has_no_digits_are_refused() -> None:
    with pytest.raises(dp.errors.UnsupportedModelError, match="no digits left"):
        tall(lambda: far_normal(1e6), np.zeros(200_000), (0.0, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", {**ODD, **ZOO})
def test_no_density_lets_a_row_move_more(name: str) -> None:
    likelihood = {**ODD, **ZOO}[name]
    for sampler in CALLS:
        try:
            assert worst(sampler, likelihood) <= 1 + ROUNDING
        except (dp.errors.UnsupportedModelError, dp.errors.ArgumentError):
            continue  # refused, which is safe
