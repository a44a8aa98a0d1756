"""Noised gradients of batches: what a row moves a state by, over the noise that is seen, is what is charged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.zoo.samplers import QUIET

pytestmark = pytest.mark.filterwarnings(
    "ignore::pymc_dp.errors.RepeatedReleaseWarning", "ignore:Found chain dimension to be longer:UserWarning"
)
ROWS, CHAINS, CLIP = 20, 60, 0.8


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


STEPS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "SGLD": (dp.SGLD, {}),
    "SGLD, fixed batches": (dp.SGLD, {"sampling": "without_replacement"}),
    "SGLD, papers": (dp.SGLD, {"papers": True}),
    "SGHMC": (dp.SGHMC, {}),
    "SGNHT": (dp.SGNHT, {}),
}


def first_states(name: str, relation: str, far: list[float], answers: list[int]) -> tuple[np.ndarray, float]:
    """Return the first states of many chains, and the noise multiplier that is charged for each step."""
    make, given = STEPS[name]
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        x = np.array([far, np.zeros(len(far))]).T
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ b, observed=np.array(answers))
    domain = dp.Domain(neighbours=relation, n_max=ROWS if relation == "add_remove" else None)
    step = make(clip_norm=CLIP, batch_size=ROWS, **given)
    with dp.testing.insecure_randomness(3):
        idata = dp.sample(
            1, tune=0, chains=CHAINS, epsilon=50.0, delta=1e-3, step=step, model=model, domain=domain, **QUIET
        )
    event = idata.dp.report().record["event"]["event"]
    return idata["posterior"]["b"].values.reshape(CHAINS, 2), event["noise_multiplier"]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "relation"),
    [(name, one) for name in STEPS for one in ("replace", "add_remove") if (one == "replace") or "," not in name],
)
def test_a_row_moves_a_state_by_what_its_noise_is_charged_for(name: str, relation: str) -> None:
    """Rows at 10^3 and at 10^300, of either sign, and rows that are not there."""
    ones, last = [1e3] * ROWS, 0.0 if relation == "add_remove" else -1e3  # a row without a gradient is none
    states, multiplier = first_states(name, relation, ones, [1] * ROWS)
    others, same = first_states(name, relation, [*ones[1:], last], [1] * ROWS)
    moved = states - others
    assert multiplier == same and np.ptp(moved, axis=0).max() < 1e-9 * np.abs(moved).max()
    norm = np.linalg.norm(moved[0]) / (2 if relation == "replace" else 1)  # of one clip norm
    deviations = (states - states.mean(axis=0)).ravel()
    seen = np.sqrt((deviations**2).mean())
    assert multiplier == pytest.approx(seen / norm, rel=0.35)
    assert abs(np.corrcoef(states.T)[0, 1]) < 0.6, "entries have noise of their own"
    beyond, _ = first_states(name, relation, [*ones[1:], 1e300], [1] * ROWS)
    assert np.linalg.norm(beyond - states, axis=1).max() <= norm * (1 + 1e-6)


def test_a_batch_is_divided_by_its_public_size() -> None:
    """All rows pull one way: by the realised size, half of them would do as much."""
    (all_of, multiplier), (half, _) = (
        first_states("SGLD", "add_remove", [1e3] * count, [1] * count) for count in (ROWS, ROWS // 2)
    )
    unit = all_of[:, 1].std() / multiplier
    assert (all_of - half)[:, 0].mean() / unit == pytest.approx(ROWS / 2, abs=0.8 * ROWS / 2)


REFUSED = [
    ({"start": {"p": 0.5}}, "is not accepted: a chain begins where PyMC says, or at one posterior sample"),
    ({"start": dp.OPS}, "is not accepted"),
    ({"start": dp.SGLD()}, "is not accepted"),
    ({"start": dp.OPS(), "start_share": 0.0}, "strictly between 0 and 1, got 0"),
    ({"start": dp.OPS(), "start_share": float("nan")}, "start_share must be finite"),
    ({"start": dp.OPS(), "start_share": "half"}, "start_share must be a number"),
    ({"start_share": 0.4}, "means nothing without start"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED)
@pytest.mark.parametrize("make", [dp.SGLD, dp.SGHMC, dp.SGNHT, dp.SGFS])
def test_other_starts_are_refused(make: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(dp.errors.ArgumentError, match=words):
        make(**given)


def test_batches_of_fixed_size_show_the_number_of_rows_and_are_refused() -> None:
    with pytest.raises(dp.errors.ArgumentError, match="cannot be used with neighbours='add_remove'"):
        first_states("SGLD, fixed batches", "add_remove", [1.0, 1.0], [0, 1])
