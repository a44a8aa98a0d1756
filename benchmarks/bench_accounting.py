"""Time to account for many steps on random batches, and their totals, beside dp_accounting, turn by turn."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from _measure import Report, in_turn
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution

from pymc_dp.accounting import (
    BoundedRangeEvent,
    GDPEvent,
    SelfComposedEvent,
    SubsampledGaussianEvent,
    Total,
    noise_multiplier,
    pld,
    rdp,
    total_epsilon,
)
from pymc_dp.accounting import calibrate as calibration

STEPS, RATE, DELTA = 100_000, 0.005, 1e-6
NOISE = {"replace": 12.0, "add_remove": 6.0, "without_replacement": 12.0}


def steps(kind: str, count: int = STEPS) -> SelfComposedEvent:
    sampler = {"sampling": "poisson", "sample_rate": RATE, "neighbours": kind}
    if kind == "without_replacement":
        sampler = {"sampling": kind, "population": 1000, "batch_size": 5, "neighbours": "replace"}
    return SelfComposedEvent(event=SubsampledGaussianEvent(noise_multiplier=NOISE[kind], **sampler), count=count)


def afresh(call: Callable[[], Total]) -> Callable[[], Total]:
    """The same call without what earlier calls have kept."""

    def run() -> Total:
        for cached in (pld.compose, rdp.leaf_divergence, calibration._noise_multiplier):
            cached.cache_clear()
        return call()

    return run


def theirs(kind: str) -> Callable[[], float]:
    """Their distribution of one step at their default spacing, composed with itself."""
    relation = NeighboringRelation.REPLACE_ONE if kind == "replace" else NeighboringRelation.ADD_OR_REMOVE_ONE

    def run() -> float:
        one = privacy_loss_distribution.from_gaussian_mechanism(
            NOISE[kind], sampling_prob=RATE, neighboring_relation=relation
        )
        return float(one.self_compose(STEPS).get_epsilon_for_delta(DELTA))

    return run


def bench_steps() -> bool:
    report = Report(f"{STEPS:,} steps on batches, sampling rate {RATE}, delta = {DELTA}")
    for kind in NOISE:
        things: dict[str, Callable[[], object]] = {
            "ours": afresh(lambda kind=kind: total_epsilon(steps(kind), DELTA)),
            "one step": afresh(lambda kind=kind: total_epsilon(steps(kind, 1), DELTA)),
        }
        if kind in ("replace", "add_remove"):
            things["theirs"] = theirs(kind)
        times = in_turn(things, repeats=5)
        total = total_epsilon(steps(kind), DELTA)
        report.at_most(f"{kind}: seconds, nothing kept", times.median("ours"), 1.0, " s")
        report.add(f"{kind}: times one step", f"{times.ratio('ours', 'one step')[0]:.2f}")
        report.add(f"{kind}: epsilon ({total.accountant})", f"{total.epsilon:.4f}")
        if "theirs" in things:
            report.add(f"{kind}: seconds over dp_accounting's", f"{times.ratio('ours', 'theirs')[0]:.2f}")
            report.add(f"{kind}: epsilon over dp_accounting's", f"{total.epsilon / theirs(kind)():.4f}")
    return report.finish()


def bench_others() -> bool:
    report = Report("Other totals, nothing kept")
    things = {
        "1,000 bounded ranges": lambda: total_epsilon(
            SelfComposedEvent(event=BoundedRangeEvent(eta=0.01), count=1000), DELTA
        ),
        "1e9 mu-GDP draws": lambda: total_epsilon(SelfComposedEvent(event=GDPEvent(mu=1e-5), count=10**9), DELTA),
        "noise for 32,561 steps": lambda: noise_multiplier(
            1.0, 1e-5, 32_561, sampling="poisson", sample_rate=180 / 32_561
        ),
    }
    times = in_turn({name: afresh(call) for name, call in things.items()}, repeats=5)
    for name in things:
        report.add(f"{name}: seconds", f"{times.median(name):.3f} s")
    return report.finish()


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    met = [bench_steps(), bench_others()]
    sys.exit(not all(met))
