"""``dp.find_map``: the maximum a posteriori, by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp._compiling import says_when_it_compiles
from pymc_dp.accounting import Event, Ledger, PureEvent, event_from_dict
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.sampling import sample
from pymc_dp.step_methods.base import PrivateStep
from pymc_dp.step_methods.mode import AnnealedMode, CandidateMode, Draws, Grid, Points
from pymc_dp.step_methods.mode.candidates import Given, numbers
from pymc_dp.trace.chains import released_draws


@says_when_it_compiles
def find_map(
    *,
    epsilon: float,
    delta: float = 0.0,
    grid: int | Mapping[str, Any] | None = None,
    candidates: xr.DataTree | Mapping[str, Any] | None = None,
    annealed: bool = False,
    assume_converged: bool = False,
    domain: Domain | None = None,
    ledger: Ledger | None = None,
    model: Model | None = None,
    progressbar: bool = True,
) -> xr.DataTree:
    """Spend a privacy budget on one estimate of the parameters, close to the mode of their posterior.

    One of finitely many candidates is chosen with probability ∝ ``exp(β (log prior(θ) + Σ l(x, θ)))``, or θ is drawn
    from that density over the whole parameter space, with the largest β that the budget allows.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the choice, > 0.
    delta : float
        Failure probability; δ > 0 helps where ε is large.
    grid : int or mapping, optional
        Candidates on a grid: how many along each axis, between the ends of the priors' supports; or values by the names
        of free variables, for every scalar of them. Default, if no candidates are given: 1024, 64 or 16 along each of
        one, two or three bounded scalars.
    candidates : DataTree or mapping, optional
        Candidates in another way: the distinct draws of a trace that was paid for; or public arrays of shape
        ``(n_candidates, ...)`` by the names of all free variables.
    annealed : bool
        No candidates: a draw from the annealed posterior, exact where `OPS` draws exactly.
    assume_converged : bool
        With `annealed`, where no exact draw is known: the last state of a NUTS chain on the annealed posterior. The
        guarantee is then asymptotic: it holds only if the chain has converged.
    domain : Domain, optional
        What is public about one row: bounds, public columns, neighbours.
    ledger : Ledger, optional
        Account of this data set; charged before the rows are read.
    model : pymc.Model or bambi.Model, optional
        Defaults to the model of the context.
    progressbar : bool
        Say so where compiling takes long. There is no bar: how a choice is made shows nothing until it is made.

    Returns
    -------
    xarray.DataTree
        ``posterior`` of one chain of one draw, the estimate; ``sample_stats``, with the number of the ``candidate``
        among those given (chains one after another, grids with the last axis fastest); and ``privacy``, which ``.dp``
        reads.

    Raises
    ------
    UnsupportedModelError
        If nothing limits what a row adds at the candidates, or the annealed posterior cannot be drawn; with every
        problem and its remedy. Nothing is spent.
    TraceError
        If a trace holds draws that nothing paid for.
    ArgumentError, DomainError
        Nothing is spent.
    BudgetExceeded
        Before the rows are read; the ledger is unchanged.

    Notes
    -----
    **Score.** The paper scores θ by its posterior *density*, and uses as its sensitivity a bound on log-ratios of the
    posteriors of neighbours, or on differences of their probabilities. A density is neither: it has units, and the same
    mechanism for θ in thousandths would be 1000 times as sharp at the same claim. Its logarithm up to a constant, the
    log joint density, is a sum over rows, and how far one of them can move it is found, and enforced. The normaliser,
    the evidence, is the same for all θ and drops out.

    **Cost.** η = β R, where R is the range of one row over the *candidates*: the largest ``d(θ) - d(θ')``, d the
    difference of the log-likelihoods of two rows (``replace``) or that of one row (``add_remove``). It is the largest
    that is found on public rows: at the ends of what a row may be, at random, and moved on from there to where it is
    larger. It is enforced on every row, so that rows beyond it are cut; privacy does not rest on how well it was
    found. It may be finite where that over all parameters is not, as for regression without bounds on its
    coefficients. The prior is public and costs nothing. With m candidates the log joint density of the choice is within
    ``log(m / p) / β`` of the best one's with probability 1 - p (McSherry, Talwar 2007); the report gives it for p =
    0.05. So few candidates are better than many, until none is near the mode.

    **Candidates of a trace** of the same rows were paid for, but the choice shows one of them. The tree that is
    returned is therefore covered by the sum of both losses, given what either assumes public, and says so; a ledger,
    which was charged for the trace, is charged for the choice alone.

    **Under a metric** (``Domain(metric=ρ)``, ρ of ``dp.metrics.L1``) ε is per unit of ρ, δ is 0, and so is R per unit.
    Rows have at most three private columns of numbers with bounds. They count for the nodes of a public grid in whole
    shares; R is how steep the numbers of the nodes are at the candidates. Draws of a trace cannot be candidates then.
    With ``annealed=True`` a grid of one or two bounded scalars is drawn from.

    **Guarantee.** Everything in the returned tree is (ε, δ)-differentially private for one row, under
    ``domain.neighbours``, given what the report lists as assumed public: bounded range, η-DP and η²/8-zCDP. Class
    exact, or that of the trace of the candidates if it is weaker; asymptotic where `assume_converged` was needed.
    Arithmetic hardened for public candidates, else float64.

    References
    ----------
    Zhang, Rubinstein, Dimitrakakis (2016), algorithm 3 and corollary 4; McSherry, Talwar (2007), theorems 6 and 7;
    bounded range: Dong, Durfee, Rogers (2020), Cesar, Rogers (2021).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 2, 2)
    ...     y = pm.Bernoulli("y", p, observed=np.repeat([0, 1], [30, 170]))
    >>> idata = find_map(epsilon=1.0, grid={"p": np.linspace(0.05, 0.95, 19)}, model=model, ledger=dp.Ledger(1.0))
    >>> idata["posterior"]["p"].shape, idata.dp.guarantee
    ((1, 1), 'exact')
    """
    _validate.flag("progressbar", progressbar)
    assumed = _validate.flag("assume_converged", assume_converged)
    step = _step(grid, candidates, _validate.flag("annealed", annealed), assumed)
    return sample(
        1,
        epsilon=epsilon,
        delta=delta,
        step=step,
        domain=domain,
        ledger=ledger,
        model=model,
        progressbar=False,
        quiet=True,
    )


def _step(grid: object, candidates: object, annealed: bool, assumed: bool) -> PrivateStep:
    given = [name for name, here in (("grid", grid is not None), ("candidates", candidates is not None)) if here] + [
        "annealed"
    ] * annealed
    if len(given) > 1:
        raise ArgumentError(f"{' and '.join(given)} exclude each other. Give one of them.")
    if annealed:
        return AnnealedMode(assume_converged=assumed)
    if assumed:
        raise ArgumentError(
            "assume_converged=True is for the annealed posterior: a choice among candidates needs no convergence. Set "
            "annealed=True with it, or leave it out."
        )
    return CandidateMode(_grid(grid) if candidates is None else _candidates(candidates))


def _grid(grid: object) -> Given:
    if grid is None:
        return Grid(axes={})
    if isinstance(grid, Mapping):
        return Grid(axes={name: numbers(f"grid[{name!r}]", values) for name, values in grid.items()})
    return Grid(cells=_validate.many("grid", grid, 2), axes={})


def _candidates(candidates: object) -> Given:
    if isinstance(candidates, xr.DataTree):
        posterior, record = released_draws(candidates, "candidates")
        if not math.isfinite(record["epsilon"]):
            raise ArgumentError(
                "candidates is a trace without a finite ε for one row, which the choice would inherit. Give draws of "
                "another, or public arrays."
            )
        held = {str(name): array.to_numpy() for name, array in posterior.data_vars.items()}
        return Draws(
            values={name: values.reshape(-1, *values.shape[2:]) for name, values in held.items()},
            epsilon=float(record["epsilon"]),
            delta=float(record["delta"]),
            guarantee=str(record["guarantee"]),
            neighbours=str(record["neighbours"]),
            assumed=tuple(map(str, record["assumptions"])),
            event=_event(record),
        )
    if isinstance(candidates, Mapping):
        return Points(values={name: numbers(f"candidates[{name!r}]", held) for name, held in candidates.items()})
    raise ArgumentError(
        "candidates must be a trace that was paid for, or arrays by the names of free variables, got "
        f"{type(candidates).__name__}."
    )


def _event(record: Mapping[str, Any]) -> Event:
    """Return what a trace was charged; for whole rows, where it was per unit of a metric."""
    return PureEvent(epsilon=record["epsilon"]) if record.get("metric") else event_from_dict(record["event"])


__all__ = ["find_map"]
