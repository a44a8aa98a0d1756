"""Samplers with momentum: friction that makes up for the noise which protects the rows, or that finds what it is."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack, final, override

from pymc_dp.inspection.rows import Array
from pymc_dp.samplers.sghmc import Hamiltonian
from pymc_dp.samplers.sgnht import Thermostat
from pymc_dp.step_methods.langevin.arguments import Shared
from pymc_dp.step_methods.langevin.base import StochasticGradient
from pymc_dp.step_methods.langevin.batches import positive


class Momentum(StochasticGradient):
    """Base: a velocity for every parameter, kicked by noised gradients and slowed by friction."""

    def __init__(
        self,
        vars: Any = None,
        *,
        friction: float = 0.1,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(vars, more={"friction": positive("friction", friction)}, **shared)

    @override
    def _followed_by(self) -> tuple[tuple[str, str], ...]:
        return (("friction", f"{self.settings['friction']:g} per step{self._adapted}"),)

    _adapted: ClassVar[str] = ""


@final
class SGHMC(Momentum):
    """Stochastic gradient Hamiltonian Monte Carlo: momentum, and friction that makes up for noise on the gradients.

    A step moves half of the way, gives the velocity v the noised gradient times η between two halves of a friction a,
    and moves the other half. The noise that protects the rows is known, and the friction takes it away again; only the
    noise of the batches remains.

    Parameters
    ----------
    friction : float
        a > 0, per step: velocities are forgotten in about 1 / a steps. With more friction steps may be larger.
    step_size : float, PolynomialDecay or AlphaPhase, optional
        η, the square of the time that a step takes. By default the largest whose friction makes up for the noise that
        the budget asks for, though at most 1 / (4 N C²).

    Raises
    ------
    UnsupportedModelError, ArgumentError
        As for `SGLD`.

    Notes
    -----
    **Released.** All noised gradients: positions, velocities and their noise are functions of these and of fresh
    randomness.

    **Guarantee.** Class stepwise, as for `SGLD`: (ε, δ) for one row, without any convergence; arithmetic float64. Each
    gradient estimate has noise N(0, σ²), a Gaussian mechanism of multiplier σ b / (N C) on a random batch.

    **Dynamics.** Symmetric splitting (Chen, Ding, Carin 2015): errors of second order in the step. Noise of variance
    4 η sinh(a / 2) in a step keeps positions at temperature 1 for every friction; where η²σ² is less, fresh noise makes
    up the rest.

    References
    ----------
    Chen, Fox, Guestrin (2014); Wang, Fienberg, Smola (2015), equations 2 and 4, algorithm 3; Chen, Ding, Carin (2015).

    Examples
    --------
    >>> SGHMC(friction=0.3)
    SGHMC(friction=0.3)
    """

    name = "sghmc"

    @property
    @override
    def dynamics(self) -> Hamiltonian:
        return Hamiltonian(friction=self.settings["friction"])

    @override
    def remembered(self, size: int) -> Array:
        return self.dynamics.remembered(size)


@final
class SGNHT(Momentum):
    """Stochastic gradient Nosé-Hoover thermostat: momentum, and a friction that finds out how much noise there is.

    As `SGHMC`, but the friction ξ grows while velocities are larger than they should be, and falls while they are
    smaller. It takes up all noise on the gradients, that of the batches included, which nobody knows and which no other
    sampler here makes up for. So steps may have more noise than their friction at the start asks for.

    Parameters
    ----------
    friction : float
        Least a > 0 for whose noise fresh randomness provides, per step, and the friction at the start, unless more is
        known to be needed.
    step_size : float, PolynomialDecay or AlphaPhase, optional
        η, the square of the time that a step takes. By default the largest at which `friction` makes up for the noise
        that the budget asks for, though at most 1 / (4 N C²).
    papers : bool
        Noise of the papers' algorithm 2, with its constants: more than the budget asks for. And their thermostat, which
        follows kinetic energy at rate η per step: far too slowly to be of use where rows are many and η small.

    Raises
    ------
    UnsupportedModelError, ArgumentError
        As for `SGLD`.

    Notes
    -----
    **Released.** All noised gradients: positions, velocities and friction are functions of these and of fresh
    randomness.

    **Guarantee.** Class stepwise, as for `SGLD`: (ε, δ) for one row, without any convergence; arithmetic float64. Each
    gradient estimate has noise N(0, σ²), a Gaussian mechanism of multiplier σ b / (N C) on a random batch.

    **Dynamics.** Symmetric splitting (Chen, Ding, Carin 2015). Friction follows kinetic energy over that of temperature
    1 at a rate of a² / 10 per step, so that it finds its place within some hundred steps whatever the scale of the
    posterior, and varies by about a / √(10 d) around it (Nosé and Hoover's thermostat with another mass, which leaves
    the target what it is). Without bias where the noise is normal, the same in all
    directions and the same everywhere, as that which protects the rows is; that of batches is so in part. Clipping
    biases gradients as for every sampler here.

    References
    ----------
    Ding, Fang, Babbush, Chen, Skeel, Neven (2014); Wang, Fienberg, Smola (2015), equations 3 and 5, algorithm 3;
    Chen, Ding, Carin (2015).

    Examples
    --------
    >>> SGNHT(batch_size=500)
    SGNHT(batch_size=500)
    >>> import pymc_dp as dp
    >>> dp.SGNHT(start=dp.OPS(), start_share=0.3)
    SGNHT(start=OPS(), start_share=0.3)
    """

    name = "sgnht"

    _adapted = " at first, then as velocities ask for"

    @property
    @override
    def dynamics(self) -> Thermostat:
        return Thermostat(friction=self.settings["friction"], papers=self.settings["papers"])

    @override
    def remembered(self, size: int) -> Array:
        return self.dynamics.remembered(size, float(self.course.sizes[0]), self.course.sigma)


__all__ = ["SGHMC", "SGNHT"]
