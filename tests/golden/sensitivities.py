"""``dp.sensitivity`` of every likelihood of the zoo: all of its numbers, each with its reason."""

from __future__ import annotations

import re

import pymc_dp as dp
from pymc_dp.proofs.certificates import Certificates
from pymc_dp.proofs.row_ranges import Proof
from tests.golden.plain import Json
from tests.golden.topics import Topic, or_refusal
from tests.proofs.zoo import ZOO, Likelihood

QUICK = {
    *("exponential", "bernoulli", "bernoulli, logit", "poisson", "geometric", "uniform", "discrete uniform"),
    *("groups", "hierarchy"),
}
CERTIFIED = QUICK | {
    *("normal", "half-normal", "von mises", "chi-squared", "pareto"),
    *("asymmetric laplace", "beta", "gamma", "half-cauchy", "laplace", "logistic", "binomial", "categorical"),
    *("categorical, logits", "negative binomial", "regression", "student", "censored exponential"),
}
"""Whose slopes and concavity are kept too: under ``replace``, and cheap ones."""


def found(likelihood: Likelihood, neighbours: str, certified: bool) -> Json:
    sensitivity = dp.sensitivity(likelihood.model(), likelihood.domain(neighbours))
    return {
        "range": bound(sensitivity.range),
        "log_likelihood": bound(sensitivity.log_likelihood),
        "statistics": {
            item.name: {"l1": item.l1, "l2": item.l2, "reason": item.reason} for item in sensitivity.statistics
        },
        "certificates": of(sensitivity.certificates) if certified else None,
    }


def of(certificates: Certificates) -> Json:
    return {
        "lipschitz": proof(certificates.lipschitz),
        "difference": proof(certificates.difference),
        "by_column": {name: proof(item) for name, item in certificates.by_column.items()},
        "concave": certificates.concave,
        "log_concave_prior": certificates.log_concave_prior,
        "modulus": certificates.modulus,
        "self_concordance": certificates.self_concordance,
        "curvature": certificates.curvature,
        "gaussian": certificates.gaussian(),
        "reasons": certificates.reasons,
    }


def bound(item: dp.sensitivities.Bound) -> Json:
    reason = re.sub(r"over \d+ box", "over N box", item.reason)  # how many may depend on the last bits of functions
    return {"value": item.value, "attained": item.attained, "reason": reason, "worst": dict(item.worst)}


def proof(item: Proof) -> Json:
    return {"value": item.value, "attained": item.attained, "worst": dict(item.where), "obstacle": item.obstacle}


SENSITIVITIES = Topic(
    name="sensitivities",
    entries={
        f"{name}; {neighbours}": or_refusal(
            found, likelihood, neighbours, name in CERTIFIED and neighbours == "replace"
        )
        for name, likelihood in ZOO.items()
        for neighbours in likelihood.relations
    },
    quick={f"{name}; {neighbours}" for name in QUICK for neighbours in ZOO[name].relations},
)
