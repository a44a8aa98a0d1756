"""Fisher scoring by noised gradients and products of gradients: all noise that is known is made up for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Unpack, final, override

import numpy as np
from pymc import Model

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.sgfs import Scoring, learn, nothing_known, positive, views
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.langevin.arguments import Shared
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.langevin.batches import Constant, Course, Limits, Sampling, algorithm_two, step_sizes

MOST_PARAMETERS = 200
"""A step costs a product of matrices of this width."""
AHEAD = 2.0
"""Power of the number of a step by which what it saw is weighted: starts far from the target are soon forgotten."""
COVARIANCE = 7.0
"""Papers' noise on a covariance over that on a mean, in units of clip norms."""
DIFFERENCE = 1e-4
"""Distance over which the gradient of the prior is differenced."""
FIXED = (
    "papers=True takes covariances of batches of a fixed size of at least 2: use sampling='without_replacement' and "
    "neighbours='replace', or leave papers out."
)


@final
class SGFS(StochasticGradient):
    """Stochastic gradient Fisher scoring: Newton-like steps whose length makes up for all noise that is known.

    A step releases the noised sum of the clipped gradients g of a batch, and also that of their products g gᵀ, whose
    mean estimates the Fisher information Î of a row. It moves θ by 2 G⁻¹ times the estimated gradient, with G = A + Q:
    A = N Î + the prior's precision is the curvature of the log-posterior, Q the covariance of the noise on the
    gradient, from rows' protection and from batches. Near a normal posterior no noise is then too much, and no step
    needs a size.

    Parameters
    ----------
    fisher_share : float
        In (0, 1): what of the budget, in 1 / noise², pays for the products. Gradients get noise larger by
        1 / √(1 - share) than those of `SGLD`.
    step_size : float, PolynomialDecay or AlphaPhase, optional
        η: noise of variance at least 4 / η on the gradient, and so smaller steps, which meet posteriors that are not
        normal as η goes to 0. Where a number asks for more than the budget, all of it protects the rows and less is
        spent.
        By default at most 4 / (N C²): 4 / η is then about the most that the log-likelihood bends, which keeps chains
        stable where the budget asks for next to no noise. No number is too large; a large one injects nothing.
    papers : bool
        The papers' algorithm 4 with its constants, for half of the budget, since its theorem claims twice what it is
        given: centred covariances of batches of fixed size, each made positive, and G = (1 + N/b) N Î + 4 C² / η. What
        it costs is what the accountant says. Where 4 / η is most of G, its noise, of variance C² / η, is a quarter of
        what a posterior needs: draws have a quarter of its variance.

    Raises
    ------
    UnsupportedModelError
        As for `SGLD`.
    ArgumentError
        As for `SGLD`; for more than 200 parameters; for `papers` without batches of fixed size, or where its noise is
        too small for the budget.

    Notes
    -----
    **Released.** All noised gradients and products: positions and the information are functions of these and of fresh
    randomness.

    **Guarantee.** Class stepwise, as for `SGLD`: (ε, δ) for one row, without any convergence; arithmetic float64. With
    both norms enforced on the whole numbers that are summed, and noise of standard deviation z C on the sum of g and
    z' C² on that of g gᵀ (Frobenius norm: 1 / √2 of it off the diagonal), a row adds (g / z C, g gᵀ / z' C²) to a sum
    whose noise is standard normal: a vector of norm at most √(1/z² + 1/z'²), and so the Gaussian mechanism of
    multiplier 1 / √(1/z² + 1/z'²) on a random batch. With `papers`, where covariances are no sums over rows, the curve
    of fixed batches reads the largest sensitivity by one replaced row alone.

    **Dynamics.** For a normal posterior of precision A and noise of covariance Q on its gradient, N(mean, A⁻¹)
    is stationary under θ + 2 G⁻¹ (gradient + noise) exactly if G = A + Q, at any noise, and the chain is stable. Where
    bends are really a in some direction, variances are Q / (Q + A - a) times the target's: wrong by (a - A) / Q, which
    is little where noise is most of G; a chain with a > A + Q is not stable. So the posterior must be near to normal
    and Î to what the log-likelihood bends: the model well specified, and few rows clipped. A smaller `step_size` makes
    up for either; priors that bend ever more, as those of hierarchies do, may need it. The noise of batches is that of
    clipped gradients, and known as well as Î.

    References
    ----------
    Ahn, Korattikara, Welling (2012); Wang, Fienberg, Smola (2015), appendix A, algorithm 4, lemma 19. Not as there: the
    noise that protects rows is part of G; products are not centred, so that each row adds one of them to a sum;
    injected noise of variance 4 / η as in Ahn et al., where algorithm 4 has 1 / η beside a ridge of 4 / η.

    Examples
    --------
    >>> SGFS(batch_size=500, fisher_share=0.1)
    SGFS(batch_size=500, fisher_share=0.1)
    """

    name = "sgfs"
    multiplied = True

    def __init__(
        self,
        vars: Any = None,
        *,
        fisher_share: float = 0.05,
        **shared: Unpack[Shared],
    ) -> None:
        if not 1e-6 <= _validate.number("fisher_share", fisher_share) <= 1 - 1e-6:
            raise ArgumentError(f"fisher_share must lie in [1e-6, 1 - 1e-6], got {fisher_share}.")
        super().__init__(vars, more={"fisher_share": fisher_share}, **shared)

    @property
    @override
    def dynamics(self) -> Scoring:
        return Scoring(asked=self._asked, papers=self.settings["papers"])

    @property
    def _asked(self) -> float:
        """Variance of the least noise on a gradient, times η."""
        return self.clip_norm**2 if self.settings["papers"] else 4.0

    # --- planning: public things only ---------------------------------------------------------------------------------

    @override
    def plan(self, inspection: Inspection) -> Model:
        new = super().plan(inspection)
        if self.gradients.size > MOST_PARAMETERS:
            raise ArgumentError(
                f"SGFS keeps a matrix of all pairs of parameters; this model has {self.gradients.size} parameters, "
                f"more than {MOST_PARAMETERS}. Use dp.SGLD(precondition='rmsprop') or dp.SGNHT()."
            )
        if self.settings["papers"] and self.batches.size < 2:
            raise ArgumentError(FIXED)
        return new

    @property
    @override
    def _sampling(self) -> Sampling:
        if not self.settings["papers"]:
            return super()._sampling
        asked = self.settings["sampling"] or "without_replacement"
        fixed = asked == "without_replacement" and self.neighbours == "replace"
        if not fixed:
            raise ArgumentError(FIXED)
        return "without_replacement"

    @override
    def _course(self, needed: float, funding: Funding) -> Course:
        """Choose step sizes and noise, together at least what `needed` on gradients alone would protect."""
        if self.settings["papers"]:
            return self._papers_course(needed, funding)
        share = self.settings["fisher_share"]
        sizes, sigma = self._sized(needed / math.sqrt(1 - share), funding)
        products = needed / self._deviation(1.0) / math.sqrt(share)
        return Course(sizes=sizes, sigma=sigma, products=products, temperature=np.ones(len(sizes)))

    @property
    @override
    def _stable(self) -> float:
        """Return η at which the ridge of G is N C², which is about the most that log-likelihoods bend."""
        ridge = (4 if self.settings["papers"] else 1) * self._asked
        return ridge / (self.population * self.clip_norm**2)

    def _sized(self, sigma: float, funding: Funding) -> tuple[Array, float]:
        """Return step sizes and the noise on gradients: that of steps all alike may all protect the rows."""
        rule, natural = step_sizes(self.settings["step_size"]), self.natural(sigma)
        sizes = rule.sizes(funding.steps, Limits(natural=natural, stable=min(natural, self._stable)))
        if isinstance(rule, Constant):  # others name sizes, which may not set a price before the clip norm is known
            sigma = max(sigma, math.sqrt(self._asked / float(sizes[0])))
        return sizes, sigma

    def _papers_course(self, needed: float, funding: Funding) -> Course:
        """Return the noise of algorithm 4, once it is known to be enough.

        With k steps its σ² is 32 k log(2.5 k / δ) log(2 / δ) / (N ε)², a quarter of algorithm 2's over N², on means of
        batches in clip norms; 7² as much in their squares on covariances.
        """
        budget = self.start.rest(funding.budget)
        least = algorithm_two(self.clip_norm, funding.uses, budget.epsilon / 2, budget.delta / 2) / 2
        sizes, sigma = self._sized(least, funding)
        products = COVARIANCE * least / self._deviation(1.0)
        found = Course(sizes=sizes, sigma=sigma, products=products, centred=True, temperature=np.ones(len(sizes)))
        short = needed / self._deviation(1.0) / self._joint(found)
        if short > 1 and funding.steps > 1:  # a funded step is priced for a single one first
            raise ArgumentError(
                f"papers=True: algorithm 4's noise, {sigma:.4g} on a gradient, is too small for {budget}: its number "
                "of steps is too small for its theorem. Make more steps, or leave papers out."
            )
        return replace(found, sigma=sigma * max(1.0, short), products=products * max(1.0, short))

    def _joint(self, course: Course) -> float:
        return joint_multiplier(course.sigma / self._deviation(1.0), course.products, covariances=course.centred)

    @property
    @override
    def multiplier(self) -> float:
        """Noise of gradients and products together, over what a row can add to them, rounded down."""
        return self._joint(self.course) * (1 - 1e-12)

    # --- chain --------------------------------------------------------------------------------------------------------

    @property
    def weight(self) -> float:
        """Of the information of a row in G: those of all rows, and what batches add to the noise of gradients."""
        batch, population = self.batches.size, self.population
        if self.settings["papers"]:
            return population * (1 + population / batch)
        spread = (1 - batch / population) * population / batch
        if self.batches.sampling == "without_replacement":
            spread *= population / max(1, population - 1)
        return population * (1 + spread)

    @override
    def remembered(self, size: int) -> Array:
        """Return no information, and the prior's precision, which is public."""
        return nothing_known(np.zeros((size, size)) if self.settings["papers"] else self._precision())

    def _precision(self) -> Array:
        """Return how the log prior bends at the start of a chain: differences of its gradient, made positive."""
        start = self.gradients.flat(self.prior_model.initial_point())
        moves = DIFFERENCE * np.diag(np.maximum(1.0, np.abs(start)))
        slopes = [[self.gradients.of_prior(start + sign * move) for move in moves] for sign in (-1.0, 1.0)]
        bends = (np.array(slopes[0]) - slopes[1]) / (2 * np.diag(moves)[:, None])
        return positive(np.nan_to_num(bends + bends.T, posinf=0.0, neginf=0.0) / 2)

    @override
    def stretches(self, memory: Array, sizes: Array) -> Iterator[Array]:
        """Yield step sizes up to where axes are found anew, and find them; the papers do so after every step."""
        known, papers = views(memory, self.gradients.size), self.settings["papers"]
        while sizes.size:
            due = 1 if papers else known.due
            yield sizes[:due]
            sizes = sizes[due:]
            if papers or not known.due:
                learn(known, weight=self.weight, ahead=0.0 if papers else AHEAD, each_positive=papers)

    @override
    def _noise(self) -> str:
        gradients = self.course.sigma / self._deviation(1.0)
        return (
            f"Gaussian of {gradients:.6g} clip norms on sums of gradients, {self.course.products:.6g} of their "
            "squares on sums of products"
        )

    @override
    def _sizes(self) -> str:
        if self._estimate is not None and self._norm is None:
            return super()._sizes()
        injected = self._asked / self.course.sizes > self.course.sigma**2 * (1 + 1e-9)
        return f"{super()._sizes()}; {'steps inject' if injected.any() else 'no step injects'} noise"

    @override
    def _followed_by(self) -> tuple[tuple[str, str], ...]:
        if self.settings["papers"]:
            return (("form", "the papers' algorithm 4: the target is not the posterior"),)
        share = self.settings["fisher_share"]
        return (("Fisher information", f"mean of noised products of gradients, {share:g} of the budget"),)


def joint_multiplier(gradients: float, products: float, *, covariances: bool = False) -> float:
    """Return the multiplier of one Gaussian mechanism that releases gradients and products of gradients.

    Parameters
    ----------
    gradients : float
        Standard deviation of the noise on the sum of clipped gradients, over the clip norm C.
    products : float
        That of the noise on the sum of their products (Frobenius norm), over C².
    covariances : bool
        Whether it is instead that on the centred covariance of a batch of fixed size b, over C² / b.

    Notes
    -----
    A row adds a vector of norm at most √(1/z² + 1/z'²) in units of the noise. A replaced row moves a covariance by at
    most 4 C² / b (from -m to m, where all others are m, of norm C), and both by at most √(4/z² + 16/z'²), which that
    pair reaches; under replace a mechanism of multiplier z moves by 2/z.

    Examples
    --------
    >>> round(joint_multiplier(5.0, 10.0), 4), round(joint_multiplier(5.0, 10.0, covariances=True), 4)
    (4.4721, 3.5355)
    """
    return 1 / math.hypot(1 / gradients, (2 if covariances else 1) / products)


__all__ = ["MOST_PARAMETERS", "SGFS", "joint_multiplier"]
