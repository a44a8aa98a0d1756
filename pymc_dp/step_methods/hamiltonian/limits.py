"""How far one row may move a gradient and a log-likelihood ratio: by clipping, or by proof, where nothing is cut."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pymc import Model

from pymc_dp.domain import Neighbours
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.rows import Array
from pymc_dp.proofs.unconstrained import StepProof
from pymc_dp.step_methods.hamiltonian.settings import HamiltonianNoise
from pymc_dp.step_methods.langevin.batches import SMALLEST
from pymc_dp.step_methods.metropolis.ratios import ClampedRatio, ProvedRatio
from pymc_dp.step_methods.metropolis.row_ratios import RowRatios

SPREAD = 1.2
"""Standard deviation of a ratio's noise at which the penalty method accepts about half."""
SHARE = 2.0
"""Length of a first trajectory over 1 / (clip norm √rows), which posterior standard deviations are seldom below."""
GIVE = "Give clip_norm, a public number: gradients of rows beyond it are shortened, and ratios clamped."


@dataclass(frozen=True, kw_only=True, eq=False)
class Limits:
    """What one row can do.

    Attributes
    ----------
    clip_norm : float
        b_g, per unit of each value.
    clamp : float
        b_l.
    proved : bool
        Whether both come from a proof, so that nothing is cut but rounding errors.
    neighbours : {"replace", "add_remove"}
    ratio : ClampedRatio or ProvedRatio
    """

    clip_norm: float
    clamp: float
    proved: bool
    neighbours: Neighbours
    ratio: ClampedRatio | ProvedRatio

    @property
    def rows_moved(self) -> int:
        """Rows in which neighbours differ: one goes and another comes, or one does either."""
        return 2 if self.neighbours == "replace" else 1

    @property
    def gradient_sensitivity(self) -> float:
        """Greatest sensitivity of the sum of clipped gradients between neighbours."""
        return self.rows_moved * self.clip_norm

    @property
    def clipping(self) -> str:
        """How gradients are clipped, in words."""
        how = "proved: no row's gradient is longer" if self.proved else "longer gradients of rows are shortened"
        return f"{self.clip_norm:.6g} per row, over all parameters on the unconstrained scale; {how}"

    @property
    def target(self) -> str:
        """What is sampled, in words."""
        if self.proved:
            return "the posterior, not tempered"
        return (
            f"the posterior, not tempered, where no row's log-likelihood ratio exceeds {self.clamp:g} ‖θ' - θ‖; longer "
            "ones are cut there, and the target changes"
        )

    def farthest(self, noise: HamiltonianNoise) -> float:
        """Return the distance in units beyond which the noise of a ratio lets few trajectories be accepted."""
        return SPREAD / (noise.ratio * self.rows_moved * self.clamp)

    def first_step(self, noise: HamiltonianNoise, population: int, dimension: int) -> float:
        """Return a size of leapfrog steps to begin with, from public numbers.

        A trajectory of length T has momentum of norm √d: its end is about T √d away. Its noised gradients add about
        η σ √(L d) to the energy.
        """
        root = math.sqrt(max(dimension, 1))
        lengths = (
            SHARE / (self.clip_norm * math.sqrt(max(population, 1))),
            self.farthest(noise) / root,
            math.sqrt(noise.n_leapfrog) / (noise.gradient * self.gradient_sensitivity * root),
        )
        return min(lengths) / noise.n_leapfrog


def limits_of(inspection: RowInspection, prior_model: Model, settings: Mapping[str, Any], units: Array) -> Limits:
    """Take the clip norm that is given, or prove one.

    Raises
    ------
    UnsupportedModelError
        If none is given, and gradients of rows have no proved bound.
    """
    neighbours = inspection.domain.neighbours
    clip_norm, clamp = settings["clip_norm"], settings["clamp"]
    proof = None
    if clip_norm is None:
        proof = StepProof(inspection, prior_model)
        clip_norm = _proved_norm(proof, prior_model, units)
    ratio: ClampedRatio | ProvedRatio
    if proof is not None and clamp is None:
        ratio = ProvedRatio(RowRatios(inspection, prior_model, proof.references), neighbours, proof)
    else:
        ratio = ClampedRatio(RowRatios(inspection, prior_model), neighbours, clamp or clip_norm, units)
    exact = proof is not None and (clamp is None or clamp >= clip_norm)
    return Limits(clip_norm=clip_norm, clamp=clamp or clip_norm, proved=exact, neighbours=neighbours, ratio=ratio)


def _proved_norm(proof: StepProof, prior_model: Model, units: Array) -> float:
    """Bound the norm of a row's gradient per unit of each value, or say what is in the way."""
    if proof.problems:
        raise UnsupportedModelError([_needed(problem.where, problem.what) for problem in proof.problems])
    found = proof.gradient_norm(_by_name(prior_model, units))
    if not math.isfinite(found.value):
        what = f"no bound of the gradient of a row is proved ({found.obstacle})"
        raise UnsupportedModelError([_needed("model", what)])
    return max(found.value, SMALLEST)


def _by_name(prior_model: Model, units: Array) -> dict[str, Array]:
    """Return the unit of each value, by the name of its free variable and in its shape."""
    start, begin, found = prior_model.initial_point(), 0, {}
    for value in prior_model.value_vars:
        shape = np.shape(start[value.name])
        end = begin + int(np.prod(shape))
        found[str(prior_model.values_to_rvs[value].name)] = units[begin:end].reshape(shape)
        begin = end
    return found


def _needed(where: str, what: str) -> Problem:
    return Problem(where=where, what=what, remedy=GIVE)


__all__ = ["Limits", "limits_of"]
