"""What is proved about the rows of a model that are held one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from pymc import Model

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.priors import Prior
from pymc_dp.metrics import Metric
from pymc_dp.proofs.certificates import Certificates, certify
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.lipschitz_in_rows import prove_per_unit
from pymc_dp.proofs.remedies import problems_of
from pymc_dp.proofs.row_likelihood import row_likelihoods
from pymc_dp.proofs.row_ranges import Proof, prove_range, prove_sensitivity


@dataclass(frozen=True, kw_only=True, eq=False)
class Proved:
    """Bounds of one row: of the range R, of Δl, and of G / √m; infinite where not proved.

    Under a metric the first two are per unit of it, the third is infinite, and `diameter` is the largest distance of
    two rows.
    """

    range: RowRange
    gaussian: float
    proofs: tuple[Proof, ...]
    certificates: Certificates
    priors: tuple[Prior, ...]
    diameter: float = 1.0


def prove_rows(inspection: RowInspection, prior_model: Model, *, papers: bool = False) -> Proved:
    """Prove what one posterior sample pays for.

    Raises
    ------
    UnsupportedModelError
        If neither a range nor log-concavity is proved, with bounds that would do.
    """
    neighbours = inspection.domain.neighbours
    rows, priors = row_likelihoods(inspection, prior_model)
    if inspection.domain.metric is not None:
        certificates = certify(rows, priors, neighbours, prior_model)
        return _per_unit(inspection, inspection.domain.metric, certificates, papers=papers)
    prove = partial(prove_sensitivity if papers else prove_range, neighbours=neighbours)
    proofs = [prove(row) for row in rows]
    certificates = certify(rows, priors, neighbours, prior_model)
    total = sum(proof.value for proof in proofs)
    gaussian = math.inf if papers else certificates.gaussian()
    if math.isinf(total) and math.isinf(gaussian):
        raise UnsupportedModelError(problems_of(rows, proofs, prove))
    _require_informative(total)
    boxes = sum(proof.boxes for proof in proofs)
    return Proved(
        range=RowRange(
            value=math.inf if papers else total,
            sensitivity=total if papers else math.inf,
            reason=f"proved from the graph, by interval arithmetic and branch and bound over {boxes} boxes",
        ),
        gaussian=gaussian,
        proofs=tuple(proofs),
        certificates=certificates,
        priors=priors,
    )


def _per_unit(inspection: RowInspection, metric: Metric, certificates: Certificates, *, papers: bool) -> Proved:
    found = prove_per_unit(certificates.rows, inspection.columns, metric, papers=papers)
    _require_informative(found.value)
    each = ", ".join(f"{value:.6g} in {name}" for name, value in found.parts)
    return Proved(
        range=RowRange(
            value=math.inf if papers else found.value,
            sensitivity=found.value if papers else math.inf,
            reason=f"per unit of ρ = {metric} ({each}), proved by branch and bound over {found.boxes} boxes",
        ),
        gaussian=math.inf,
        proofs=(),
        certificates=certificates,
        priors=certificates.priors,
        diameter=found.diameter,
    )


def _require_informative(total: float) -> None:
    """Refuse a model whose likelihood is the same for all parameters."""
    if not total > 0:
        what = "its likelihoods depend on no free variable that a row could tell anything about"
        raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give it a free variable.")])


__all__ = ["Proved", "prove_rows"]
