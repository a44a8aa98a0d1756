"""What one row can move, as the samplers that fit have proved it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pymc_dp.domain import Domain
from pymc_dp.proofs.row_ranges import Proof, prove_sensitivity
from pymc_dp.sensitivities import worst_case
from pymc_dp.step_methods.ops import OPS
from pymc_dp.step_methods.preview import Preview

PROOF_COLUMNS = ("variable", "quantity", "bound", "worst case, or why there is none")


def proved_rows(previews: Sequence[Preview], domain: Domain) -> tuple[tuple[str, ...], ...]:
    """Return, under `PROOF_COLUMNS`, what one posterior sample has proved.

    Of rows that are held one by one, or, under a metric, of all rows per unit of it.
    """
    step = next((preview.bound for preview in previews if isinstance(preview.bound, OPS)), None)
    if not isinstance(step, OPS):
        return ()
    if domain.metric is not None:
        return (("rows", "range R per unit of ρ", f"{step.range.value:.6g}", step.range.reason),)
    if not step.proofs:
        return ()
    lines = []
    for row, proof in zip(step.certificates.rows, step.proofs, strict=True):
        lines.append((row.name, "range R", *_shown(proof)))
        if math.isfinite(proof.value):
            lines.append((row.name, "sensitivity Δl", *_shown(prove_sensitivity(row, domain.neighbours))))
    if math.isfinite(step.gaussian):
        found = step.certificates
        ends = f"G = {found.difference.value:.6g}, m = {found.modulus:.6g}"
        reason = f"likelihood concave in θ, prior m-strongly log-concave: {ends}"
        lines.append(("model", "G / √m", f"{step.gaussian:.6g}", reason))
    return tuple(lines)


def _shown(proof: Proof) -> tuple[str, str]:
    if math.isinf(proof.value):
        return "not proved", proof.obstacle
    return f"{proof.value:.6g}", worst_case(proof)


__all__ = ["PROOF_COLUMNS", "proved_rows"]
