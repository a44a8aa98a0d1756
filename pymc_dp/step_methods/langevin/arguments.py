"""The arguments that every stochastic-gradient sampler takes: their types and what they mean, in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import Signature, cleandoc, signature
from os import PathLike
from typing import Any, TypedDict

from pymc import Model

from pymc_dp.domain import Domain
from pymc_dp.rows.stored import Rows
from pymc_dp.step_methods.langevin.batches import Sampling, StepSizes
from pymc_dp.step_methods.langevin.estimated_norm import EstimatedNorm
from pymc_dp.step_methods.langevin.walk import Precision
from pymc_dp.step_methods.ops import OPS

HEADING = "Parameters\n----------\n"


class Shared(TypedDict, total=False):
    """Arguments of every stochastic-gradient sampler; what a sampler says about one in its own docstring goes first.

    Parameters
    ----------
    vars : list, optional
        All free variables, or none.
    batch_size : int, optional
        Rows per batch: exactly so many without replacement, expected in a Poisson batch. At most the public number of
        rows, or ``n_max`` where that is private; 256 by default, or all of fewer.
    clip_norm : float or EstimatedNorm
        Greatest Euclidean norm C of one row's gradient, in unconstrained space; longer ones are shortened to it.
        Public: one that was found by looking at the rows would break the guarantee.
        ``dp.schedules.EstimatedNorm(share=0.1)`` buys one; ``dp.plan(model, step=dp.SGLD(...))`` finds one by
        simulation, at no cost.
    sampling : {"poisson", "without_replacement"}, optional
        "poisson" (default): every row is in the batch independently. "without_replacement": under
        ``neighbours="replace"`` only.
    papers : bool
        The papers' form: noise of their algorithm 2, with its constants, which is more than the budget asks for; what
        it costs is what the accountant says.
    dtype : {"float64", "float32"}
        Of the floats that rows are held in: float32 takes half of the memory. They are widened when a batch is taken,
        and all arithmetic is float64, since in float32 a row's gradient depends on its place in the batch by rounding.
    steps_per_draw : int
        Steps between two states that are kept; all are charged.
    start : OPS, optional
        ``dp.OPS()``, with options of its own but no budget: every chain begins at one posterior sample, instead of the
        point that PyMC gives. Tuning may then be short, or none. The model must be one that `OPS` draws from.
    start_share : float
        Share of ε and δ, in (0, 1), for the starts of all chains together, 0.5 by default; the chains get what the
        accountant says is left, which is more than the rest.
    rows : mapping of str to array, Parquet or Table, optional
        Rows that need not fit into memory, in place of those of the model: NumPy memmaps by the names of ``pm.Data``
        and observed variables, ``dp.Parquet(...)``, or ``dp.Table(...)``. The model then holds a few dummy rows of the
        same dtypes, as many as no other axis of it is long; bounds and norms go by the same names. Price and draws are
        those of the same rows in memory, of which there is never more than a block (with `EstimatedNorm`, 8 bytes a
        row). Not with `start`.
    scratch : path, optional
        Folder for the clamped copy of `rows`, which no other user can read. It goes when ``dp.sample`` returns, that of
        a funded step with the model or the process; one that is killed leaves it behind. By default the folder of
        ``tempfile``.
    epsilon, delta : float
        Budget of a funded step; `delta` must be > 0.
    chains : int
        Chains that a funded step pays for.
    domain : Domain, optional
        For a funded step.
    model : pymc.Model, optional
        For a funded step.
    """

    batch_size: int | None
    clip_norm: float | EstimatedNorm
    step_size: float | StepSizes | None
    sampling: Sampling | None
    papers: bool
    dtype: Precision
    steps_per_draw: int
    start: OPS | None
    start_share: float
    rows: Rows | None
    scratch: str | PathLike[str] | None
    epsilon: float | None
    delta: float
    chains: int
    domain: Domain | None
    model: Model | None


def show_all(sampler: type, *shared: Any) -> None:
    """Let a sampler whose ``__init__`` takes ``**shared`` show every argument in its signature and its docstring.

    Parameters
    ----------
    sampler : type
    shared : callable
        The functions that these arguments are passed on to, from which their defaults are read.
    """
    init: Any = vars(sampler).get("__init__")
    if init is not None:
        init.__signature__ = _whole(signature(init), shared)
    if sampler.__doc__ is not None:  # Python leaves them out with -OO
        sampler.__doc__ = _documented(cleandoc(sampler.__doc__), signature(sampler.__init__).parameters)  # type: ignore[misc]


def _whole(own: Signature, shared: Iterable[Any]) -> Signature:
    known = {name: one for function in reversed([*shared]) for name, one in signature(function).parameters.items()}
    *named, rest = own.parameters.values()
    others = [known[name] for name in Shared.__annotations__ if name not in own.parameters]
    return own.replace(parameters=[*named, *others, rest.replace(name="pymc_arguments", annotation="Any")])


def _documented(text: str, names: Iterable[str]) -> str:
    """Return a docstring with the parameters of `Shared` that it does not describe itself, in the order of names."""
    before, heading, rest = text.partition(HEADING)
    described, _, after = rest.partition("\n\n")
    known = _entries(cleandoc(Shared.__doc__ or "").partition(HEADING)[2]) | _entries(described)
    listed = "\n".join(known[name] for name in names if name in known)
    return f"{before}{heading}{listed}\n\n{after}" if heading else text


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section on parameters, each by the first of its names."""
    return {re.split(r"[, :]", entry)[0]: entry for entry in re.split(r"\n(?=\S)", section)}


__all__ = ["Shared", "show_all"]
