"""``dp.privatize``: model in, model out; and the one release, of sums or of gradients, that ``dp.sample`` makes too."""

from __future__ import annotations

from collections.abc import Callable

from pymc import Model

from pymc_dp import _validate
from pymc_dp._compiling import says_when_it_compiles
from pymc_dp.accounting import Budget, Ledger
from pymc_dp.advice.gradients import default_release, with_gradients
from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.inspection.findings import Inspection
from pymc_dp.inspection.given import given_model
from pymc_dp.inspection.interpreted import shared
from pymc_dp.release.statistics import Statistics
from pymc_dp.release.tables import ReleasePlan
from pymc_dp.rows.stored import Rows, StoredRows, stored_rows
from pymc_dp.transforms.privatize import OtherRelease, make_otherwise, make_private, mark_chosen
from pymc_dp.transforms.trial import Trial

Check = Callable[[Model, tuple[Inspection, ReleasePlan] | None], None]


@says_when_it_compiles
def privatize(
    model: Model | None = None,
    *,
    epsilon: float,
    delta: float = 0.0,
    domain: Domain | None = None,
    statistics: Statistics | OtherRelease | None = None,
    ledger: Ledger | None = None,
    label: str | None = None,
    rows: Rows | None = None,
    progressbar: bool = True,
) -> Model:
    """Replace the observed rows of a model by noised sufficient statistics, or by noised gradients.

    Parameters
    ----------
    model : pymc.Model or bambi.Model, optional
        Defaults to the model of the context. It is not changed.
    epsilon : float
        Privacy loss of the release, > 0.
    delta : float
        Failure probability; 0 for Laplace noise, which uses none, > 0 for Gaussian noise and for noised gradients.
    domain : Domain, optional
        What is public about a row. Defaults to ``Domain()``.
    statistics : Statistics or Gradients, optional
        Laplace or Gaussian noise, noise-aware (default) or plug-in, the split of the budget, bins of histograms, and
        mechanisms for networks. ``dp.Gradients()`` releases noised gradients instead, for likelihoods without few sums.
        Default: as in ``dp.sample``, see *What is released* there.
    ledger : Ledger, optional
        Charged before the rows are read.
    label : str, optional
        What it is paid for, in your words and public: in the entry of the ledger, the record, the report and
        `dp.plots.budget`. Default: what is released, of which variables.
    rows : mapping of str to array, Parquet or Table, optional
        The table, of any length, where the model holds a few dummy rows of the same dtypes: NumPy arrays
        (``np.load(..., mmap_mode="r")``) by the names of ``pm.Data`` and observed variables, ``dp.Parquet(...)``, or
        ``dp.Table(...)`` of a database or a lazy frame. Sums are those of the same rows in the model to the last digit:
        of blocks that are read once, or made inside the engine.
    progressbar : bool
        Show how many rows of a table beside the model were read, where their number is public, or how many of the
        passes of noised gradients were made; and say so where compiling takes long. Nothing of it depends on a value.

    Returns
    -------
    pymc.Model
        The same free variables, in the same order, with the same dims and transforms; more than two sums with Laplace
        noise, and two in more than two cells, bring the variances of their noise, ``<name>_noise_variance``, and
        regressions on private predictors bring what is unknown about these, ``<name>_covariates`` and
        ``<name>_shares``. Each observed variable keeps its name (those that ``dp.networks.FourierUpdates`` releases
        together become one, ``network``) and holds the released table, of shape (cells, statistics), as its observed
        value. It has a density and random draws, so prior and posterior predictive sampling and LOO *of the release*
        work. No row, no row label and nothing computed from rows is in it: sample it as long as you like, with any
        sampler.

    Raises
    ------
    UnsupportedModelError
        With every problem found and its remedy; nothing is spent.
    DomainError, ArgumentError
        For contradictions in the arguments; nothing is spent.
    BudgetExceeded
        Before the rows are read.

    Notes
    -----
    **Guarantee.** The returned model is a function of one release that is (ε, δ)-differentially private for one row
    of the table, under ``domain.neighbours``; class exact, arithmetic hardened (integer sums on a public grid,
    discrete noise by OpenDP). It holds given what ``explain`` lists as assumed public. Running times and the
    memory of this process are not covered. Ctrl+C waits until the release is made, which is then in the attribute
    ``private_model`` of the error; a second one ends the call, and what was charged is lost.

    A linear regression on continuous columns is released as sums of products of its columns. At δ = 0 Bernoulli and
    Poisson regressions are too, with a polynomial in place of the likelihood. What is approximate is stated in
    ``approximations`` of the record, the report and ``idata.dp.approximations``.

    Under ``Domain(metric=ρ)`` ε is per unit of ρ and the noise is scaled to how far sums move per unit: of counts, of
    values, of values with their squares, Laplace noise only. ρ is that of values as they are used, clamped and rounded
    to the grid of their sums; the report names its step.

    References
    ----------
    Foulds, Geumlek, Welling, Chaudhuri (2016), section 3.2 (release); Bernstein, Sheldon (2018), doi
    10.48550/arXiv.1809.02188 (noise-aware inference by integrating out exact sums), and (2019), doi
    10.48550/arXiv.1910.13879 (regression); Huggins, Adams, Broderick (2017), PASS-GLM (polynomial statistics).

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> with pm.Model() as model:
    ...     p = pm.Beta("p", 1, 1)
    ...     y = pm.Bernoulli("y", p, observed=np.array([0, 1, 1, 0, 1]))
    >>> private = privatize(model, epsilon=1.0)
    >>> [var.name for var in private.free_RVs], private.named_vars_to_dims["y"]
    (['p'], ('y_cell', 'y_statistic'))
    """
    shown, stored = _validate.flag("progressbar", progressbar), stored_rows(rows)
    source, domain = given_model(model, domain)
    return release_once(
        source,
        domain,
        epsilon=epsilon,
        delta=delta,
        statistics=statistics,
        ledger=ledger,
        label=checked_label(label),
        rows=stored,
        trial=Trial(),
        progressbar=shown,
    )


