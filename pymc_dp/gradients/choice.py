"""``dp.Gradients``: how noised gradients are released."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, override

from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import Budget, Ledger
from pymc_dp.domain import Domain
from pymc_dp.gradients.schedule import require_momentum
from pymc_dp.rows.stored import StoredRows
from pymc_dp.transforms.privatize import OtherRelease

NAME = "gradients"
"""Kind of a release, in records, and the name of its table."""


@dataclass(frozen=True)
class Gradients(OtherRelease):
    """Release noised sums of gradients and curvatures: for any differentiable likelihood of independent rows.

    Parameters
    ----------
    steps : int
        Gradients that are released, each of them of all rows; at least 10.
    momentum_steps : int
        Gradients of a descent with momentum before these, for likelihoods that are not log-concave, such as those of
        neural nets: 0, or at least 20. 150 is a good number for a small net. What is released then is **local**, and
        not calibrated: see Notes.
    columns : mapping of str to array or PyMC distribution, optional
        How private columns that no likelihood observes are distributed, as far as that is public: made-up rows are
        drawn from it, by which the limits of what a row adds are chosen. Default: evenly between their bounds. A wrong
        distribution costs accuracy, and may make intervals too narrow or too wide; never privacy.
    conservative : bool
        Take the variance of the scores for as large as their curvature, which it never exceeds: wider intervals.

    Raises
    ------
    ArgumentError

    Notes
    -----
    The rows may be outside of the model: ``rows=`` of ``dp.sample`` and ``dp.privatize`` takes memory-mapped arrays or
    ``dp.Parquet(...)``. They are read once for every gradient, in chunks, on all cores; the release is that of the same
    rows in the model, to the last digit, whatever the chunks.

    **With momentum.** Four tenths of the budget pay for a descent from a public random draw of the prior, whose mean is
    a saddle of a neural net. Its limit and its rate are chosen on made-up rows. The walk goes on from its end within a
    trust region, a normal a fifth as wide as the prior. The private model is the priors as they are, times the
    quadratic where the walk has ended, times such a trust region around there: the quadratic holds nowhere else, and a
    prior with mean 0 would pull all that rows say little about out of its reach. This is one mode of several, a local
    approximation. It predicts; no coverage of intervals of single parameters is claimed.

    Examples
    --------
    >>> Gradients(steps=100)
    Gradients(steps=100, columns=None, conservative=False, momentum_steps=0)
    """

    steps: int = 60
    columns: Mapping[str, Any] | None = None
    conservative: bool = False
    momentum_steps: int = 0

    def __post_init__(self) -> None:
        _validate.many("steps", self.steps, 10)
        _validate.flag("conservative", self.conservative)
        require_momentum(self.momentum_steps)
        if self.columns is not None:
            _validate.mapping("columns", self.columns)

    @property
    def local(self) -> bool:
        """Whether what is released is about one mode of several, so that no interval is called calibrated."""
        return self.momentum_steps > 0

    @override
    def make_private(
        self,
        model: Model,
        domain: Domain | None,
        budget: Budget,
        *,
        ledger: Ledger | None,
        check: Callable[[Model], None] | None = None,
        progressbar: bool = False,
        rows: StoredRows | None = None,
    ) -> Model:
        """Return a private model: the same priors, and what was released in place of the rows.

        Parameters
        ----------
        model : pymc.Model
        domain : Domain or None
        budget : Budget
            With δ > 0.
        ledger : Ledger or None
        check : callable, optional
            Sees the model without its rows before anything is charged.
        progressbar : bool
            Show how many passes over the rows were made, and the ε of what they released.
        rows : StoredRows, optional
            The table, where that of the model are dummies. It is read once for every gradient.

        Notes
        -----
        **Guarantee.** (ε, δ)-differential privacy for one row under the domain's neighbours: `momentum_steps` + `steps`
        + 4 releases of sums of whole numbers, of which a row's are of bounded norm, enforced on the whole numbers
        themselves, with discrete Gaussian noise of scales that are fixed in advance; where each gradient is taken
        depends on those before it. Class exact, arithmetic hardened: no proof about a density and no float is relied
        on. Everything else is computed from what was released and from public numbers.

        References
        ----------
        Künsch, Stefanski, Carroll (1989), doi 10.1080/01621459.1989.10478796; Canonne, Kamath, Steinke (2020), doi
        10.29012/jpc.784.
        """
        from pymc_dp.gradients.fit import fitted

        return fitted(self, model, domain, budget, ledger=ledger, check=check, progressbar=progressbar, rows=rows)


__all__ = ["NAME", "Gradients"]
