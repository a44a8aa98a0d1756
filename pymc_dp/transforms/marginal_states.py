"""Private hidden Markov models with their states summed out, and the states drawn again afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dp import _validate
from pymc_dp._random import public_generator
from pymc_dp.errors import ArgumentError, Problem, UnsupportedModelError
from pymc_dp.inspection.hidden_markov import Chain, chains_of, emission_of
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.rows import Array, rebuild
from pymc_dp.inspection.taint import depends_on
from pymc_dp.transforms.prior_model import clone_without_rows
from pymc_dp.transforms.privatize import mark_private, record_of

SUMMED = "states_summed_out"
REMEDY = "Sample it with dp.TemperedGibbs(), or with pm.sample and its steps for discrete variables."


@dataclass(frozen=True, kw_only=True, eq=False)
class StateDensities:
    """Graphs over the free variables of a private model, its states aside.

    Attributes
    ----------
    chain : Chain
    evidence : Variable
        Log density of the released numbers of each step of each chain in each state: (n_chains, n_steps, n_states).
    beside : Variable
        Log density of all tables that do not depend on the states.
    """

    chain: Chain
    evidence: Variable
    beside: Variable

    @property
    def start(self) -> TensorVariable:
        """Probabilities of first states."""
        return _probabilities(self.chain.start)

    @property
    def transition(self) -> TensorVariable:
        """Probabilities of moves."""
        return _probabilities(self.chain.transition)

    def summed(self) -> TensorVariable:
        """Log density of all tables with the states summed out, by the forward algorithm in logarithms."""
        moves, steps = pt.log(self.transition), self.evidence.transpose((1, 0, 2))
        first = pt.log(self.start) + steps[0]

        def forward(seen: Any, before: Any, moves: Any) -> Any:
            return pt.logsumexp(before[:, :, None] + moves, axis=1) + seen

        last = first
        if self.chain.n_steps > 1:
            found: Any = pytensor.scan(
                forward, sequences=[steps[1:]], outputs_info=[first], non_sequences=[moves], return_updates=False
            )
            last = found[-1]
        return pt.logsumexp(last, axis=-1).sum() + self.beside


def marginalize_states(model: Model) -> Model:
    """Return a private hidden Markov model with its states summed out: one that NUTS can sample.

    Parameters
    ----------
    model : pymc.Model
        What ``privatize`` returned for a model with one variable of `MarkovStates`.

    Returns
    -------
    pymc.Model
        The same free variables but the states. The released tables stay observed, so that traces pass ``scrub``; their
        joint density, summed over all paths, is the Potential ``states_summed_out``. Predictive draws and LOO are those
        of `model` itself, given a trace that has its states again.

    Raises
    ------
    ArgumentError
        If `model` is not private.
    UnsupportedModelError
        If the states reach more than parameters that they select, ``profile[state[region, month]]``.

    Notes
    -----
    The density of a released number in a state is the one of the private model with that state in every cell; the sum
    over paths is exact. After sampling, `draw_states` draws the states given each draw. States have no order: where
    nothing tells them apart, chains may number them differently.

    **Guarantee.** That of the release in `model`: nothing private is read. Class exact.

    References
    ----------
    Rabiner (1989), A tutorial on hidden Markov models, doi 10.1109/5.18626.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> numbers = np.arange(60)
    >>> with pm.Model(coords={"month": range(6)}) as model:
    ...     moves = pm.Dirichlet("moves", np.ones((2, 2)))
    ...     state = dp.markov.MarkovStates("state", np.ones(2) / 2, moves, dims="month")
    ...     profile = pm.Dirichlet("profile", np.ones((2, 3)))
    ...     month = pm.Data("month_index", numbers % 6)
    ...     kind = pm.Categorical("kind", profile[state[month]], observed=numbers % 3)
    >>> months = dp.Domain(public=("month_index",))
    >>> private = dp.privatize(model, epsilon=1.0, domain=months, ledger=dp.Ledger(1.0))
    >>> [var.name for var in marginalize_states(private).free_RVs]
    ['moves', 'profile']
    """
    record = _record(model)
    densities = state_densities(model)
    name = densities.chain.states.name
    kept = [det.name for det in model.deterministics if not depends_on(det, [densities.chain.states.variable])]
    data = [var.name for var in model.data_vars]
    new, (total,) = clone_without_rows(
        model, deterministics=kept, data=data, parameters=[densities.summed()], without=[name]
    )
    for rv in model.observed_RVs:
        dims = model.named_vars_to_dims[rv.name]
        new.add_coords({dim: model.coords[dim] for dim in dims})
        held = model.rvs_to_values[rv]
        with new:
            pm.CustomDist(
                rv.name,
                np.zeros(held.get_value(borrow=True).shape[-1]),
                logp=_no_density,
                signature="(d)->(d)",
                dims=dims,
                observed=held,
            )
    with new:
        pm.Potential(SUMMED, total)
    mark_private(new, *record)
    return new


def draw_states(idata: xr.DataTree, model: Model, *, random_seed: Any = None) -> xr.DataTree:
    """Draw the states of a private hidden Markov model given the draws of everything else.

    Parameters
    ----------
    idata : xarray.DataTree
        What ``pm.sample`` returned inside the model that `marginalize_states` made of `model`.
    model : pymc.Model
        The private model, which has the states.
    random_seed : int or numpy.random.Generator, optional

    Returns
    -------
    xarray.DataTree
        A copy whose posterior has the states, jointly drawn for every chain of states by forward filtering and backward
        sampling; pass it through ``scrub(idata, model)``.

    Raises
    ------
    ArgumentError
        If `model` is not private, or `idata` lacks one of its variables.
    UnsupportedModelError
        As `marginalize_states`.

    Notes
    -----
    **Guarantee.** That of the release in `model`: a function of its trace, at no cost.

    References
    ----------
    Carter, Kohn (1994); Frühwirth-Schnatter (1994).

    Examples
    --------
    >>> import pymc as pm, pymc_dp as dp
    >>> numbers = np.arange(60)
    >>> with pm.Model(coords={"month": range(6)}) as model:
    ...     moves = pm.Dirichlet("moves", np.ones((2, 2)))
    ...     state = dp.markov.MarkovStates("state", np.ones(2) / 2, moves, dims="month")
    ...     profile = pm.Dirichlet("profile", np.ones((2, 3)))
    ...     month = pm.Data("month_index", numbers % 6)
    ...     kind = pm.Categorical("kind", profile[state[month]], observed=numbers % 3)
    >>> months = dp.Domain(public=("month_index",))
    >>> private = dp.privatize(model, epsilon=1.0, domain=months, ledger=dp.Ledger(1.0))
    >>> one = {"moves": [[0.9, 0.1], [0.1, 0.9]], "profile": [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]}
    >>> posterior = xr.Dataset({name: (("chain", "draw", f"{name}_a", f"{name}_b"), [[p]]) for name, p in one.items()})
    >>> trace = xr.DataTree.from_dict({"/posterior": posterior})  # in earnest, of the model without states
    >>> with pytensor.config.change_flags(mode="FAST_COMPILE"):
    ...     idata = draw_states(trace, private, random_seed=1)
    >>> dict(idata["posterior"]["state"].sizes)
    {'chain': 1, 'draw': 1, 'month': 6}
    """
    from pymc_dp.kernel.path_loops import sample_paths

    _validate.instance("idata", idata, xr.DataTree, "Pass what pm.sample returned for this model.")
    rng = public_generator(random_seed)
    _record(model)
    if "posterior" not in idata.children:
        raise ArgumentError("idata has no posterior group. Pass what pm.sample returned for this model.")
    densities = state_densities(model)
    chain, posterior = densities.chain, idata["posterior"].to_dataset()
    free = [rv for rv in model.free_RVs if rv is not chain.states.variable]
    if missing := [str(rv.name) for rv in free if rv.name not in posterior]:
        raise ArgumentError(f"The trace has no {', '.join(missing)}. Pass what pm.sample returned for this model.")
    function = _compiled(densities, free)
    n_chains, n_draws = posterior.sizes["chain"], posterior.sizes["draw"]
    states = np.empty((n_chains, n_draws, chain.n_chains, chain.n_steps), dtype=np.int64)
    values = [posterior[str(rv.name)].values for rv in free]
    for place in np.ndindex(n_chains, n_draws):
        start, transition, evidence = function(*(np.asarray(value[place], dtype=np.float64) for value in values))
        sample_paths(rng, *(np.array(item, dtype=np.float64) for item in (start, transition, evidence)), states[place])
    return _with_states(idata, model, chain.states, states)


def _with_states(idata: xr.DataTree, model: Model, prior: Prior, states: Array) -> xr.DataTree:
    name, posterior = prior.name, idata["posterior"].to_dataset()
    known = model.named_vars_to_dims.get(name) or ()
    dims = [f"{name}_dim_{axis}" if dim is None else dim for axis, dim in enumerate(known)]
    dims = dims or [f"{name}_dim_{axis}" for axis in range(len(prior.shape))]
    coords = {
        dim: list(model.coords[dim] or range(n)) for dim, n in zip(dims, prior.shape, strict=True) if dim in known
    }
    shape = (*states.shape[:2], *prior.shape)
    array = xr.DataArray(states.reshape(shape), dims=["chain", "draw", *dims], coords=coords)
    tree = idata.copy()
    tree["posterior"] = xr.DataTree(dataset=posterior.assign({name: array}))
    return tree


def _compiled(densities: StateDensities, free: Sequence[Variable]) -> Callable[..., Any]:
    outputs = [densities.start, densities.transition, densities.evidence]
    symbols = {rv: pt.TensorType("float64", rv.type.shape)(str(rv.name)) for rv in free}
    found, _ = rebuild(outputs, dict(symbols))
    compiled: Callable[..., Any] = pm.compile(list(symbols.values()), found, on_unused_input="ignore")
    return compiled


def state_densities(model: Model) -> StateDensities:
    """Find the states of a private model and the density of its release in each of them.

    Raises
    ------
    UnsupportedModelError
        With what is in the way.
    """
    priors = priors_of(model)
    chains = chains_of(model, priors)
    if len(chains) != 1:
        raise _refused(f"it has {len(chains)} variables of Markov states whose probabilities are variables or numbers")
    (chain,) = chains
    states = chain.states.variable
    others = [rv for rv in model.free_RVs if rv is not states and depends_on(rv, [states])]
    if others or any(depends_on(item, [states]) for item in model.potentials):
        raise _refused(f"more than released tables depends on {chain.states.name!r}")
    evidence: Any = pt.zeros((chain.states.size, chain.n_states))
    beside: Any = pt.constant(0.0)
    for rv in model.observed_RVs:
        value = model.rvs_to_values[rv]
        if not depends_on(rv, [states]):
            beside = beside + pm.logp(rv, value).sum()
            continue
        places = _places(rv, chain, priors)
        logs = pt.stack([pm.logp(_in_state(rv, chain, k), value) for k in range(chain.n_states)], axis=-1)
        evidence = pt.inc_subtensor(evidence[places], logs)
    shape = (chain.n_chains, chain.n_steps, chain.n_states)
    return StateDensities(chain=chain, evidence=evidence.reshape(shape), beside=beside)


def _places(rv: Variable, chain: Chain, priors: Sequence[Prior]) -> Array:
    """State that each cell of a table has, the same for all of its parameters."""
    parameters = [item for item in rv.owner.op.dist_params(rv.owner) if depends_on(item, [chain.states.variable])]
    found = [emission_of(item, chain.states, priors) for item in parameters]
    places = [item.places for item in found if item is not None]
    if len(places) != len(found) or any(not np.array_equal(item, places[0]) for item in places):
        raise _refused(f"a parameter of {rv.name!r} is not simply selected by {chain.states.name!r}")
    return places[0]


def _in_state(rv: Variable, chain: Chain, state: int) -> Variable:
    """Return a released table all of whose cells are in one state."""
    constant = pt.constant(np.full(chain.states.shape, state, dtype=chain.states.variable.type.dtype))
    return rebuild([rv], {chain.states.variable: constant}, clone=False)[0][0]


def _probabilities(item: Prior | Array) -> TensorVariable:
    return item.variable if isinstance(item, Prior) else pt.constant(item)


def _no_density(value: TensorVariable, _: TensorVariable) -> TensorVariable:
    """Stand for a table whose density is part of a joint one."""
    return pt.zeros_like(value[..., 0])


def _record(model: Model) -> Any:
    found = record_of(model) if isinstance(model, Model) else None
    if found is None:
        raise ArgumentError(
            "model must be a private model, which dp.privatize made: states of rows are not summed out."
        )
    if found[0].sources or found[0].maker:
        raise ArgumentError(
            "model was made of several releases, or of tables of others: states of rows are summed out of one release "
            "of rows alone."
        )
    if SUMMED in model.named_vars:
        raise ArgumentError(
            "The states of this model are summed out already. Pass the private model that it was made of, which has "
            "them."
        )
    return found


def _refused(what: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        [Problem(where="model", what=f"its states cannot be summed out: {what}", remedy=REMEDY)]
    )


__all__ = ["draw_states", "marginalize_states", "state_densities"]
