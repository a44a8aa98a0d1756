"""What every private sampler promises, through the calls that a user makes: each of the table, on its own model."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

import arviz as az
import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.accounting import event_from_dict, total_epsilon
from pymc_dp.audit import differing
from pymc_dp.errors import ArgumentError, BudgetExceeded, PrivacyError, ReleaseError, TraceError, UnsupportedModelError
from pymc_dp.step_methods.base import PrivateStep
from tests.promises.neighbours import QUICK, neighbours
from tests.promises.observed import canaries
from tests.zoo.samplers import SAMPLERS, Sampler

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
RUN = [pytest.param(one, id=name) for name, one in SAMPLERS.items() if not one.refused]
REFUSED = [pytest.param(one, id=name) for name, one in SAMPLERS.items() if one.refused]
RELEASED = re.compile(
    r"/(posterior|particles|released)/\w+(@noise_scale)?|/sample_stats/(acceptance_rate|step_size|particle|candidate|epsilon_spent)"
    r"|/privacy@dp_manifest"
)
"""What a sampler may let depend on the rows: states, and what is computed from them."""


@pytest.fixture(autouse=True)
def _interpreted(interpreted) -> Iterator[None]:
    yield


def composed_of(event: Mapping[str, Any]) -> set[str]:
    """Return the kinds of an event's parts, without those that only compose."""
    parts = event.get("events", [event["event"]] if "event" in event else None)
    return {event["kind"]} if parts is None else set().union(*map(composed_of, parts))


@functools.cache
def ran(name: str) -> tuple[Any, dp.Ledger, str]:
    """Run a sampler once; return its trace, its ledger and all that was logged."""
    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    one = SAMPLERS[name]
    ledger = one.ledger(2 * one.epsilon)
    try:
        return one.sample(ledger=ledger), ledger, "\n".join(heard)
    finally:
        logging.getLogger().removeHandler(handler)


def test_there_are_many_and_each_is_a_sentence() -> None:
    assert len(SAMPLERS) >= 50
    assert all(one.about.endswith(".") and "\n" not in one.about for one in SAMPLERS.values())


@pytest.mark.parametrize("one", REFUSED)
def test_what_is_refused_says_why_and_costs_nothing(one: Sampler) -> None:
    ledger = one.ledger()
    with pytest.raises((ArgumentError, UnsupportedModelError)) as error:
        one.sample(ledger=ledger)
    said = "\n".join([str(error.value), *map(str, getattr(error.value, "problems", ()))])
    assert one.refused in said
    assert ledger.history == []


@pytest.mark.parametrize("one", RUN)
def test_trace_record_report_and_ledger_state_one_epsilon(one: Sampler) -> None:
    """What was used is at most what was charged, and what was charged at most what was asked for."""
    idata, ledger, _ = ran(one.name)
    report = idata.dp.report()
    record = report.record
    event = event_from_dict(record["event"])
    assert (record["guarantee"], record["neighbours"]) == (one.guarantee, one.relation) and report.publishable
    assert composed_of(record["event"]) == set(one.events)
    (entry,) = ledger.history
    own = total_epsilon(event, record["delta"]).epsilon
    assert idata.dp.epsilon == pytest.approx(own, rel=1e-12) and entry.alone.epsilon == idata.dp.epsilon
    assert 0 < own <= record["asked"] * (1 + 1e-9) and record["delta"] == idata.dp.delta <= one.delta
    assert record["asked"] == one.epsilon and f"ε = {own:.6g}" in str(report)
    spent = idata["sample_stats"]["epsilon_spent"].values.ravel()
    assert (np.diff(spent) >= 0).all() and 0 < spent[-1] <= own * (1 + 1e-9)
    assert idata.dp.history["epsilon"].sum() >= own * (1 - 1e-9)
    assert all(np.isfinite(held).all() for held in idata["posterior"].data_vars.values())


@pytest.mark.parametrize("one", RUN)
def test_nothing_private_is_in_a_trace_a_text_or_a_log(one: Sampler) -> None:
    import cloudpickle

    idata, ledger, heard = ran(one.name)
    secret = canaries(one.kind.table(), one.kind.public if one.relation == "replace" else ())
    report = idata.dp.report()
    held = cloudpickle.dumps([idata.to_dict(), report.record])
    assert not sum(canary in held for canary in secret)
    assert set(idata.children) <= {"posterior", "sample_stats", "particles", "released", "privacy"}
    numbers = {f"{value:.6g}" for name in ("x", "z", "y") for value in one.kind.table()[name] if value % 1}
    for _ in range(3):  # six digits may be those of a released number by chance, but not three times
        texts = "\n".join([str(report), report._repr_html_(), str(ledger), idata._repr_html_(), heard])
        assert one.relation == "replace" or not re.search(r"\b32 rows|rows: 32\b", texts)
        numbers = {number for number in numbers if number in texts}
        if not numbers:
            return
        idata, ledger, heard = ran.__wrapped__(one.name)
        report = idata.dp.report()
    raise AssertionError(f"Numbers of the table are shown: {numbers}.")