def checked_label(label: object) -> str:
    """Return what a user says that a release is paid for; an empty text where that was left out."""
    return "" if label is None else _validate.text("label", label)


@shared()
def release_once(
    source: Model,
    domain: Domain | None,
    *,
    epsilon: float,
    delta: float,
    statistics: Statistics | OtherRelease | None,
    ledger: Ledger | None,
    label: str,
    rows: StoredRows | None,
    trial: Trial | None,
    check: Check | None = None,
    progressbar: bool = False,
) -> Model:
    """Return a private model of what `statistics` says, or, where it says nothing, of what is best for the model.

    Parameters
    ----------
    source : pymc.Model
    label : str
        Of the user; empty for what is released.
    rows : StoredRows or None
    trial : Trial or None
        Of the private model, where exact sums are released.
    check : callable, optional
        Sees the model without its rows before anything is charged; with exact sums, what is planned too.
    progressbar : bool
        Of noised gradients, and of rows of a table beside the model.
    """
    why = ""
    if statistics is None:
        budget = Budget(_validate.epsilon(epsilon), delta)
        default = default_release(source, domain, budget, rows)
        statistics, delta, why = default.statistics, default.delta, default.why
    check = check or (lambda prior_model, planned: None)
    if isinstance(statistics, OtherRelease):
        private = make_otherwise(
            statistics,
            source,
            domain,
            epsilon=epsilon,
            delta=delta,
            ledger=ledger,
            label=label,
            check=lambda prior_model: check(prior_model, None),
            progressbar=progressbar,
            rows=rows,
        )
    else:
        try:
            private = make_private(
                source,
                domain,
                epsilon=epsilon,
                delta=delta,
                statistics=statistics,
                ledger=ledger,
                label=label,
                check=lambda inspection, plan, prior_model: check(prior_model, (inspection, plan)),
                trial=trial,
                progressbar=progressbar,
                rows=rows,
            )
        except UnsupportedModelError as error:
            if not why:
                raise
            raise with_gradients(error, source, domain, rows) from None
    if why:
        mark_chosen(private, why)
    return private


__all__ = ["checked_label", "privatize", "release_once"]
