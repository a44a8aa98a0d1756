"""What is approximate in the posterior of noised gradients, and what of it should not be relied on, in words."""

from __future__ import annotations

from collections.abc import Iterator

from pymc_dp.gradients.choice import NAME, Gradients
from pymc_dp.gradients.curvature import MOST_FULL
from pymc_dp.gradients.interface import Interface
from pymc_dp.gradients.walk import Found, agreement
from pymc_dp.inspection.weights import PSEUDO

UNCALIBRATED = (
    f"{{}} parameters enter the likelihood, but intervals for more than {MOST_FULL} are not calibrated: with 500 "
    "groups of different levels they were slightly too narrow for intercepts, and too narrow by half for what all "
    "groups share"
)


def approximations(found: Found, choice: Gradients, interface: Interface, *, follows: bool) -> Iterator[str]:
    """Yield a sentence for each, of what was released alone; `follows` where made-up rows say how scores bend."""
    how = ""
    if follows:
        how = (
            ", or as the quadratic nearest to one whose slope bends like that of simulated rows where this moves the "
            "mean far"
        )
    if (unit := interface.inspection.domain.unit) is not None:
        counts = "" if found.left_out is None else f". By noised counts, {found.left_out.says(unit)}"
        yield f"{NAME}: {unit.estimand}{counts}."
    names = ", ".join(part.name for part in interface.parts)
    varying = "as the model says" if found.scores is None else "as the released squares of scores say"
    yield (
        f"{NAME}: around the end of the walk the log-likelihood is treated as quadratic in {names}{how}, and its slope "
        f"as varying {varying}."
    )
    yield f"{NAME}: {_clipping(found, choice, 'rows' if unit is None else 'persons')}."
    for response, column in interface.inspection.domain.weights.items():
        says = PSEUDO.format(response=response, column=column)
        yield f"{NAME}: {says}. Its covariance is that of sampling (sandwich), from released squares of scores."
    if choice.local:
        yield (
            f"{NAME}: local, not calibrated. This is one mode of several, found by a descent of "
            f"{choice.momentum_steps} steps with momentum from a public random start, within about a fifth of the "
            "prior's standard deviations of where the walk ended; intervals of single parameters claim no coverage."
        )
    if interface.size > MOST_FULL:
        yield f"{NAME}: {UNCALIBRATED.format(interface.size)}."
    yield f"{NAME}: {agreement(found)}."
    if found.unresolved:
        yield (
            f"{NAME}: {found.unresolved} of {interface.size} directions of the curvature are lost in its noise, and "
            "share what is left of its trace."
        )


def _clipping(found: Found, choice: Gradients, units: str) -> str:
    """Say what was clipped off, and what it does."""
    picked = found.chosen
    if picked is None:
        says = "scores are clipped near the root mean square that the model expects of them"
        return f"{says}: intervals hold if rows are of the model (not checked)" if choice.trust_model else says
    if not picked.bias:
        return (
            "nothing is clipped: the limit is at the largest score that was found within the bounds, and the posterior "
            "is that of the clamped rows and of noise of known variance"
        )
    return (
        f"about {max(picked.beyond, 0.0):.0f} {units} (± {2 * picked.deviation:.0f}) have scores beyond the limit. By "
        f"the histogram, what was clipped off moves estimates by at most about {picked.share:.0%} of the standard "
        "deviation of the noise. The intervals include that; very heavy tails may hold more"
    )


__all__ = ["UNCALIBRATED", "approximations"]