@pytest.mark.few(12)
@pytest.mark.parametrize("one", RUN)
def test_neighbours_look_alike_but_for_what_is_released(one: Sampler) -> None:
    """Hostile ones among them: rows out of bounds, infinite, one more. The same noise, so that only rows differ."""
    table, own = one.kind.table(), None
    tables = neighbours(one.kind, one.relation, table)
    for other in (table, *(tables[name] for name in QUICK[one.relation][:2])):
        try:
            one.kind.build(other)
        except Exception:  # PyMC refuses the table
            continue
        with dp.testing.insecure_randomness(7):
            ledger = one.ledger()
            idata = one.sample(other, ledger=ledger, random_seed=3)
        if own is None:
            own = idata, str(ledger), str(idata.dp.report())
            continue
        assert [path for path in differing(own[0], idata) if not RELEASED.fullmatch(path)] == []
        assert str(ledger) == own[1]
        if "epsilon_spent" not in {path.rsplit("/", 1)[-1] for path in differing(own[0], idata)}:
            assert str(idata.dp.report()) == own[2]


@pytest.mark.few(12)
@pytest.mark.parametrize("one", RUN)
def test_rows_are_read_after_the_charge(one: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where too little is left nothing is read; where reading fails the budget is gone, and no text says why."""

    def touched(*_: object) -> None:
        raise AssertionError("row 7 was read")

    monkeypatch.setattr("pymc_dp.rows.gate._array", touched)
    short, ledger = one.ledger(one.epsilon / 100), one.ledger()
    with pytest.raises(BudgetExceeded):
        one.sample(ledger=short)
    assert short.history == []
    with pytest.raises(ReleaseError) as error:
        one.sample(ledger=ledger)
    assert "row 7" not in str(error.value)
    assert 0 < ledger.spent.epsilon <= one.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("one", RUN)
def test_no_chain_begins_by_hand(one: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before every step, and after the last: nothing changes, and nothing is drawn beyond what was paid for."""
    seen: list[PrivateStep] = []
    require_paid = PrivateStep.require_paid

    def by_hand(step: PrivateStep) -> None:
        before = repr((step.randomness, step.count))
        for begin in (step.start_chain, step.start_chain, lambda: step.begin_chain(0, 0)):
            with pytest.raises(PrivacyError, match="by setup_chain alone"):
                begin()
        assert repr((step.randomness, step.count)) == before

    def stepping(step: PrivateStep) -> None:
        by_hand(step)
        seen.append(step)
        require_paid(step)

    monkeypatch.setattr(PrivateStep, "require_paid", stepping)
    one.sample()
    assert seen or one.call.__name__ == "annealing"
    for step in list(seen):
        assert step.count == step.funding.steps
        by_hand(step)
        with pytest.raises(BudgetExceeded):
            step.step(step.prior_model.initial_point())


@pytest.mark.few(8)
@pytest.mark.parametrize("one", RUN)
def test_random_seed_does_not_steer_the_noise(one: Sampler) -> None:
    """Short chains may be the same by chance, where every proposal is refused: one of five runs must differ."""
    runs = (one.sample(random_seed=1)["posterior"] for _ in range(6))
    first = next(runs)
    grids = one.call.__name__ == "mode"  # choices of one candidate may be the same in every run
    assert grids or any(not first[name].equals(run[name]) for run in runs for name in first.data_vars)


@pytest.mark.parametrize("name", ["OPS", "Gibbs, rows one by one", "SGLD", "annealing, evidence"])
def test_what_was_saved_says_the_same_and_what_was_seeded_is_not_saved(name: str, tmp_path: Any) -> None:
    idata, _, _ = ran(name)
    read = az.from_netcdf(idata.dp.publish(tmp_path / "trace.nc"))
    assert str(read.dp.report()) == str(idata.dp.report())
    assert all(read["posterior"][name].equals(held) for name, held in idata["posterior"].data_vars.items())
    read.close()
    with dp.testing.insecure_randomness(1):
        seeded = SAMPLERS[name].sample()
    assert seeded.dp.guarantee == "none"
    with pytest.raises(TraceError, match="seeded"):
        seeded.dp.publish(tmp_path / "seeded.nc")
