"""The trace rebuilt from an allow-list, with its guarantee written into it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from pymc import Model

from pymc_dp import _validate
from pymc_dp._versions import versions
from pymc_dp.errors import BudgetWarning, TraceError
from pymc_dp.inspection.of_context import context_model
from pymc_dp.inspection.rows import Array
from pymc_dp.inspection.weights import PSEUDO_POSTERIOR
from pymc_dp.release.paid import PACKAGE, Paid, keep
from pymc_dp.release.record import ReleaseRecord
from pymc_dp.step_methods.base import ACTIVE, IDENTITY, PrivateStep
from pymc_dp.step_methods.companions import Companions
from pymc_dp.step_methods.funding import Claims
from pymc_dp.step_methods.shown import SPENT
from pymc_dp.step_methods.together import Funded
from pymc_dp.trace.manifest import MADE_WITH, MANIFEST, PRIVACY, RECORD, RELEASED, make_manifest
from pymc_dp.transforms.privatize import VARIABLES, record_of

POSTERIOR_GROUPS = ("posterior", "warmup_posterior")
STATISTICS_GROUPS = ("sample_stats", "warmup_sample_stats")
ROUNDING = 1e-12
"""Of a sum of a few losses."""
TIMINGS = ("perf_counter", "process_time")
ATTRIBUTES = ("creation_library", "inference_library", "inference_library_version", "tuning_steps", "sample_dims")


def scrub(idata: xr.DataTree, model: Model) -> xr.DataTree:
    """Return the safe, annotated trace of a bare ``pm.sample`` on a private model.

    Parameters
    ----------
    idata : xarray.DataTree
        What ``pm.sample`` returned inside the model that ``privatize`` made, or what
        ``pm.sample(step=dp.OPS(epsilon=...))`` and the like returned. It is not changed.
    model : pymc.Model
        That model.

    Returns
    -------
    xarray.DataTree
        ``posterior`` and ``sample_stats`` (and their warm-up groups) without timings, ``released`` and ``privacy``.
        Everything else is left out: predictive samples, log likelihoods. From `model` they can be computed again at no
        cost, and are kept in a file of their own (``to_netcdf``): nothing can check what they were computed from.

    Raises
    ------
    TraceError
        If `model` neither was made by ``privatize`` nor has a funded step, or `idata` was not sampled from it.

    Notes
    -----
    **Guarantee.** That of the release in `model`, see ``privatize``: sampling is post-processing. It rests on `idata`
    being the output of a sampler run on `model`; that its observed data are the release is checked.

    Examples
    --------
    >>> import pymc as pm
    >>> with pm.Model() as plain:
    ...     x = pm.Normal("x")
    >>> scrub(xr.DataTree(), plain)
    Traceback (most recent call last):
    pymc_dp.errors.TraceError: The model was not made by privatize, so nothing says what its trace may show. ...
    """
    _validate.instance("idata", idata, xr.DataTree, "Pass what pm.sample returned.")
    found = record_of(context_model(model))
    if found is None:
        return scrub_sampled(idata, _step_of(idata, model))
    record, tables = found
    if tuple(model.named_vars) != getattr(model, VARIABLES):
        added = [name for name in model.named_vars if name not in getattr(model, VARIABLES)]
        raise TraceError(
            f"The private model was changed after it was made (added: {added}), and what was added may hold rows. "
            "Write these variables into the model before dp.privatize, or compute them from the trace."
        )
    _require_same_release(idata, model, tables)
    names, dims = _allowed(model)
    groups: dict[str, xr.Dataset] = {}
    for group in POSTERIOR_GROUPS:
        if group in idata.children:
            groups[group] = _keep(idata[group].to_dataset(), names, dims)
    for group in STATISTICS_GROUPS:
        if group in idata.children:
            dataset = idata[group].to_dataset()
            groups[group] = _keep(
                dataset, [str(name) for name in dataset.data_vars if not str(name).startswith(TIMINGS)], dims
            )
    if "posterior" not in groups:
        raise TraceError(_no_posterior(idata))
    return annotate(groups, record, tables)


def scrub_sampled(
    idata: xr.DataTree, step: PrivateStep | Funded, *, ended: str = "", payment: Paid | None = None
) -> xr.DataTree:
    """Return the safe, annotated trace of chains that a private step method made.

    Statistics of PyMC's own samplers are left out, where they moved variables on the model without its rows. Where a
    filter has ended a chain before the last draw, all chains are cut at the first such draw. Where Ctrl+C has,
    `ended` says so, and the trace does.
    """
    names, dims = _allowed(step.prior_model)
    groups: dict[str, xr.Dataset] = {}
    for group in POSTERIOR_GROUPS:
        if group in idata.children:
            groups[group] = _keep(idata[group].to_dataset(), names, dims)
    own = set(step.stats_dtypes_shapes)
    for group in STATISTICS_GROUPS:
        others = sorted(set(map(str, idata[group].data_vars)) - own) if group in idata.children else []
        if others and not step.left:
            raise TraceError(
                f"The trace holds statistics of other samplers ({', '.join(others)}), which saw the raw rows: its "
                "states are not what was paid for. Pass private step methods alone."
            )
        if group in idata.children:
            kept_names = [SPENT, ACTIVE, IDENTITY, *step.public_stats]
            groups[group] = _of_all_steps(_keep(idata[group].to_dataset(), kept_names, dims))
    if not any(SPENT in groups.get(name, ()) for name in STATISTICS_GROUPS) or not ("posterior" in groups or ended):
        raise TraceError("The trace was not made by this step: it has no posterior or no epsilon_spent statistic.")
    wanted = groups["posterior"].sizes["draw"] if "posterior" in groups else 0
    lengths = {"sample_stats": "posterior", "warmup_sample_stats": "warmup_posterior"}
    for stats, states in lengths.items():
        if stats in groups:
            kept = int(groups[stats][ACTIVE].values.all(axis=0).sum())
            groups[stats] = groups[stats].drop_vars([ACTIVE, IDENTITY]).isel(draw=slice(kept))
            groups[states] = groups[states].isel(draw=slice(kept))
    notes = [f"The chains were {ended}. All of them were charged, and the budget is spent."] if ended else []
    if wanted and (left := groups["posterior"].sizes["draw"]) < wanted:
        notes.append(
            f"The budget of a chain was spent after {left} of {wanted} draws: its filter ended it, and the trace is "
            "cut there. Shorter steps, fewer draws or tuning steps, or a larger ε would reach the end."
        )
    record = step.record() if payment is None else payment.noted(step.record())
    spent = max(
        (float(groups[name][SPENT].max()) for name in lengths if name in groups and groups[name].sizes["draw"]),
        default=0.0,
    )
    most = step.row_epsilon
    if spent > most * (1 + ROUNDING):
        raise TraceError(
            f"The trace says that ε = {spent:g} was spent, more than the {most:g} of its step: it was not made by this "
            "step, or was changed."
        )
    for name in lengths:
        if name in groups:
            groups[name] = groups[name].assign({SPENT: groups[name][SPENT].clip(max=record.epsilon)})
    if ended and record.sampler is not None:
        said = replace(record.sampler, facts=(*record.sampler.facts, ("interrupted", f"{ended}; all were charged")))
        record = replace(record, sampler=said)
    tree = annotate({name: group for name, group in groups.items() if group.sizes["draw"]}, record, {})
    for note in notes:
        _warn(note, tree)
    return tree


def _warn(text: str, tree: xr.DataTree) -> None:
    """Warn; where warnings are errors, the error keeps the trace, which is paid for."""
    try:
        warnings.warn(text, BudgetWarning, skip_file_prefixes=(PACKAGE,))
    except BudgetWarning as error:
        keep(error, idata=tree)
        raise


def _of_all_steps(statistics: xr.Dataset) -> xr.Dataset:
    """Add up what several steps have spent; one that has ended ends all."""
    if not {SPENT, ACTIVE} <= set(statistics) or statistics[SPENT].ndim == 2:
        return statistics
    of_steps = {name: list(statistics[name].dims[2:]) for name in (SPENT, ACTIVE)}
    return statistics.assign(
        {
            SPENT: statistics[SPENT].sum(of_steps[SPENT]),
            ACTIVE: statistics[ACTIVE].all(of_steps[ACTIVE]),
        }
    )


def _step_of(idata: xr.DataTree, model: Model) -> PrivateStep | Funded:
    """The funded steps of `model` that made a trace: every state carries their numbers."""
    steps = Companions.steps_of(model)
    if not steps:
        raise TraceError(
            "The model was not made by privatize, so nothing says what its trace may show. Sample "
            "dp.privatize(model, epsilon=...), or use dp.sample."
        )
    if "posterior" not in idata.children:
        raise TraceError(_no_posterior(idata))
    statistics = idata["sample_stats"].data_vars if "sample_stats" in idata.children else {}
    seen = set(np.unique(statistics[IDENTITY].values).tolist()) if IDENTITY in statistics else set()
    found = tuple(step for step in steps if step.binding.claims.identity in seen)
    if found and len(found) == len(seen):
        for step in found:
            _require_begun(idata, step.binding.claims)
        if len(found) > 1 or found[0].names is not None:
            _require_all_moved(found, model)
            return Funded(steps=found)
        return found[0]
    raise TraceError(
        "No funded step of this model made this trace. Pass what pm.sample(step=dp...(epsilon=...)) returned inside of "
        "this model."
    )


def _no_posterior(idata: xr.DataTree) -> str:
    """Say what is missing, and what becomes of predictive draws."""
    said = "The trace has no posterior group. Pass what pm.sample returned."
    if any(str(name).endswith("_predictive") for name in idata.children):
        said += (
            " It holds predictive draws: those of a private model are free and need no dp.scrub. Save them in a file "
            "of their own, to_netcdf: nothing can check what they were drawn from."
        )
    return said


def _require_all_moved(steps: Sequence[PrivateStep], model: Model) -> None:
    """Raise unless each free variable was moved by one of the steps."""
    moved = [name for step in steps for name in step.own]
    lost = [str(rv.name) for rv in model.free_RVs if str(rv.name) not in moved]
    if lost or len(set(moved)) < len(moved):
        what = f"None of them moved {', '.join(lost)}" if lost else "Some variables were moved by several of them"
        raise TraceError(
            f"The trace was made by {' and '.join(map(repr, steps))}. {what}, so that PyMC's own samplers may have "
            "seen the raw rows, and nothing says what its states show. Pass steps that together move each one once."
        )


def _require_begun(idata: xr.DataTree, claims: Claims) -> None:
    begun, sizes = claims.taken(), idata["posterior"].sizes
    if sizes["chain"] > len(begun) or any(chain["draws"] < sizes["draw"] for chain in begun):
        raise TraceError("The trace has more states than its step has made: something was added to it.")


def _allowed(model: Model) -> tuple[set[str], set[str]]:
    """Names of the variables that may leave, and of the dims whose labels may."""
    names = {str(var.name) for var in [*model.free_RVs, *model.deterministics]}
    names |= {str(value.name) for rv, value in model.rvs_to_values.items() if rv in model.free_RVs}
    return names, {str(dim) for dim in model.coords}


def annotate(groups: Mapping[str, xr.Dataset], record: ReleaseRecord, tables: Mapping[str, Array]) -> xr.DataTree:
    """Assemble a trace from allowed groups and write what was spent, what was released, and the manifest into it."""
    described = record.to_dict()
    parts = {f"/{name}": dataset for name, dataset in groups.items()}
    if record.tables:
        parts[f"/{RELEASED}"] = released_dataset(record, tables)
    paid = {table.name: table.epsilon for table in record.tables}
    if record.sampler is not None:
        paid[f"{record.sampler.name} of {', '.join(record.sampler.variables)}"] = record.epsilon
    names = np.array(list(paid))
    parts[f"/{PRIVACY}"] = xr.Dataset(
        {"epsilon": ("release", np.array(list(paid.values())))},
        coords={"release": names},
        attrs={
            RECORD: json.dumps(described),
            MADE_WITH: json.dumps(versions()),
            "epsilon": record.epsilon,
            "delta": record.delta,
            "guarantee": record.guarantee,
            **({"posterior": PSEUDO_POSTERIOR} if (record.domain or {}).get("weights") else {}),
        },
    )
    if record.metric is not None:
        parts[f"/{PRIVACY}"].attrs.update(
            metric=record.metric.metric, epsilon_per_unit_of_metric=record.metric.epsilon_per_unit
        )
    tree = xr.DataTree.from_dict(parts)
    tree[PRIVACY].attrs[MANIFEST] = make_manifest(tree)
    return tree


def released_dataset(record: ReleaseRecord, tables: Mapping[str, Array]) -> xr.Dataset:
    """Return the noised tables and the scale of their noise as a dataset."""
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for table in record.tables:
        variables[table.name] = ((table.cell_dim, table.column_dim), tables[table.name])
        if table.scales:
            by_cell = len(table.scales) != len(table.columns)  # of tables that others noised
            dim = table.cell_dim if by_cell else table.column_dim
            variables[f"{table.name}_noise_scale"] = ((dim,), np.array(table.scales))
        coords[table.cell_dim] = np.array(table.cells)
        coords[table.column_dim] = np.array(table.columns)
    return xr.Dataset(variables, coords=coords, attrs={"noise": record.noise})


def _keep(dataset: xr.Dataset, names: Iterable[str], dims: set[str]) -> xr.Dataset:
    """Rebuild a dataset from allowed variables; labels only of dimensions that the private model itself has."""
    allowed = set(names)
    kept = {str(name): (array.dims, array.values) for name, array in dataset.data_vars.items() if str(name) in allowed}
    used = {str(dim) for shape, _ in kept.values() for dim in shape}
    coords = {
        dim: dataset[dim].values for dim in used if dim in dataset.coords and (dim in dims or dim in ("chain", "draw"))
    }
    attributes = {key: value for key, value in dataset.attrs.items() if key in ATTRIBUTES}
    return xr.Dataset(kept, coords=coords, attrs=attributes)


def _require_same_release(idata: xr.DataTree, model: Model, tables: Mapping[str, Array]) -> None:
    observed = idata["observed_data"].to_dataset() if "observed_data" in idata.children else None
    for name in tables:
        held = model.rvs_to_values[model[name]].get_value(borrow=True)
        if observed is None or name not in observed or not np.array_equal(observed[name].values, held):
            raise TraceError(
                "The trace was not sampled from this private model: its observed data do not hold the release of "
                f"{name!r}. Pass what pm.sample returned inside the model that dp.privatize made."
            )
