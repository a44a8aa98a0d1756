"""What is proved about a posterior beside ranges: Lipschitz constants, concavity, and how concave the prior is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pymc import Model

from pymc_dp.domain import Neighbours
from pymc_dp.inspection.priors import BALL, Prior
from pymc_dp.inspection.rows import Array
from pymc_dp.intervals.expression import Tape
from pymc_dp.proofs.concavity import Shape, shape_of
from pymc_dp.proofs.meeting_points import Meeting
from pymc_dp.proofs.row_likelihood import Copies, RowLikelihood, copied, signed_sum
from pymc_dp.proofs.row_ranges import Proof
from pymc_dp.proofs.slopes import parameter_norm, row_norm, steepest

ONE, TWO = [(1, 0)], [(1, 0), (-1, 1)]
"""Signs and rows: l(x, θ), and l(x, θ) - l(x', θ)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificates:
    """Proved facts about the log-likelihood of one row, all observed variables together, and about the prior.

    Each is proved when first asked for. What cannot be proved is infinite, False or 0, with its reason.

    Parameters
    ----------
    rows : tuple of RowLikelihood
    priors : tuple of Prior
    neighbours : {"replace", "add_remove"}
    potentials : tuple of str
        Names of the model's Potentials, which belong to the prior and of which nothing is proved.

    References
    ----------
    Gopi, Lee, Liu (2022), Private convex optimization via exponential mechanism, theorem 4; Wang, Fienberg, Smola
    (2015), theorem 4, and Dimitrakakis et al. (2017), assumption 1, for the two Lipschitz constants.
    """

    rows: tuple[RowLikelihood, ...]
    priors: tuple[Prior, ...]
    neighbours: Neighbours
    potentials: tuple[str, ...] = ()

    @cached_property
    def lipschitz(self) -> Proof:
        """L_θ: largest Euclidean norm of the gradient of l(x, θ) by θ, over rows and parameters."""
        return _total([_gradient(row, ONE) for row in self._known], self._obstacle)

    @cached_property
    def difference(self) -> Proof:
        """G: largest norm of the gradient of l(x, θ) - l(x', θ) by θ (``replace``); L_θ under ``add_remove``."""
        if self.neighbours == "add_remove":
            return self.lipschitz
        return _total([_difference(row) for row in self._known], self._obstacle)

    @cached_property
    def scaled(self) -> Proof:
        """As `difference`, for parameters in units of the proved precisions: the gradient by √m_i θ_i."""
        if not self.modulus > 0:
            return Proof(value=math.inf, attained=0.0, obstacle="a precision of the prior is not proved")
        scales = {name: (1 + 1e-12) / np.sqrt(item) for name, item in self.strong.items()}
        if self.neighbours == "add_remove":
            return _total([_gradient(row, ONE, scales) for row in self._known], self._obstacle)
        return _total([_difference(row, scales) for row in self._known], self._obstacle)

    @cached_property
    def by_column(self) -> dict[str, Proof]:
        """L_x: largest norm of the gradient by the values of each continuous private column."""
        return _by_column(self._known)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """What composition rules prove of each observed variable, as a function of the parameters."""
        return {row.name: shape_of(row.whole) for row in self._known if row.whole is not None}

    @cached_property
    def strong(self) -> dict[str, Array]:
        """Proved precisions of the prior, by free variable: 0 where nothing is proved."""
        return {prior.name: precisions(prior) for prior in self.priors}

    @property
    def concave(self) -> bool:
        """Whether l(x, ·) is proved concave in all parameters together, for every row."""
        return not self._obstacle and all(shape.concave for shape in self.shapes.values())

    @property
    def log_concave_prior(self) -> bool:
        """Whether the prior is proved log-concave in all parameters together."""
        return not self.potentials and all(log_concave(prior) for prior in self.priors)

    @property
    def modulus(self) -> float:
        """m: the prior is m-strongly log-concave in all parameters together; 0 if that is not proved."""
        if not self.log_concave_prior or not self.strong:
            return 0.0
        return min((float(item.min()) for item in self.strong.values() if item.size), default=0.0)

    def gaussian(self) -> float:
        """G / √m: one exact draw at inverse temperature β is μ-GDP with μ = β G / √m (Gopi, Lee, Liu 2022).

        In units in which the prior is 1-strongly log-concave along every parameter, where that is less.
        """
        if not (self.concave and self.modulus > 0):
            return math.inf
        if all((item == self.modulus).all() for item in self.strong.values()):  # both are the same, and G is shown too
            return self.difference.value / math.sqrt(self.modulus)
        return min(self.scaled.value, self.difference.value / math.sqrt(self.modulus))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why log-concavity is not proved, or not strong."""
        lines = [
            (f"nothing is proved about the Potential {name}, which belongs to the prior") for name in self.potentials
        ]
        return (*_reasons(self.rows, self.priors, self.shapes), *lines)

    @property
    def _known(self) -> list[RowLikelihood]:
        return [row for row in self.rows if row.whole is not None]

    @property
    def _obstacle(self) -> str:
        return next((row.failure for row in self.rows if row.whole is None), "")


def certify(
    rows: Sequence[RowLikelihood], priors: Sequence[Prior], neighbours: Neighbours, prior_model: Model
) -> Certificates:
    """Return what can be proved from the graphs of a row's log-likelihood and from the priors of a prior model."""
    return Certificates(
        rows=tuple(rows),
        priors=tuple(priors),
        neighbours=neighbours,
        potentials=tuple(str(item.name) for item in prior_model.potentials),
    )


def _reasons(rows: Sequence[RowLikelihood], priors: Sequence[Prior], shapes: dict[str, Shape]) -> list[str]:
    lines = [f"{row.name} has {row.failure}, for which there is no rule" for row in rows if row.whole is None]
    lines += [f"{name} is not proved concave in the parameters" for name, shape in shapes.items() if not shape.concave]
    for prior in priors:
        if not log_concave(prior):
            lines.append(f"the prior of {prior.name} is not proved log-concave")
        elif precisions(prior).min(initial=np.inf) <= 0:
            lines.append(f"the prior of {prior.name} is not strongly log-concave (a normal prior is)")
    return lines


def _gradient(row: RowLikelihood, corners: Sequence[tuple[int, int]], scales: dict[str, Array] | None = None) -> Proof:
    """Bound the gradient by all parameters of a signed sum over copies of the row, at one place."""
    copies: Copies = {}
    terms = [
        (sign * part.sign, copied(part.expression, of_row, 0, copies)) for part in row.parts for sign, of_row in corners
    ]
    tape = Tape([signed_sum(terms)])
    origins = {copy: symbol for (symbol, _), copy in copies.items()}
    return steepest(tape.ends[0], parameter_norm(tape, origins, scales), tape)


def _difference(row: RowLikelihood, scales: dict[str, Array] | None = None) -> Proof:
    """Bound the gradient of a difference of two rows: by itself, or as twice that of one."""
    one, found = _gradient(row, ONE, scales), _gradient(row, TWO, scales)
    if found.value <= 2 * one.value:
        return found
    return Proof(value=2 * one.value, attained=found.attained, boxes=found.boxes + one.boxes)


def _by_column(rows: Sequence[RowLikelihood]) -> dict[str, Proof]:
    found: dict[str, list[Proof]] = {}
    for row in rows:
        tape = Tape([signed_sum([(part.sign, part.expression) for part in row.parts])])
        met = [symbol for symbol in tape.symbols if isinstance(symbol, Meeting)]
        behind = {item for symbol in met for side in symbol.of_row for item in side.symbols}
        columns = {symbol for symbol in (*tape.symbols, *behind) if symbol.role == "row" and not symbol.integer}
        for symbol in sorted(columns, key=lambda one: one.name):
            found.setdefault(symbol.name, []).append(steepest(tape.ends[0], row_norm(tape, symbol, met), tape))
    return {name: _total(proofs, "") for name, proofs in found.items()}


def _total(proofs: Sequence[Proof], obstacle: str) -> Proof:
    """Gradients of several observed variables add up."""
    broken = next((proof for proof in proofs if math.isinf(proof.value)), None)
    if broken is not None and not obstacle:
        return broken
    if obstacle:
        return Proof(value=math.inf, attained=0.0, obstacle=obstacle)
    return Proof(
        value=sum(proof.value for proof in proofs),
        attained=max((proof.attained for proof in proofs), default=0.0),
        boxes=sum(proof.boxes for proof in proofs),
    )


LOG_CONCAVE = ("normal", "uniform", "exponential", "laplace", "logistic", "halfnormal", "gumbel", BALL)


def log_concave(prior: Prior) -> bool:
    """Whether the density of a prior, with constant parameters, is log-concave on its (convex) support."""
    if prior.distribution == "uniform":
        return prior.bounded
    if prior.constants is None or prior.low is None or prior.high is None:  # ends that move make a normaliser of them
        return False
    if prior.distribution == "gamma":
        return bool((prior.constants[0] >= 1).all())
    if prior.distribution in ("beta", "dirichlet"):
        return bool(all((item >= 1).all() for item in prior.constants))
    return prior.distribution in LOG_CONCAVE


def precisions(prior: Prior) -> Array:
    """Strong log-concavity of a prior along each scalar: an array of its shape.

    The precision of a normal prior (truncated ones included, truncation being to a convex set); of a beta prior with
    a, b >= 1 the least second derivative of minus its log density; of others 0, which claims nothing.
    """
    none = np.zeros(prior.shape)
    if prior.constants is None or prior.low is None or prior.high is None:
        return none
    if prior.distribution in ("normal", "halfnormal", BALL):
        return np.asarray(1 / prior.constants[-1] ** 2) * (1 - 1e-12)
    if prior.distribution == "beta":
        a, b = prior.constants
        if not ((a >= 1).all() and (b >= 1).all()):
            return none
        # (a-1)/p^2 + (b-1)/(1-p)^2 is least where p = u / (u + v), u and v the cube roots of a-1 and b-1.
        return np.asarray((np.cbrt(a - 1) + np.cbrt(b - 1)) ** 3) * (1 - 1e-12)
    return none


__all__ = ["Certificates", "certify", "log_concave", "precisions"]
