"""Releases of every family: the record with the plan of each table, and the exact sums that get the noise."""

from __future__ import annotations

from typing import Any

import numpy as np

import pymc_dp as dp
from pymc_dp.inspection.given import given_model
from pymc_dp.release.record import describe
from pymc_dp.transforms.privatize import plan_for
from tests.golden.models import FAMILIES, MODELS, Case
from tests.golden.plain import Json
from tests.golden.topics import Topic, or_refusal
from tests.paid import draw_release

NOISES = {"laplace": 0.0, "gaussian": 1e-6}
RELATIONS = ("replace", "add_remove")
WAYS: dict[str, tuple[Case, dp.Statistics]] = {
    "histogram": (MODELS["robust"], dp.Statistics()),
    "histogram, edges": (FAMILIES["Poisson"], dp.Statistics(mechanism=dp.Histogram([-0.5, 0.5, 2.5, 10.5]))),
    "shares": (MODELS["naive Bayes"], dp.Statistics(share={"kind": 1, "visits": 2, "length": 4})),
    "private groups": (MODELS["survey"], dp.Statistics()),
    "public groups": (MODELS["children"], dp.Statistics()),
    "hidden Markov": (MODELS["hidden Markov"], dp.Statistics()),
    "bambi": (MODELS["bambi"], dp.Statistics()),
    "network, cells": (MODELS["network"], dp.Statistics()),
    "network, Laplace updates": (MODELS["network"], dp.Statistics(mechanism=dp.networks.LaplaceUpdates())),
    "network, Fourier updates": (MODELS["network"], dp.Statistics(mechanism=dp.networks.FourierUpdates(0.5))),
    "network, the paper": (MODELS["network"], dp.Statistics(mechanism=dp.networks.FourierUpdates(papers=True))),
    "metric": (MODELS["metric"], dp.Statistics()),
    "metric, sums": (MODELS["metric, normal"], dp.Statistics()),
    "plug-in": (FAMILIES["Normal"], dp.Statistics(noise_aware=False)),
}


def found(case: Case, statistics: dp.Statistics, neighbours: str, delta: float) -> Json:
    model, domain = given_model(case.model(), case.domain(neighbours))
    inspection, plan = plan_for(model, epsilon=1.0, delta=delta, domain=domain, statistics=statistics)
    return {
        "record": describe(inspection, plan).to_dict(),
        "sums": exact_sums(plan),
    }


def exact_sums(plan: Any) -> Json:
    """What is released but for the noise, in steps of the public grids: whole numbers."""
    with dp.testing.without_noise():
        values = draw_release(plan).values
    return {table.name: _in_steps(values[table.name], table.blocks) for table in plan.tables}


def _in_steps(values: np.ndarray, blocks: tuple[object, ...]) -> list[list[int]]:
    steps = np.ones(values.shape[1])
    for block in blocks:
        steps[list(block.columns)] = block.steps
    counted = np.rint(values / steps)
    np.testing.assert_allclose(counted * steps, values, rtol=1e-12, atol=0)
    return counted.astype(np.int64).tolist()


RELEASES = Topic(
    name="releases",
    entries={
        **{
            f"{name}; {neighbours}; {noise}": or_refusal(found, case, dp.Statistics(noise=noise), neighbours, delta)
            for name, case in FAMILIES.items()
            for neighbours in RELATIONS
            for noise, delta in NOISES.items()
        },
        **{
            f"{name}; {neighbours}; laplace": or_refusal(found, case, statistics, neighbours, 0.0)
            for name, (case, statistics) in WAYS.items()
            for neighbours in RELATIONS
        },
    },
    quick={
        f"{name}; replace; laplace"
        for name in (*FAMILIES, *WAYS)
        if name != "bambi"  # which takes seconds to import
    },
)
