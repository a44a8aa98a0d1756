"""Barker's Metropolis: every accept bit is the exponential mechanism over two states, and is paid for."""

from __future__ import annotations

from typing import ClassVar, override

from pymc_dp.accounting import Event, PureEvent, ZCDPEvent
from pymc_dp.kernel import Grant, Pool
from pymc_dp.kernel.payer import Payer
from pymc_dp.step_methods.funding import Funding
from pymc_dp.step_methods.metropolis.base import PrivateMetropolis
from pymc_dp.step_methods.metropolis.coefficients import Place
from pymc_dp.step_methods.metropolis.spending import Spending


class BarkerMetropolis(PrivateMetropolis):
    """Metropolis with Barker's rule: the exact posterior, each accept bit accounted by its own range.

    From θ it proposes θ' from a symmetric normal on the unconstrained scale and goes there with probability
    ``σ(log p(θ' | X) - log p(θ | X))``. Any parameter graph will do, and no parameter needs bounds: the chain pays only
    for how far one row moves the *difference* between two released states, and short steps cost little.

    That is known where the likelihood has exact sums, at a price that does not grow with the rows. For
    any other model that factorises over rows it is found at every step, on public rows at the ends of what a row may be
    and at random, and then enforced: what a row adds beyond it is cut. Give public bounds or norms of what a row holds,
    ``Domain(bounds=..., norms=...)``.

    Parameters
    ----------
    vars : list of str, optional
        Free variables that it moves, where other steps move the others: ``dp.sample(step=[...])``. All by default.
    share : float
        Weight of this step among those that share the budget.
    clamp : float, optional
        For models whose rows have no bounds. ``g(x) = l(x, θ') - l(x, θ)`` of each
        row is clamped to ``± clamp ‖θ' - θ‖`` (Euclidean norm, unconstrained scale), in one pass over the rows per
        step. **The target changes** wherever that takes hold: below the largest gradient norm of a row, the chain has
        no density that is known. None (default): no clamp.
    scale : float or mapping of str to float or array, optional
        Standard deviation of the proposal on the unconstrained scale, for all variables or by the name of each. Public.
        None (default): chosen from the public ranges and tuned on released states, within what the budget allows, so
        that a chain seldom ends early. A given scale is never changed: steps that are too long end the chain.
    covariance : (d, d) array or DataTree, optional
        Shape of the proposal, on the unconstrained scale, in the order of the model's value variables; of blocks, that
        of each given the others. It must be **public**: a trace that pymc_dp paid for (of this model; its draws are
        taken to the unconstrained scale), or numbers that owe nothing to the rows. One computed from private rows
        breaks the guarantee. The scale is still tuned, unless `scale` is one number, which multiplies draws of this
        covariance.
    blocks : "each" or list of lists of str, optional
        Variables that move together, by name; "each": every variable by itself. One step is then a scan over the
        blocks, each with a proposal of its own, and each charged the range of its own move. None (default): all move
        together.
    steps_per_draw : int
        Steps between two states that are kept; each is charged.
    epsilon, delta, chains, domain, model
        Only for use in ``pm.sample(step=...)``: the budget of all its chains together, what is public about a row, and
        the model. Without `epsilon` this is a specification for ``dp.sample(step=...)``.

    Raises
    ------
    UnsupportedModelError
        If a likelihood has no exact sums here, what a row holds has no bounds, and no clamp is given: the text names
        what has none, and what would do. If its likelihood does not factorise over rows or has an operation that the
        kernel does not take, a free variable is discrete, or the model cannot start at its initial point.
    ArgumentError

    Notes
    -----
    Every step is paid for; ``dp.sample`` makes 4000 draws after 1000 of tuning by default. More steps of the
    same budget are shorter ones.

    **Released.** All states of every chain, tuning included; a filter ends a chain before its budget is exceeded, and
    the trace is cut there.

    **Guarantee.** One step is R-DP and R²/8-zCDP, where one row moves the log ratio by at most R. Where rows are held
    one by one, R is enforced by the kernel: each row's g is held within an interval as a whole number, sums are exact,
    and the bit is drawn by whole weights (`docs/kernel.md`, statement 26). The interval is the least and the largest g
    of public rows (``sup g - inf g`` of these under ``replace``, ``sup |g|`` under ``add_remove``; with a clamp twice
    and once ``clamp ‖θ' - θ‖``); with public columns under ``replace``, one about the middle of g for a row's public
    values. A range that misses some row changes the target there, and never the guarantee. Where sums are enough, R
    is known from what a row adds to them; sums and products are exact, and the bit is one of whole weights too. Places,
    proposals, tuning and R are functions of released states, public bounds and fresh randomness, so that the filter may
    stop by them; the whole budget is reserved first and is the guarantee, ``epsilon_spent`` is bookkeeping. Class
    stepwise: no convergence is needed. Arithmetic float64. A tuned proposal that costs more than nine times (δ = 0:
    three times) what is left per step is refused without a look at the rows; R is the same both ways, so that the
    target is unchanged. While it tunes the chain is not yet a draw from the posterior; afterwards the proposal is
    fixed. Where the log-likelihood of some public row is no number the chain does not go, whatever rows there are.

    **Time.** A step takes one new number of each row, and numbers of some hundred public rows.

    References
    ----------
    Barker (1965), doi 10.1071/PH650119; Foulds, Geumlek, Welling, Chaudhuri (2016), appendix C; range accounting: Dong,
    Durfee, Rogers (2020), Cesar, Rogers (2021), lemma 3.4; filter: Feldman, Zrnic (2021).

    Examples
    --------
    >>> BarkerMetropolis(steps_per_draw=2)
    BarkerMetropolis(steps_per_draw=2)
    """

    name = "barker_metropolis"
    rule: ClassVar[str] = "accept bits (Barker)"
    spending: Spending

    @override
    def price(self, funding: Funding) -> Event:
        self.spending = Spending(funding.budget, funding.chains)
        return self.spending.event

    @override
    def _paid_for_chain(self) -> Event:
        left = self.spending.reserved
        return PureEvent(epsilon=left) if self.spending.pure else ZCDPEvent(rho=left)

    @override
    def _pay(self, kernel: Payer) -> Grant | Pool:
        left = self.spending.reserved
        return kernel.pool(epsilon=left) if self.spending.pure else kernel.pool(rho=left)

    @override
    def _accepts(self, here: Place, there: Place, reach: float) -> bool:
        return self._drawn("barker", here, there)

    @override
    def _acceptance(self, dimension: int) -> float:
        """Return 0.158 in high dimension (Agrawal, Vats, Łatuszyński, Roberts 2023).

        In one to five dimensions it was measured on normal targets.
        """
        return 0.158 + 0.12 / dimension

    @override
    def _filter(self) -> str:
        rule = "ranges add" if self.spending.pure else "R²/8-zCDP each"
        return f"{rule}; a chain ends before its {self.spending.reserved:.6g} are exceeded"


__all__ = ["BarkerMetropolis"]
