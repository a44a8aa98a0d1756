"""Whatever rows a table holds, no draw is made from numbers that one row moves by more than is booked for it."""

from collections.abc import Iterable

import pytest

import pymc_dp as dp
from tests.fuzz.densities import ODD, QUICK
from tests.fuzz.engine import fuzz
from tests.fuzz.samplers import SAMPLERS
from tests.proofs.zoo import ZOO, Likelihood

RELATIONS = ("replace", "add_remove")
ALL = {**ODD, **ZOO}
GROUPS = 8
"""Of the slow tests, which then run side by side."""
REFUSED = (dp.errors.UnsupportedModelError, dp.errors.ArgumentError)


def assert_nothing_exceeds(sampler: str, cases: Iterable[tuple[str, str]], points: int, least: int, seed: int) -> None:
    """What is refused before anything is spent is safe, but shows nothing: `least` of the cases must run."""
    refused, run, broken = list[str](), 0, list[str]()
    for name, relation in cases:
        likelihood: Likelihood = ALL[name]
        if relation not in likelihood.relations:
            continue
        try:
            subject = SAMPLERS[sampler](likelihood.model(), likelihood.domain(relation))
        except REFUSED as error:
            refused.append(f"{name}, {relation}: {' '.join(str(error).split())[:120]}")
            continue
        found = fuzz(subject, relation, points, seed)
        run += found.points >= points
        if not found.holds:
            broken.append(f"{name}, {relation}: {found.used:.10g} of {found.claimed:.10g}, by rows {found.rows}")
    print(f"{sampler}: {run} run, {len(refused)} refused", *refused, sep="\n  ")
    assert not broken, "\n".join(broken)
    assert run >= least, refused


@pytest.mark.few(1)
@pytest.mark.parametrize(("sampler", "least"), [("OPS", 9), ("TemperedGibbs", 10)])
def test_a_draw_uses_no_more_than_is_booked(sampler, least, seed, short_searches):
    relations = [RELATIONS[(place + len(sampler)) % 2] for place in range(len(QUICK))]
    assert_nothing_exceeds(sampler, zip(QUICK, relations, strict=True), 10_000, least, seed)


@pytest.mark.few(1)
@pytest.mark.parametrize(("sampler", "count"), [("sample_ais", 3), ("find_map", 2), ("BarkerMetropolis", 1)])
def test_a_weight_a_candidate_and_an_accepted_step_use_no_more(sampler, count, seed, short_searches):
    assert_nothing_exceeds(sampler, [(name, RELATIONS[0]) for name in QUICK[1::4][:count]], 1_000, count, seed)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_density_uses_more_than_is_booked(sampler, group, seed, short_searches):
    names = list(ALL)[group::GROUPS]
    relations = RELATIONS if sampler in ("OPS", "TemperedGibbs") else RELATIONS[:1]
    points = 500 if sampler == "BarkerMetropolis" else 100_000  # each of its steps is proved by itself
    cases = [(name, relation) for name in names for relation in relations]
    assert_nothing_exceeds(sampler, cases, points, len(names) // 3, seed)
