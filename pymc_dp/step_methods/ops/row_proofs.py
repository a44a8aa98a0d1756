"""What is proved about the rows of a model that are held one by one.

Whether a likelihood that is bounded in exact arithmetic stays so in floats: tried at public rows and points.

Proofs are about real numbers. log(1 - Φ(9)) is a number, of which floats make minus infinity: one row would cut off a
part of the parameter space. And beside a log-likelihood of 1e17 no other row, nor the prior, has a digit left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from pymc import Model

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import kept_while_shared, plain_draw
from pymc_dp.inspection.priors import Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.metrics import Metric
from pymc_dp.proofs.branch_and_bound import ALLOWED
from pymc_dp.proofs.closed_form_ranges import RowRange
from pymc_dp.proofs.lipschitz_in_rows import prove_per_unit
from pymc_dp.proofs.remedies import problems_of
from pymc_dp.proofs.row_likelihood import RowLikelihood, row_likelihoods
from pymc_dp.proofs.row_ranges import Proof, prove_range, prove_sensitivity
from pymc_dp.samplers.row_scores import no_digits
from pymc_dp.simulation.columns import ROWS, mixed, public_rows
from pymc_dp.step_methods.ops.row_density import RowDensity


@dataclass(frozen=True, kw_only=True, eq=False)
class Proved:
    """Bounds of one row: of the range R, or of Δl for the papers' rule; the other is infinite.

    Under a metric they are per unit of it, and `diameter` is the largest distance of two rows.
    """

    range: RowRange
    proofs: tuple[Proof, ...]
    rows: tuple[RowLikelihood, ...]
    priors: tuple[Prior, ...]
    diameter: float = 1.0

    def require_informative(self) -> None:
        """Refuse a model whose likelihood is the same for all parameters."""
        if not min(self.range.value, self.range.sensitivity) > 0:
            what = "its likelihoods depend on no free variable that a row could tell anything about"
            raise UnsupportedModelError([Problem(where="model", what=what, remedy="Give it a free variable.")])


def prove_rows(inspection: RowInspection, prior_model: Model, *, papers: bool = False) -> Proved:
    """Prove what one posterior sample pays for; once where several steps are looked at, with as much work allowed.

    Raises
    ------
    UnsupportedModelError
        If no finite range is proved, with bounds that would do.
    """
    return _proved(inspection, prior_model, papers=papers, allowed=float(ALLOWED.get()))


@kept_while_shared
def _proved(inspection: RowInspection, prior_model: Model, *, papers: bool, allowed: float) -> Proved:
    neighbours = inspection.domain.neighbours
    rows, priors = row_likelihoods(inspection, prior_model)
    if inspection.domain.metric is not None:
        return _per_unit(inspection, inspection.domain.metric, rows, priors, papers=papers)
    prove = partial(prove_sensitivity if papers else prove_range, neighbours=neighbours)
    proofs = [prove(row) for row in rows]
    total = sum(proof.value for proof in proofs)
    if math.isinf(total):
        raise UnsupportedModelError(problems_of(rows, proofs, prove))
    boxes = sum(proof.boxes for proof in proofs)
    return Proved(
        range=RowRange(
            value=math.inf if papers else total,
            sensitivity=total if papers else math.inf,
            reason=f"proved from the graph, by interval arithmetic and branch and bound over {boxes} boxes",
        ),
        proofs=tuple(proofs),
        rows=rows,
        priors=priors,
    )


def _per_unit(
    inspection: RowInspection,
    metric: Metric,
    rows: tuple[RowLikelihood, ...],
    priors: tuple[Prior, ...],
    *,
    papers: bool,
) -> Proved:
    found = prove_per_unit(rows, inspection.columns, metric, papers=papers)
    each = ", ".join(f"{value:.6g} in {name}" for name, value in found.parts)
    return Proved(
        range=RowRange(
            value=math.inf if papers else found.value,
            sensitivity=found.value if papers else math.inf,
            reason=f"per unit of ρ = {metric} ({each}), proved by branch and bound over {found.boxes} boxes",
        ),
        proofs=(),
        rows=rows,
        priors=priors,
        diameter=found.diameter,
    )


PLACES = 32
"""Places tried: the lowest, the highest and the middle of everything, then any mixture of them."""
NEAR, FAR = 10.0, 1e6
"""How far from its centre a parameter without bounds is tried, in units of its prior's standard deviation."""
REMEDY = (
    "Give every column of numbers bounds (dp.Domain), narrower ones where it has some, and write the density such that "
    "it stays finite: logit_p= instead of p=, pm.logcdf, pm.math.log1mexp, pt.softplus."
)


