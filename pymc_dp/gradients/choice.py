"""``dp.Gradients``: how noised gradients are released.

What noised gradients would come to for a model, before anything is compiled, read or spent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from os import PathLike
from typing import Any, override

from pymc import Model

from pymc_dp import _validate
from pymc_dp.accounting import Budget, Ledger, require_ledger_delta
from pymc_dp.accounting.calibrate import mu_for
from pymc_dp.domain import Domain
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.gradients.schedule import STAGES, require_momentum
from pymc_dp.inspection.findings import Inspected
from pymc_dp.rows.passes import with_stored
from pymc_dp.rows.stored import StoredRows
from pymc_dp.simulation.columns import undeclared
from pymc_dp.simulation.prior import not_drawn
from pymc_dp.transforms.prior_model import shared_prior_model
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
    trust_model : bool
        Assume that the model is right: scores are clipped near the root mean square that the model expects. Intervals
        of small tables are narrower. If the model is wrong, as it mostly is on real tables, estimates are biased, and
        the verdict sees large misfits only.
    robust : bool
        Release the variance of the scores too, for 8% of the budget. Intervals then allow for a wrong model (sandwich).
        For at most 200 parameters of the likelihood.
    conservative : bool
        With `trust_model`, take the variance of the scores for as large as their curvature, which it never exceeds:
        wider intervals.
    scratch : path, optional
        Folder for the clamped copy of the rows of a ``dp.Table``, or of persons (``Domain(unit=...)``), which no other
        user can read. The copy goes when the release is made; a process that is killed leaves it behind. By default the
        folder of ``tempfile``. Neither shown nor compared: it is about a machine, not about the release.

    Raises
    ------
    ArgumentError
        Where rows are read, before the charge: if `scratch` has too little room. Room is asked for all rows. Where
        their number is private, it is asked for ``n_max`` rows, or ``n_max`` persons with ``max_rows`` rows each.

    Notes
    -----
    The rows may be outside of the model: ``rows=`` of ``dp.sample`` and ``dp.privatize`` takes memory-mapped arrays or
    ``dp.Parquet(...)``, read once for every gradient, in chunks, on all cores, or ``dp.Table(...)``, read once, into a
    private copy in files (`scratch`). The release is that of the same rows in the model, to the last digit, whatever
    the chunks.

    **What it aims at** is the posterior of the same clamped rows without privacy, also where the model is wrong. A
    limit near what the model expects would lead to another estimate, for it cuts off what the model calls unlikely. So
    before the last stage a histogram of the norms of scores is released, and the limit is chosen such that next to
    nothing is clipped. The bias that is left is estimated from the histogram, and widens the intervals. It is mostly
    about half of the noise. That is no bound: rows too few to rise above the noise of the histogram are not seen, and
    of very heavy tails more is clipped off than it shows.

    Besides gradients and curvatures, three more sums are released. The means and squares of private columns with bounds
    make simulated rows resemble the table. The histogram sets the limit. Counts of large residuals, minus those that
    the model expects, serve the verdict (``idata.dp.verdict``).

    **With weights** (``Domain(weights=...)``) a score is clipped first, by limits that do not see the weight, and then
    weighed. The sum of the weights is released too, by which limits are chosen, and, where the walk has ended, the sum
    of the outer products of weighted scores: the variance of sampling, which stands where the model's would. The
    posterior of a flat prior has the covariance H⁻¹ (J + V) H⁻¹, with V the noise on the scores.

    **With momentum.** Four tenths of the budget pay for a descent from a public random draw of the prior, whose mean is
    a saddle of a neural net. Its limit and its rate are chosen on made-up rows. The walk goes on from its end within a
    trust region, a normal a fifth as wide as the prior. The private model is the priors as they are, times the
    quadratic where the walk has ended, times such a trust region around there: the quadratic holds nowhere else, and a
    prior with mean 0 would pull all that rows say little about out of its reach. This is one mode of several, a local
    approximation. It predicts; no coverage of intervals of single parameters is claimed.

    Examples
    --------
    >>> Gradients(steps=100)
    Gradients(steps=100, columns=None, conservative=False, momentum_steps=0, trust_model=False, robust=False)
    """

    steps: int = 60
    columns: Mapping[str, Any] | None = None
    conservative: bool = False
    momentum_steps: int = 0
    trust_model: bool = False
    robust: bool = False
    scratch: str | PathLike[str] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        _validate.many("steps", self.steps, 10)
        for name in ("conservative", "trust_model", "robust"):
            _validate.flag(name, getattr(self, name))
        require_momentum(self.momentum_steps)
        if self.columns is not None:
            _validate.mapping("columns", self.columns)
        if self.scratch is not None:
            _validate.path("scratch", self.scratch)

    @property
    def local(self) -> bool:
        """Whether what is released is about one mode of several, so that no interval is called calibrated."""
        return self.momentum_steps > 0

    @property
    def trusts(self) -> bool:
        """Whether limits are those of rows that are of the model."""
        return self.trust_model or self.local

    @override
    def make_private(
        self,
        model: Model,
        domain: Domain | None,
        budget: Budget,
        *,
        ledger: Ledger | None,
        label: str = "",
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
        label : str
            What it is paid for, in the ledger and the record.
        check : callable, optional
            Sees the model without its rows before anything is charged.
        progressbar : bool
            Show how many passes over the rows were made, and the ε of what they released.
        rows : StoredRows, optional
            The table, where that of the model are dummies. It is read once for every gradient.

        Notes
        -----
        **Guarantee.** (ε, δ)-differential privacy for one row under the domain's neighbours: `momentum_steps` + `steps`
        gradients, 4 curvatures, moments of columns, a histogram of norms, a check of the fit, and, where they are asked
        for, squares of scores and the sum of weights. All are sums of whole numbers, of which a row's are of bounded
        norm, enforced on the whole numbers themselves, with discrete Gaussian noise of scales that are fixed in
        advance; where each gradient is taken depends on those before it. Class exact, arithmetic hardened: no proof
        about a density and no float is relied on. Everything else is computed from what was released and from public
        numbers.

        References
        ----------
        Künsch, Stefanski, Carroll (1989), doi 10.1080/01621459.1989.10478796; Canonne, Kamath, Steinke (2020), doi
        10.29012/jpc.784.
        """
        from pymc_dp.gradients.fit import fitted

        require_ledger_delta(ledger, budget.delta)
        asked: dict[str, Any] = {"ledger": ledger, "label": label, "progressbar": progressbar}
        return fitted(self, model, domain, budget, check=check, rows=rows, **asked)


LAST_SHARE = STAGES[-1][1]
"""Of ρ, what the gradients of the last stage get."""
CLIPPED, CLIPPING, COORDINATES = 2.5, 1.1, 2.2
"""C over the root mean square of scores, as rows that are of a model have it; what clipping adds to the variance, and
what is lost since coordinates and curvatures are noised: measured."""


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What can be said about ``dp.Gradients()`` for a model without compiling anything.

    Nothing in it depends on a private value.

    Attributes
    ----------
    problems : tuple of Problem
        Why they do not fit, each with its remedy; empty where they do.
    parts : tuple of (str, int)
        Names of the parameters of the likelihood, and how many numbers each of them has.
    n_rows : int
        Number of rows, or the public bound on it; of persons, where ε protects these.
    neighbours : {"replace", "add_remove"}
    weights : mapping of str to str
        By which columns rows are weighed.
    layered : bool
        Whether parameters multiply, as matrices, what depends on other parameters and rows, as the layers of a net do:
        then the log-likelihood has several modes, and the prior's mean may be a saddle.
    """

    problems: tuple[Problem, ...]
    parts: tuple[tuple[str, int], ...]
    n_rows: int
    neighbours: str
    weights: Mapping[str, str] = field(default_factory=dict)
    layered: bool = False

    @classmethod
    def of(cls, found: Inspected, n_rows: int, stored: StoredRows | None = None) -> Outlook:
        """Look at a model, whose rows are dummies where there are `stored` ones. Reads no private value."""
        domain = found.domain
        parts, problems, layered = _looked_at(found, stored)
        return cls(
            problems=problems,
            parts=parts,
            n_rows=domain.n_max or n_rows,
            neighbours=domain.neighbours,
            weights=dict(domain.weights),
            layered=layered,
        )

    @property
    def fits(self) -> bool:
        """Whether gradients can be released of the model, given a δ."""
        return not self.problems

    @property
    def size(self) -> int:
        """Number of parameters d."""
        return sum(size for _, size in self.parts)

    def width_ratio(self, budget: Budget) -> float:
        """Return the predicted width of intervals over that without privacy; see `width_ratio`."""
        return width_ratio(self.size, self.n_rows, budget, self.neighbours)


PER_UNIT = Problem(
    where="domain",
    what="noised gradients are accounted for whole rows, not per unit of a metric",
    remedy="Leave metric= out, or release exact sums.",
)


def _looked_at(
    found: Inspected, stored: StoredRows | None
) -> tuple[tuple[tuple[str, int], ...], tuple[Problem, ...], bool]:
    from pymc_dp.gradients.interface import interface_in, layered  # Numba, which most users never need

    if found.domain.metric is not None:
        return (), (PER_UNIT,), False
    try:
        interface = interface_in(found.rows)
    except UnsupportedModelError as error:
        loose = [] if found.rows.problems else undeclared(found.rows, {}, "dp.Gradients")
        return (), tuple(dict.fromkeys([*error.problems, *loose])), False
    inspection = interface.inspection
    misfits = () if stored is None else with_stored(inspection, stored).problems
    problems = (*misfits, *not_drawn(shared_prior_model(inspection)), *undeclared(inspection, {}, "dp.Gradients"))
    return tuple((part.name, part.size) for part in interface.parts), problems, layered(interface)


def width_ratio(dimension: int, n_rows: int, budget: Budget, neighbours: str) -> float:
    """Return about how much wider intervals are than without privacy, by formula.

    Parameters
    ----------
    dimension : int
        Number of parameters d of the likelihood.
    n_rows : int
    budget : Budget
        With δ > 0.
    neighbours : {"replace", "add_remove"}

    Notes
    -----
    In coordinates in which the curvature of n rows is n times the unit matrix, scores have a root mean square norm of
    √d and are clipped to C, about `CLIPPED` √d: more where rows have heavy tails. The gradients of the last stage, with
    a share s = `LAST_SHARE` of what the whole budget buys (μ, as in Gaussian differential privacy), have the noise of
    one gradient with variance V = (2 C)² / (s μ²), where a row is replaced; C² / (s μ²) where one, or a person, comes
    or goes. The variance of the scores themselves is n. Clipping makes the variance `CLIPPING` times as large, noised
    curvatures the part of V `COORDINATES` times: so it came out for logistic, linear and Poisson regressions that are
    not saturated. No prior is counted.

    Examples
    --------
    >>> round(width_ratio(5, 5000, Budget(1.0, 1e-5), "replace"), 2)
    1.57
    """
    clip = CLIPPED * (2 if neighbours == "replace" else 1)
    variance = clip**2 * dimension / (LAST_SHARE * mu_for(budget.epsilon, budget.delta) ** 2)
    return sqrt(CLIPPING + COORDINATES * variance / max(n_rows, 1))


__all__ = ["NAME", "Gradients", "Outlook", "width_ratio"]
