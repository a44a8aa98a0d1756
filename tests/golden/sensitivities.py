"""``dp.sensitivity`` of every likelihood of the zoo: all of its numbers, each with its reason."""

from __future__ import annotations

import re
from typing import Any

import pymc_dp as dp
from tests.golden.plain import Json
from tests.golden.topics import Topic, or_refusal
from tests.proofs.zoo import ZOO, Likelihood

QUICK = {
    *("exponential", "bernoulli", "bernoulli, logit", "poisson", "geometric", "uniform", "discrete uniform"),
    *("groups", "hierarchy"),
}


def found(likelihood: Likelihood, neighbours: str) -> Json:
    sensitivity = dp.sensitivity(likelihood.model(), likelihood.domain(neighbours))
    return {
        "range": bound(sensitivity.range),
        "log_likelihood": bound(sensitivity.log_likelihood),
        "statistics": {
            item.name: {"l1": item.l1, "l2": item.l2, "reason": item.reason} for item in sensitivity.statistics
        },
    }


def bound(item: Any) -> Json:
    reason = re.sub(r"over \d+ box", "over N box", item.reason)  # how many may depend on the last bits of functions
    return {"value": item.value, "attained": item.attained, "reason": reason, "worst": dict(item.worst)}


SENSITIVITIES = Topic(
    name="sensitivities",
    entries={
        f"{name}; {neighbours}": or_refusal(found, likelihood, neighbours)
        for name, likelihood in ZOO.items()
        for neighbours in likelihood.relations
    },
    quick={f"{name}; {neighbours}" for name in QUICK for neighbours in ZOO[name].relations},
)