class Trial:
    """Rows and points that are tried; all of them are public.

    Parameters
    ----------
    density : RowDensity
    places : (n, dimension) array, optional
        All that will be looked at, where that is known.

    Attributes
    ----------
    table : list of arrays
        The rows that are tried, one array per column; the lowest and the highest come first.
    """

    def __init__(self, density: RowDensity, places: Array | None = None) -> None:
        rng = np.random.default_rng(0)
        self._density = density
        self.table = public_rows(density.columns, rng)
        self._rows = [([column[turn : turn + 1] for column in self.table], np.ones(1)) for turn in range(ROWS)]
        if places is not None:
            self._near = self._far = places
            return
        drawn = _drawn(density.priors)
        self._near, self._far = (_places(density.priors, drawn, reach, rng) for reach in (NEAR, FAR))

    @property
    def places(self) -> Array:
        """The points that are tried: (n, dimension) array."""
        return self._near

    def problem(self, n_rows: int, moved: float) -> Problem | None:
        """Say what is in the way of a likelihood in floats; `moved` is what one row can move it by."""
        with np.errstate(all="ignore"):
            sizes = [np.abs(self._density.at(self._near, row)[1]).max() for row in self._rows]
            far = [np.abs(self._density.at(self._far, row)[1]).max() for row in self._rows]
        if not np.isfinite([*sizes, *far]).all():
            what = "computed in floats, its log-likelihood is infinite for rows and parameters where it is a number"
            return Problem(where="model", what=what, remedy=REMEDY)
        return no_digits(max(sizes), n_rows, moved, REMEDY)

    def steep(self) -> str:
        """Say where a chain has no gradient to follow; empty if it has one everywhere."""
        both = np.concatenate([self._near, self._far])
        held = self.table, np.ones(len(self._rows))
        if all(np.isfinite(self._density.slope(place, held)).all() for place in both):
            return ""
        return "computed in floats, the gradient of its log-likelihood is NaN for some rows and parameters"


def _drawn(priors: Sequence[Prior]) -> dict[str, Array]:
    """Return points of the free variables whose entries are not free of each other: these are drawn."""
    found = {}
    for prior in priors:
        if getattr(prior.variable.owner.op, "ndim_supp", 1) > 0:
            with suppress(Exception):  # some cannot be drawn
                found[prior.name] = np.asarray(plain_draw(prior.variable, 0, PLACES), dtype=np.float64)
    return found


def _places(priors: Sequence[Prior], drawn: dict[str, Array], reach: float, rng: np.random.Generator) -> Array:
    return np.stack(
        [
            np.concatenate(
                [
                    (drawn[prior.name][turn] if prior.name in drawn else _place(prior, turn, reach, rng)).ravel()
                    for prior in priors
                ]
            )
            for turn in range(PLACES)
        ]
    )


def _place(prior: Prior, turn: int, reach: float, rng: np.random.Generator) -> Array:
    """Return a value of a free variable: any mixture of ends."""
    centre, spread = np.zeros(prior.shape), np.ones(prior.shape)
    if prior.constants and prior.distribution in ("normal", "halfnormal"):
        centre, spread = prior.constants[0], prior.constants[-1]
    least, most = (np.full(prior.shape, end) if bound is None else bound for bound, end in _ends(prior))
    low = np.where(np.isfinite(least), least, np.minimum(centre, most) - reach * spread)
    high = np.where(np.isfinite(most), most, np.maximum(centre, low) + reach * spread)
    return np.asarray(mixed(low, high, low / 2 + high / 2, turn, rng))


def _ends(prior: Prior) -> tuple[tuple[Array | None, float], tuple[Array | None, float]]:
    return (prior.low, -np.inf), (prior.high, np.inf)


__all__ = ["Proved", "Trial", "prove_rows"]
