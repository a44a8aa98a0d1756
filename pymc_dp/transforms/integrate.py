"""Model → new model in which normal latents of single rows are integrated out, so that its rows separate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, toposort
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.integrated import Chosen, at_points, integrated, is_integrated, of_rows
from pymc_dp.inspection.of_context import context_model
from pymc_dp.inspection.row_axis import RowAxis
from pymc_dp.inspection.row_density import ClampedRV, density, per_row, unchecked
from pymc_dp.inspection.rows import array_leaves, rebuild, shape_of, unwrap
from pymc_dp.inspection.schema import dim_length
from pymc_dp.inspection.taint import depends_on, trace_rows
from pymc_dp.transforms.prior_model import replace_variables
from pymc_dp.transforms.truncate import own_size

MOST_POINTS = 1024
"""Of the quadrature, of all latents of a row together."""
WIDE = (
    "Write the table wide, with one row per person: wide = table.pivot(index='person', columns='item', values='y'); "
    "then {name} = pm.Normal({name!r}, dims='person') and pm.Bernoulli('y', logit_p=a * ({name}[:, None] - b), "
    "observed=wide)."
)


def integrate(model: pm.Model | None, latent: str | Sequence[str], *, nodes: int = 21) -> pm.Model:
    """Return a copy of a model in which normal latents of single rows are integrated out.

    A latent per row (an ability, a true value behind a measured one, the excess of a count) is one unknown more for
    every person, and no release can hold these. Without them rows separate, and `dp.Gradients` fits the model.

    Parameters
    ----------
    model : pymc.Model or None
        None: the model of the context. Not changed.
    latent : str, or sequence of str
        Names of free variables with a prior ``pm.Normal``, of shape (n_rows,), or (n_rows, k) for k latents of a row.
        Mean and standard deviation may depend on other free variables and on the columns of the row.
    nodes : int
        Of the quadrature, for each latent: 2 to 100. All latents of a row together may have 1024 points.

    Returns
    -------
    pymc.Model
        Without the latents, and without what is computed from them by ``pm.Deterministic``. All else is as it was:
        names, order, dims, priors, observed arrays, which are shared, neither copied nor read. Random draws of observed
        variables draw the latents again.

    Raises
    ------
    ArgumentError
        For names that are no free variables, other priors than ``pm.Normal``, latents that several rows share or that
        other priors or Potentials depend on, and too many points.

    Notes
    -----
    With points t_k and weights w_k of the Gauss-Hermite rule for the standard normal, and θ_ik = μ_i + σ_i t_k, a row
    counts as ``log Σ_k w_k Π_j p(y_ij | θ_ik)``: j goes over the entries of a row of one array, and over all observed
    variables that depend on the latents. Of several variables, each has the density given those before it, with the
    weights that these leave to the points; the densities add up to that of the row.

    **Approximation.** The rule is laid out by the prior, for all rows alike, and is exact for polynomials of degree
    2 nodes - 1. Where all that a row says of its latent is about normal, and leaves a standard deviation of s prior
    standard deviations, the relative error of its density is about 2 exp(-2 nodes s²): below 0.001 if nodes > 4 / s².
    Integrate with more nodes and compare, on simulated rows. Of a latent that is the mean of a normal variable, and of
    nothing else, none is needed: ``y ~ Normal(θ, τ)`` becomes ``y ~ Normal(μ, √(σ² + τ²))``, which is exact.

    **Guarantee.** None by itself: it transforms a model and reads no row. In the new model a row depends on no other;
    `dp.explain` proves it again, for all that protects rows.

    References
    ----------
    Bock, Aitkin (1981), doi 10.1007/BF02293801 (item response models by quadrature). Naylor, Smith (1982), doi
    10.2307/2347995.

    Examples
    --------
    >>> import pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     rate, spread = pm.Normal("rate", 0, 1), pm.HalfNormal("spread", 1)
    ...     excess = pm.Normal("excess", 0, spread, shape=4)
    ...     y = pm.Poisson("y", pm.math.exp(rate + excess), observed=[0, 3, 1, 9])
    >>> dp.integrate(model, "excess").free_RVs
    [rate, spread]
    """
    model = context_model(model)
    count = _validate.integer("nodes", nodes, 2, 100)
    names = [latent] if isinstance(latent, str) else list(dict.fromkeys(_validate.names("latent", latent)))
    if not names:
        raise ArgumentError(
            "latent must name at least one free variable, got none. Write dp.integrate(model, 'theta')."
        )
    latents = [_latent(model, name) for name in names]
    widths = [_width(model, rv) for rv in latents]
    if count ** sum(widths) > MOST_POINTS:
        raise ArgumentError(
            f"nodes={count} makes {count ** sum(widths)} points for {sum(widths)} latents of a row; there can be "
            f"at most {MOST_POINTS}. Use fewer nodes."
        )
    observed = [rv for rv in model.observed_RVs if depends_on(rv, latents)]
    _check_use(model, latents, observed)
    for rv in observed:
        _check_rows(model, rv, latents)
    rule = _Rule(widths=dict(zip(names, widths, strict=True)), nodes=count, alone=len(observed) == 1)
    return replace_variables(model, {str(rv.name): rule for rv in observed}, without=names)


@dataclass(kw_only=True, eq=False)
class _Rule:
    """Integrates latents out of observed variables, one after the other.

    Attributes
    ----------
    widths : mapping of str to int
        How many latents of a row each free variable has.
    nodes : int
        For each of them.
    alone : bool
        Whether a single observed variable depends on the latents.
    said : Variable or None
        What the variables before say of the points: log-densities, (n_points, n_rows).
    """

    widths: Mapping[str, int]
    nodes: int
    alone: bool = False
    said: Any = None

    def __call__(self, rv: Variable) -> Variable:
        """Return an observed variable without the latents that it depends on."""
        held = {var: str(var.name) for var in ancestors([rv]) if var.name in self.widths}
        if self.alone and _is_mean(rv, list(held)):
            (latent,), spread = held, rv.owner.op.dist_params(rv.owner)[1]
            mean, more = latent.owner.op.dist_params(latent.owner)
            return pm.Normal.dist(mean, pt.sqrt(spread**2 + more**2), size=own_size(rv))
        grid, log_weights = self._grid()
        if self.said is not None:
            log_weights = pt.special.log_softmax(log_weights + self.said, axis=0)
        shared = log_weights.type.broadcastable[1]
        weights = pt.exp(log_weights[:, 0] if shared else log_weights.T)
        place = pm.Categorical.dist(p=weights, size=(own_size(next(iter(held)))[0],))
        drawn = {var: Chosen()(_points(var, grid[name]), place) for var, name in held.items()}
        (given,), _ = rebuild([rv], drawn)
        given.name = None
        new = integrated(given, log_weights, list(drawn.values()))
        value = new.type()
        terms = rebuild([of_rows(at_points(given, value, list(drawn.values())))], {value: new})[0][0]
        self.said = terms if self.said is None else self.said + terms
        return new

    def _grid(self) -> tuple[dict[str, Any], Any]:
        """Return the points of every free variable, (n_points, 1, width), and the logarithms of all weights.

        Numbers, one by one: an array might hold rows.
        """
        points, weights = np.polynomial.hermite_e.hermegauss(self.nodes)
        axes = range(sum(self.widths.values()))
        own, mass = (pt.stack([pt.constant(float(one)) for one in each]) for each in (points, np.log(weights)))

        def along(values: Any) -> list[Any]:
            return [values.dimshuffle([0 if axis == place else "x" for axis in axes]) for place in axes]

        def flat(values: Any) -> Any:
            return values.reshape((-1,)) if len(axes) > 1 else values

        nothing = sum(along(pt.zeros_like(own)))
        full = [flat(one + nothing) if len(axes) > 1 else one for one in along(own)]
        total = flat(sum(along(mass))) - 0.5 * len(axes) * math.log(2 * math.pi)
        found, start = dict[str, Any](), 0
        for name, width in self.widths.items():
            found[name] = pt.stack(full[start : start + width], axis=1)[:, None, :]
            start += width
        return found, total[:, None]


def _is_mean(rv: Variable, latents: Sequence[Variable]) -> bool:
    """Whether an observed variable is normal, with the only latent as its mean, and as nothing else."""
    if not isinstance(rv.owner.op, NormalRV) or rv.type.ndim != 1:
        return False
    mean, spread = rv.owner.op.dist_params(rv.owner)
    return [mean] == list(latents) and not depends_on(spread, latents)


def _points(rv: Variable, grid: Any) -> Any:
    """Return a latent at every point: (n_points, n_rows, ...), one row for all where its prior is the same for all."""
    mean, spread = rv.owner.op.dist_params(rv.owner)
    standard = grid if rv.type.ndim == 2 else grid[:, :, 0]
    return _with_axes(mean, rv.type.ndim) + _with_axes(spread, rv.type.ndim) * standard


def _with_axes(parameter: Any, ndim: int) -> Any:
    return pt.expand_dims(parameter, tuple(range(1 + ndim - parameter.type.ndim)))


def _latent(model: pm.Model, name: str) -> Variable:
    """Return a normal latent by its name; refuse what is none."""
    known = [str(rv.name) for rv in model.free_RVs]
    if name in [rv.name for rv in model.observed_RVs]:
        raise ArgumentError(f"latent: {name!r} is observed. Name what it depends on: {', '.join(known)}.")
    if name in model.named_vars and name not in known:
        own = [one for one in known if depends_on(model[name], [model[one]])]
        raise ArgumentError(
            f"latent: {name!r} is computed from other variables. Name the one among them that has an entry per row: "
            f"{', '.join(own) or 'none is free'}."
        )
    if name not in known:
        raise ArgumentError(
            f"latent: {_validate.shown(name)} is no free variable of the model; these are {', '.join(known) or 'none'}."
            f"{_validate.nearest(name, known)}"
        )
    rv: Variable = model[name]
    op: Any = rv.owner.op
    if not isinstance(op, NormalRV) or model.rvs_to_transforms[rv] is not None:
        kind = getattr(op, "name", None) or type(op).__name__
        what = f"the prior {kind}" if not isinstance(op, NormalRV) else "a transform"
        raise ArgumentError(
            f"{name!r} has {what}, and only latents with a plain pm.Normal prior can be integrated out. Write it as a "
            "function of one: z = pm.Normal('z', dims=...), then for a log-normal pm.math.exp(mu + sigma * z), for "
            "correlated ones z @ chol.T; integrate 'z'."
        )
    if rv.type.ndim not in (1, 2):
        raise ArgumentError(
            f"{name!r} has {rv.type.ndim} axes, so it is no latent of rows. What all rows share stays in the model; "
            "one of rows has the shape (n_rows,), or (n_rows, k)."
        )
    return rv


def _lengths(model: pm.Model, rv: Variable) -> list[int | None]:
    dims = model.named_vars_to_dims.get(str(rv.name)) or (None,) * rv.type.ndim
    return [
        length if length is not None or dim is None else dim_length(model.dim_lengths[dim])
        for dim, length in zip(dims, rv.type.shape, strict=True)
    ]


def _width(model: pm.Model, rv: Variable) -> int:
    """Return how many latents a row has."""
    width = 1 if rv.type.ndim == 1 else _lengths(model, rv)[1]
    if width is None:
        raise ArgumentError(f"the number of latents of a row is not known of {rv.name!r}. Give it dims= or shape=.")
    return width


def _check_use(model: pm.Model, latents: Sequence[Variable], observed: Sequence[Variable]) -> None:
    """Refuse latents that anything but the likelihoods of rows depends on."""
    for rv in latents:
        for other in model.free_RVs:
            if other is not rv and depends_on(other, [rv]):
                raise ArgumentError(
                    f"the prior of {other.name!r} depends on {rv.name!r}. Write {other.name!r} as computed from "
                    "independent normal variables, and integrate all of these in one call."
                )
        for potential in model.potentials:
            if depends_on(potential, [rv]):
                raise ArgumentError(
                    f"the Potential {potential.name!r} depends on {rv.name!r}. Write it as a likelihood of a column."
                )
        if not any(depends_on(item, [rv]) for item in observed):
            raise ArgumentError(f"no observed variable depends on {rv.name!r}. Take it out of the model.")
    for rv in observed:
        if isinstance(rv.owner.op, ClampedRV) or is_integrated(rv):
            done = (
                "is clamped. Integrate first, then dp.clamp"
                if not is_integrated(rv)
                else ("has had latents integrated out. Name all of them in one call: dp.integrate(model, ['u', 'v'])")
            )
            raise ArgumentError(f"{rv.name!r} {done}.")


def _check_rows(model: pm.Model, rv: Variable, latents: Sequence[Variable]) -> None:
    """Refuse a likelihood of which an entry depends on the latents of more than its own row."""
    name = str(next(one.name for one in latents if depends_on(rv, [one])))
    wide = WIDE.format(name=name)
    leaf = unwrap(model.rvs_to_values[rv])
    if rv.type.ndim not in (1, 2) or not isinstance(leaf, Constant | SharedVariable):
        raise ArgumentError(f"{rv.name!r} must observe an array with rows along axis 0. Pass it as observed=.")
    n_rows = shape_of(leaf)[0]
    for one in latents:
        if depends_on(rv, [one]) and _lengths(model, one)[0] not in (None, n_rows):
            raise ArgumentError(f"{one.name!r} does not have one entry per row of {rv.name!r}. {wide}")
    stand_ins = {one: pt.TensorType(one.type.dtype, (None, *one.type.shape[1:]))(one.name) for one in latents}
    value = rv.type()
    axis = RowAxis(known={value: True, **dict.fromkeys(stand_ins.values(), True)}, n_rows=n_rows)
    others = [other for other in model.observed_RVs if other is not rv]
    stop = [*model.free_RVs, *others, *stand_ins.values(), value]
    try:
        (plain,), _ = rebuild([rv], stand_ins)
        terms = unchecked(per_row(density(plain, value), axis))
    except NotImplementedError:
        raise ArgumentError(f"PyMC has no log-density for {rv.name!r}. Use a distribution with one.") from None
    rows = axis.among([terms], stop)
    levels = {leaf: 0 for leaf in array_leaves([terms], stop) if leaf in rows}
    known = {**dict.fromkeys(model.free_RVs), **dict.fromkeys(others, 0), **dict.fromkeys(stand_ins.values(), 0)}
    flow = trace_rows([terms], {**known, **levels, value: 0})
    indexed = [node.inputs[0] for node in toposort([terms]) if isinstance(node.op, AdvancedSubtensor)]
    if any(depends_on(var, list(stand_ins.values())) for var in indexed):
        raise ArgumentError(f"{name!r} is indexed by a column, so several rows share an entry. {wide}")
    if flow.problems or flow.axes[terms] != 0:
        why = flow.problems[0] if flow.problems else "its terms do not vary over rows along axis 0"
        raise ArgumentError(
            f"an entry of {rv.name!r} is not known to depend on the latents of its own row alone: {why}. Combine them "
            "elementwise, or by sums along other axes; name all latents of rows in one call."
        )


__all__ = ["MOST_POINTS", "integrate"]
