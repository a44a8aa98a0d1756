"""``dp.sample_ais``: private annealed importance sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp._compiling import says_when_it_compiles
from pymc_dp._progress import progress
from pymc_dp._random import public_generator
from pymc_dp.accounting import Budget, Ledger, check_ledger
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.inspect import refuse_metric
from pymc_dp.inspection.rows import Array
from pymc_dp.kernel.randomness import insecure
from pymc_dp.release.paid import keep, paid
from pymc_dp.release.record import ReleaseRecord
from pymc_dp.step_methods.annealing import Annealing, Resampling, Settings
from pymc_dp.step_methods.annealing.price import Temperatures, path_of
from pymc_dp.step_methods.annealing.sampler import Annealed
from pymc_dp.step_methods.funding import Claims
from pymc_dp.step_methods.gibbs import TemperedGibbs
from pymc_dp.trace.chains import annealed_groups
from pymc_dp.trace.scrub import annotate
from pymc_dp.transforms.privatize import refuse_released

SHARES = {"weights_share": 0.2, "evidence_share": 0.1}
"""Of ε, by default."""


@says_when_it_compiles
def sample_ais(
    draws: int = 1,
    *,
    epsilon: float,
    delta: float = 0.0,
    particles: int = 20,
    temperatures: Temperatures = 20,
    power: float | None = None,
    resampling: Resampling = "range",
    marginal_likelihood: bool = False,
    weights_share: float | None = None,
    evidence_share: float | None = None,
    grid: int | None = None,
    domain: Domain | None = None,
    ledger: Ledger | None = None,
    model: Model | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
) -> xr.DataTree:
    """Anneal particles from the prior to the posterior, weigh them, and return draws that may be published.

    Each particle starts at an exact draw from the prior, which is free, and makes one scan of tempered Gibbs sampling
    at each of several inverse temperatures ``β_1 < ... < β_J``. Transitions at a high temperature cost little and cross
    from mode to mode; importance weights correct for the short path. β_J is the greatest that pays for everything, and
    never above 1.

    Parameters
    ----------
    draws : int
        Chosen among the last states of the particles by their weights; 1 by default, since each has a price where
        ``resampling="range"``.
    epsilon : float
        Privacy loss of the whole trace, > 0.
    delta : float
        δ > 0 buys far more: the cost of so many transitions then grows with the root of their number.
    particles : int
        Each costs a path of its own.
    temperatures : int or sequence of float
        How many, J, along ``β_j = β_J (j / J)^power``; or the path itself as numbers that increase, β_j or the ε_j of
        an exact draw at each alike: only their ratios count, for the budget decides on the last.
    power : float, optional
        4 by default: short steps close to the prior, where they cost next to nothing.
    resampling : {"range", "laplace"}
        How weights are used. ``"range"``: every draw is an index chosen by the exact weights, and paid for.
        ``"laplace"``: all weights are released once, with noise; draws from them are free, and they are in the trace.
        That needs exact sums of all likelihoods.
    marginal_likelihood : bool
        Whether to release the log of the mean weight, with noise: an estimate of the log evidence of the *tempered*
        model, prior times likelihood^β_J. Of the model itself only where β_J = 1; it is named by which it is.
    weights_share, evidence_share : float, optional
        Of ε, for the noise on weights (0.2; only for ``"laplace"``) and on the log evidence (0.1; only with
        `marginal_likelihood`). The rest is for the path, and for draws by ``"range"``.
    grid : int, optional
        As for `TemperedGibbs`.
    domain : Domain, optional
        What is public about one row: bounds, public columns, neighbours.
    ledger : Ledger, optional
        Account of this data set; charged before the rows are read.
    model : pymc.Model or bambi.Model, optional
        Defaults to the model of the context.
    random_seed : int, Generator or None
        Seeds what sees no row: draws from the prior, and those by released weights. Never the privacy randomness.
    progressbar : bool

    Returns
    -------
    xarray.DataTree
        ``posterior`` (one chain of `draws`), ``sample_stats`` (which particle each draw is, and ``epsilon_spent``: the
        whole, since particles and weights are paid for before the first draw), ``particles`` (the last
        state of every particle, by itself a draw from the tempered posterior only in the limit of a long path),
        ``released`` where there are weights (``weights``) or an evidence (``log_evidence``, or
        ``log_evidence_tempered`` where β_J < 1), and ``privacy``; ``.dp`` reads the last two.

    Raises
    ------
    UnsupportedModelError
        If `TemperedGibbs` would refuse the model (variables without bounds, for example), if its prior cannot be drawn,
        or if it has latents per row; with every problem and its remedy. Nothing is spent.
    ArgumentError, DomainError
        Nothing is spent.
    PrivacyError
        If PyMC draws a prior outside of its bounds, which lie far out in its tail. Nothing is spent.
    BudgetExceeded
        Before the rows are read; the ledger is unchanged.

    Notes
    -----
    **Which resampling.** An index costs β_J R, R the range of one row's log-likelihood over all parameters; k of them
    k times that (√k with δ > 0), and no noise. Noise on all weights costs the same for any number of draws, but is of
    scale ``2 tanh(β_J R / 4) / (weights_share ε)`` beside weights of 1 / particles. So choose ``"range"`` for one draw
    or a few, and ``"laplace"`` for more draws than about half of the particles, or for weighted means over them.

    **When.** Where `OPS` draws exactly it is better: it pays for no path. A path pays where conditionals are all there
    is and the posterior has several modes, which a single chain at its last temperature would not leave. Weights are
    uneven if β_J times the number of rows is large and the path short.

    **Cost.** One transition is one draw from each conditional l: an exponential mechanism of bounded range β_j R_l,
    over temperatures, variables and particles. The weight of a particle is a function of released states and of the
    rows; along an increasing path from 0 one row moves log weights by amounts whose range over particles is β_J R at
    most, so that an index drawn by them is an exponential mechanism of that range, and normalised weights move by
    ``2 tanh(β_J R / 4)`` in L1. The log of the mean weight moves by β_J Δl: Δl is the largest ``|l(x, θ) - l(x',
    θ)|`` under ``replace``, the largest ``|l(x, θ)|`` under ``add_remove``. The prior is never tempered, which
    costs nothing. Each choice is paid for by a grant of the largest range that is found. By rows that is enforced; by
    sums the kernel computes the range at hand, and where it is larger, a draw has so much less of β_J.

    **Guarantee.** Everything in the returned tree is (ε, δ)-differentially private for one row, under
    ``domain.neighbours``, given what the report lists as assumed public; class stepwise: every state of every particle
    is paid for, and no convergence is needed. All draws are the kernel's: those from conjugate distributions are
    float64, all others hardened. Noise is discrete Laplace on integers.

    References
    ----------
    Neal (2001), Annealed importance sampling, doi 10.1023/A:1008923215028; Foulds, Geumlek, Welling, Chaudhuri (2016),
    appendix C.2; bounded range: Dong, Durfee, Rogers (2020), Cesar, Rogers (2021).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     p = pm.Uniform("p", 0.05, 0.95)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1, 0, 1]))
    >>> with model:
    ...     idata = sample_ais(epsilon=1.0, particles=4, temperatures=3, ledger=dp.Ledger(1.0), progressbar=False)
    >>> idata["posterior"]["p"].shape, idata["particles"]["p"].shape, idata.dp.guarantee
    ((1, 1), (4,), 'stepwise')
    """
    check_ledger(ledger)
    budget = Budget(_validate.epsilon(epsilon), delta)
    evidence = _validate.flag("marginal_likelihood", marginal_likelihood)
    by_noise = _validate.choice("resampling", resampling, ("range", "laplace")) == "laplace"
    settings = Settings(
        draws=_validate.many("draws", draws),
        particles=_validate.many("particles", particles),
        path=path_of(temperatures, power),
        resampling=resampling,
        evidence=evidence,
        weights_share=_share("weights_share", weights_share, by_noise, 'resampling="laplace"'),
        evidence_share=_share("evidence_share", evidence_share, evidence, "marginal_likelihood=True"),
        grid=None if grid is None else _validate.many("grid", grid, 2),
    )
    public = public_generator(random_seed)
    _validate.flag("progressbar", progressbar)
    source, domain = given_model(model, domain)
    refuse_released(source)
    refuse_metric(domain or Domain())
    inspection = TemperedGibbs().inspect(source, domain)
    run = Annealing(inspection, settings)
    event = run.price(budget)
    starts = run.starts(public)  # what may fail is tried before anything is charged
    names = ", ".join(str(var.name) for var in run.prior_model.free_RVs)
    idata = None
    try:
        with paid(inspection, budget, event=event, label=f"sample_ais of {names}", ledger=ledger) as payment:
            found = payment.read(lambda: _annealed(run, starts, public, progressbar), holder=run)
            record = payment.noted(_record(run, inspection, budget, event.to_dict()))
            idata = annotate(annealed_groups(found, run), record, {})
        return idata
    except KeyboardInterrupt as error:
        keep(error, idata=idata)
        raise


def _annealed(run: Annealing, starts: dict[str, Array], public: np.random.Generator, shown: bool) -> Annealed:
    """Read the rows, and anneal. Reads private data: the budget must have been charged, for this one chain."""
    run.load()
    token = Claims(1).take(0, run.settings.draws)
    with token.begins(), progress(shown, "annealing", run.settings.particles * len(run.settings.path)) as advance:
        return run.run(starts, public, advance)


def _record(run: Annealing, inspection: Inspection, budget: Budget, event: dict[str, Any]) -> ReleaseRecord:
    described = run.describe()
    return ReleaseRecord(
        epsilon=run.epsilon,
        delta=budget.delta,
        asked=budget.epsilon,
        rest=run.use_of_rest(),
        guarantee="stepwise" if insecure() is None else "none",
        arithmetic="float64" if run.scan.floats else "hardened",
        neighbours=inspection.domain.neighbours,
        noise=described.noise,
        noise_aware=True,
        event=event,
        tables=(),
        sampler=described,
        assumptions=inspection.assumptions,
        left_out=inspection.dropped,
    )


def _share(name: str, value: float | None, wanted: bool, where: str) -> float:
    if not wanted:
        if value is not None:
            raise ArgumentError(
                f"{name}={_validate.shown(value)} is the share of a part that is not released. Leave it out, or "
                f"set {where}."
            )
        return 0.0
    share = SHARES[name] if value is None else _validate.number(name, value)
    if not 0 < share < 1:
        raise ArgumentError(f"{name} must lie in (0, 1), got {share}: the rest of ε is for the path.")
    return share


__all__ = ["sample_ais"]
