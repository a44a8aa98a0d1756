"""Why rows depend on each other, each cause said once: latents of rows, processes over rows, time series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pymc.distributions import timeseries
from pytensor.graph.basic import Constant, Variable

from pymc_dp.inspection.findings import Findings
from pymc_dp.inspection.rows import array_leaves, shape_of, unwrap
from pymc_dp.inspection.taint import PER_ROW, RowFlow, depends_on, trace_rows

SERIES = (
    timeseries.RandomWalkRV,
    timeseries.AutoRegressiveRV,
    timeseries.GARCH11RV,
    timeseries.EulerMaruyamaRV,
)
TIMES = "Time series of rows are not supported. One over public times is: level[month], with a column of months."
CELLS = (
    "Give the process public cells, and rows a column of their cell: grid = pm.Data('grid', np.linspace(low, high, "
    "20)[:, None]); f = gp.prior('f', X=grid); f[cell]; dp.Domain(public=['grid'])."
)
SHARED = "Let rows share it: index it by a column with a few public levels, theta[group]."


def check_series(findings: Findings) -> None:
    """Refuse what is observed as one series or one process over all rows; nothing else is said of the model then."""
    for rv in findings.model.observed_RVs:
        op: Any = rv.owner.op
        if isinstance(op, SERIES):
            findings.cause(rv.name, "it is a time series, each value of which depends on those before it", TIMES)
        elif getattr(op, "name", None) == "multivariate_normal" and rv.type.ndim == 1:
            what = "it is one row alone (of the likelihood MvNormal), so there is no axis that counts rows"
            findings.cause(rv.name, what, CELLS)
    findings.settled |= bool(findings.problems) and all(one.remedy in (TIMES, CELLS) for one in findings.problems)


def refuse_latents(
    findings: Findings,
    rv: Variable,
    ends: Sequence[Variable],
    levels: Mapping[Variable, int | None],
    stands: Mapping[Variable, Variable],
    texts: Sequence[str],
) -> bool:
    """Say which free variables have an entry per row, where problems come from these; return whether there are any.

    Parameters
    ----------
    findings : Findings
    rv : Variable
        The observed variable.
    ends : sequence of Variable
        Parameters, or its density.
    levels : mapping
        Where rows vary, as `trace_rows` takes it.
    stands : mapping of Variable to Variable
        What stands for free variables in `ends`, and these.
    texts : sequence of str
        What is in the way of a proof that rows are kept apart.
    """
    if not any(PER_ROW in text for text in texts):
        return False
    found = {stand: free for stand, free in stands.items() if _of_rows(findings, stand, free) and _any(ends, stand)}
    flow = trace_rows(ends, {**levels, **dict.fromkeys(found, 0)})
    alone = trace_rows(ends, {**dict.fromkeys(levels), **dict.fromkeys(found, 0)})
    mixed = any(PER_ROW not in text for text in alone.problems)
    for free in found.values():
        if isinstance(free.owner.op, SERIES):
            findings.cause(free.name, f"it is a time series over the rows ({PER_ROW})", TIMES)
        elif mixed:
            findings.cause(free.name, f"it is a process over the rows, which depend on each other ({PER_ROW})", CELLS)
        else:
            latent_of_rows(findings, free)
    if found and not (mixed or any(isinstance(free.owner.op, SERIES) for free in found.values())):
        _refuse_nameless(findings, rv, levels, flow, found.values())
    return bool(found)


def _refuse_nameless(
    findings: Findings, rv: Variable, levels: Mapping[Variable, int | None], flow: RowFlow, latents: Iterable[Variable]
) -> None:
    """Note arrays without a name that a likelihood, or the prior of its latents, reads as numbers."""
    indices = {unwrap(use.index) for use in flow.index_uses}
    held = {leaf for leaf, axis in levels.items() if axis == 0 and isinstance(leaf, Constant)} - indices
    if findings.domain.neighbours == "replace":
        leaves = array_leaves([var for free in latents for var in free.owner.inputs], findings.model.free_RVs)
        held |= {leaf for leaf in leaves if shape_of(leaf)[0] == findings.n_rows}
    held = {leaf for leaf in held - set(findings.data_of.values()) if not leaf.name}
    if held:
        findings.without_name(str(rv.name), held)


def latent_of_rows(findings: Findings, free: Variable) -> None:
    """Refuse a free variable with an entry per row, with what to write for its prior and the likelihoods it is in."""
    normal, discrete = getattr(free.owner.op, "name", None) == "normal", not free.type.dtype.startswith("float")
    observed = [rv for rv in findings.model.observed_RVs if depends_on(rv, [free])]
    kinds = {(str(getattr(rv.owner.op, "name", None)), rv.type.ndim) for rv in observed}
    way_out = f"Integrate it out before the release: model = dp.integrate(model, {free.name!r})." if normal else SHARED
    if normal and kinds == {("normal", 2)}:
        way_out = "Write it into the covariance of a row: pm.MvNormal('Y', mu, cov=W.T @ W + sigma**2 * pt.eye(k))."
    if discrete:
        way_out = "Sum it out: pm.Mixture('y', w=p, comp_dists=pm.Normal.dist(mu, sigma), observed=y), or the like."
    if getattr(free.owner.op, "name", None) == "beta" and kinds == {("binomial", 1)}:
        name = observed[0].name
        way_out = f"Write it into the likelihood: pm.BetaBinomial({name!r}, n=n, alpha=alpha, beta=beta, observed=...)."
    if getattr(free.owner.op, "name", None) == "gamma" and kinds == {("poisson", 1)}:
        name = observed[0].name
        way_out = (
            f"Write it into the likelihood, if {name!r} has the mean m * {free.name} and {free.name} is Gamma(alpha, "
            f"beta): pm.NegativeBinomial({name!r}, mu=m * alpha / beta, alpha=alpha, observed=...)."
        )
    findings.cause(free.name, f"it has one entry per row ({PER_ROW})", way_out)


def _of_rows(findings: Findings, stand: Variable, free: Variable) -> bool:
    dims = findings.model.named_vars_to_dims.get(free.name or "") or ()
    if dims and dims[0] in findings.row_dims:
        return True
    long = stand.type.ndim > 0 and stand.type.shape[0] == findings.n_rows > 1
    return findings.domain.neighbours == "replace" and long


def _any(ends: Sequence[Variable], stand: Variable) -> bool:
    return any(depends_on(end, [stand]) for end in ends)
