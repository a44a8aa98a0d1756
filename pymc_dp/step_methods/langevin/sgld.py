"""Stochastic gradient Langevin dynamics whose own noise makes it private."""

from __future__ import annotations

from typing import Any, Literal, Unpack, final, override

from pymc_dp import _validate
from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.sgld import Langevin
from pymc_dp.step_methods.langevin.arguments import Shared
from pymc_dp.step_methods.langevin.base import StochasticGradient


@final
class SGLD(StochasticGradient):
    """Stochastic gradient Langevin dynamics: θ + η ∇log-posterior of a random batch + N(0, 2η) noise.

    Every state of the chain is public and paid for. The noise that Langevin dynamics adds anyway is what protects the
    rows; gradients are clipped row by row, over all parameters together. Works on any differentiable model that
    factorises over rows, whatever the rows hold.

    Parameters
    ----------
    step_size : float, PolynomialDecay or AlphaPhase, optional
        η. By default the largest that has enough noise for the budget, though at most 1 / (4 N C²), where the dynamics
        would no longer be stable. A number must have enough noise. Falling step sizes need not: their first steps then
        have more noise than the dynamics asks for, and a higher temperature than the target.
    precondition : "rmsprop", optional
        Steps η M, where M, at most 1, falls for parameters whose noised gradients are large; it is learnt while tuning
        and fixed then, so ``tune`` must not be 0.
    papers : bool
        The papers' form: noise N(0, η) in place of N(0, 2η), and at least that of their algorithm 2, with its
        constants. It samples from the posterior **squared**, half of the variance, under far more noise than the budget
        asks for; what it costs is what the accountant says.

    Raises
    ------
    UnsupportedModelError
        If the likelihood does not factorise over rows, rows reach anything else, or a free variable is discrete; if
        `start` cannot be drawn.
    ArgumentError
        If ``delta=0``; if `step_size` has too little noise for the budget: the text says which step size would do, and
        what the wanted one costs.

    Notes
    -----
    **Guarantee.** Class stepwise: the whole chain is (ε, δ)-DP for one row under the relation of the domain, without
    any convergence; arithmetic float64. The sum of the clipped gradients of a batch has L2 norm at most C per row: it
    is enforced on the whole numbers that are summed, whose sum is exact in whatever order; not covered are the last
    bits of the draw of the noise, which is continuous and of float64. That noise has standard deviation σ b / N, so
    that a step is a Gaussian mechanism of noise multiplier σ b / (N C) on a random batch, σ being √(2/η) where η is
    constant and not too small. N and b are the public number of rows (``n_max`` under add_remove) and the expected
    batch size, never the realised ones. Run times are not covered. Starts are a mechanism beside the steps, composed
    with them; where `start` is only assumed to have converged, the class of the whole is asymptotic.

    The target is approximate as for any SGLD: steps are finite, batches add noise of their own, and clipping biases
    the gradient where it cuts rows of one direction more than those of another. `SGNHT` makes up for the noise.

    References
    ----------
    Wang, Fienberg, Smola (2015), algorithms 2 and 3 (`start`); Welling, Teh (2011). The factor 2: the papers'
    θ − η∇U + N(0, η) has the stationary density ∝ exp(−2U). Preconditioning: Li, Chen, Carlson, Carin (2016), without
    their correction, which a fixed M does not need.

    Examples
    --------
    >>> SGLD(batch_size=100, clip_norm=2.0, sampling="poisson")
    SGLD(batch_size=100, clip_norm=2.0, sampling='poisson')
    """

    name = "sgld"

    def __init__(
        self,
        vars: Any = None,
        *,
        precondition: Literal["rmsprop"] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        if precondition is not None:
            _validate.choice("precondition", precondition, ("rmsprop",))
        super().__init__(vars, more={"precondition": precondition}, **shared)

    @property
    @override
    def dynamics(self) -> Langevin:
        return Langevin(papers=self.settings["papers"], preconditioned=self.settings["precondition"] is not None)

    @override
    def remembered(self, size: int) -> Array:
        return self.dynamics.remembered(size)

    @override
    def _noise(self) -> str:
        variance = "η (the papers' form: the target is the posterior squared)" if self.settings["papers"] else "2η"
        return f"Gaussian of variance {variance} per step"

    @override
    def _followed_by(self) -> tuple[tuple[str, str], ...]:
        if self.settings["precondition"] is None:
            return ()
        return (("preconditioning", "by root mean squares of noised gradients, fixed after tuning"),)


__all__ = ["SGLD"]
