"""What noised gradients would come to for a model, before anything is compiled, read or spent."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from pymc_dp.accounting import Budget
from pymc_dp.accounting.gdp import mu_for
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.gradients.limits import CLIP_NORM
from pymc_dp.gradients.schedule import STAGES
from pymc_dp.inspection.findings import Inspected
from pymc_dp.rows.stored import StoredRows, with_stored
from pymc_dp.simulation.columns import undeclared
from pymc_dp.simulation.prior import not_drawn
from pymc_dp.transforms.prior_model import shared_prior_model

LAST_SHARE = STAGES[-1][1]
"""Of ρ, what the gradients of the last stage get."""
CLIPPING, COORDINATES = 1.3, 2.0
"""What clipping loses, of the variance, and what is lost since coordinates and curvatures are noised: measured."""


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What can be said about ``dp.Gradients()`` for a model without compiling anything.

    Nothing in it depends on a private value.

    Attributes
    ----------
    problems : tuple of Problem
        Why they do not fit, each with its remedy; empty where they do.
    parts : tuple of (str, int)
        Names of the parameters of the likelihood, and how many numbers each of them has.
    n_rows : int
        Number of rows, or the public bound on it.
    neighbours : {"replace", "add_remove"}
    layered : bool
        Whether parameters multiply, as matrices, what depends on other parameters and rows, as the layers of a net do:
        then the log-likelihood has several modes, and the prior's mean may be a saddle.
    """

    problems: tuple[Problem, ...]
    parts: tuple[tuple[str, int], ...]
    n_rows: int
    neighbours: str
    layered: bool = False

    @classmethod
    def of(cls, found: Inspected, n_rows: int, stored: StoredRows | None = None) -> Outlook:
        """Look at a model, whose rows are dummies where there are `stored` ones. Reads no private value."""
        domain = found.domain
        parts, problems, layered = _looked_at(found, stored)
        most = domain.n_max if domain.n_max is not None else n_rows
        return cls(problems=problems, parts=parts, n_rows=most, neighbours=domain.neighbours, layered=layered)

    @property
    def fits(self) -> bool:
        """Whether gradients can be released of the model, given a δ."""
        return not self.problems

    @property
    def size(self) -> int:
        """Number of parameters d."""
        return sum(size for _, size in self.parts)

    def width_ratio(self, budget: Budget) -> float:
        """Return the predicted width of intervals over that without privacy; see `width_ratio`."""
        return width_ratio(self.size, self.n_rows, budget, self.neighbours)


PER_UNIT = Problem(
    where="domain",
    what="noised gradients are accounted for whole rows, not per unit of a metric",
    remedy="Leave metric= out, or release exact sums.",
)


def _looked_at(
    found: Inspected, stored: StoredRows | None
) -> tuple[tuple[tuple[str, int], ...], tuple[Problem, ...], bool]:
    from pymc_dp.gradients.interface import interface_in, layered  # Numba, which most users never need

    if found.domain.metric is not None:
        return (), (PER_UNIT,), False
    try:
        interface = interface_in(found.rows)
    except UnsupportedModelError as error:
        return (), error.problems, False
    inspection = interface.inspection
    misfits = () if stored is None else with_stored(inspection, stored).problems
    problems = (*misfits, *not_drawn(shared_prior_model(inspection)), *undeclared(inspection, {}, "dp.Gradients"))
    return tuple((part.name, part.size) for part in interface.parts), problems, layered(interface)


def width_ratio(dimension: int, n_rows: int, budget: Budget, neighbours: str) -> float:
    """Return about how much wider intervals are than without privacy, by formula.

    Parameters
    ----------
    dimension : int
        Number of parameters d of the likelihood.
    n_rows : int
    budget : Budget
        With δ > 0.
    neighbours : {"replace", "add_remove"}

    Notes
    -----
    In coordinates in which the curvature of n rows is n times the unit matrix, scores have a root mean square norm of
    √d and are clipped to C = `CLIP_NORM` √d. The gradients of the last stage, with a share s = `LAST_SHARE` of what the
    whole budget buys (μ, as in Gaussian differential privacy), have the noise of one gradient with variance
    V = (2 C)² / (s μ²), where a row is replaced; C² / (s μ²) where one comes or goes. The variance of the scores
    themselves is n. Clipping makes the variance 1.3 times as large, and noised curvatures the part of V twice: so it
    came out within a tenth for logistic, linear and Poisson regressions that are not saturated. The prior is left out.

    Examples
    --------
    >>> round(width_ratio(5, 5000, Budget(1.0, 1e-5), "replace"), 2)
    1.22
    """
    clip = CLIP_NORM * (2 if neighbours == "replace" else 1)
    variance = clip**2 * dimension / (LAST_SHARE * mu_for(budget.epsilon, budget.delta) ** 2)
    return sqrt(CLIPPING + COORDINATES * variance / max(n_rows, 1))


__all__ = ["Outlook", "width_ratio"]
