"""The one way from a plan to the rows: what the budget is worth is said, the ledger is charged, the release noted."""

from __future__ import annotations

import math
import warnings

from pymc_dp.accounting import Budget, Entry, Event, Ledger, charge, loss_at, total_epsilon
from pymc_dp.errors import WeakGuaranteeWarning
from pymc_dp.inspection.findings import Inspection
from pymc_dp.release.repeats import PACKAGE, noted_release

WEAK = 10.0
"""ε above which a guarantee bounds next to nothing: e^10 is 22,000."""


def spend(
    inspection: Inspection,
    budget: Budget,
    *,
    event: Event | None = None,
    label: str = "",
    ledger: Ledger | None = None,
    diameter: float = 1.0,
) -> Entry | None:
    """Warn, charge, remember; rows may be read afterwards.

    Parameters
    ----------
    inspection : Inspection
        Of the model whose rows will be read.
    budget : Budget
        What was asked for: per row, or per unit of the domain's metric.
    event : Event, optional
        What is charged; without a ledger it is not needed, and the budget is noted as spent.
    label : str
        What it is for, public.
    ledger : Ledger, optional
    diameter : float
        Largest distance of two rows under the domain's metric.

    Returns
    -------
    Entry or None
        The line of the ledger.

    Raises
    ------
    BudgetExceeded, ArgumentError, PrivacyError
        From the ledger; nothing is spent or remembered.

    Warns
    -----
    WeakGuaranteeWarning, RepeatedReleaseWarning
        Before the charge: where warnings are errors, nothing is spent.
    """
    for text in weaknesses(inspection, budget):
        warnings.warn(text, WeakGuaranteeWarning, skip_file_prefixes=(PACKAGE,))
    loss = budget.epsilon if event is None else total_epsilon(event, budget.delta).epsilon
    with noted_release(inspection, loss_at(loss, diameter), ledger):
        if ledger is not None:
            assert event is not None
            domain, delta = inspection.domain, budget.delta
            ledger.require_columns([observed.name for observed in inspection.observed])
            return charge(ledger, event, label=label, domain=domain, diameter=diameter, delta=delta)
    return None


def weaknesses(inspection: Inspection, budget: Budget) -> list[str]:
    """Say where a budget bounds next to nothing.

    δ is held against the public number of rows, under ``"add_remove"`` against `n_max`. ε per unit of a metric is not
    judged: what a unit is, and how far apart rows are, is for the user to say.
    """
    domain, texts = inspection.domain, []
    if budget.epsilon > WEAK and domain.metric is None:
        texts.append(
            f"ε = {budget.epsilon:g} bounds very little: what is released may be {_factor(budget.epsilon)} times "
            "likelier with one row than with another in its place, so that it may show the row. Common values lie "
            "between 0.1 (strong) and 3 (weak)."
        )
    n_rows, name = (inspection.n_rows, "rows") if domain.n_max is None else (domain.n_max, "rows at most (n_max)")
    if n_rows and budget.delta >= 1 / n_rows:
        texts.append(
            f"δ = {budget.delta:g} is not below 1 / {n_rows}, for {n_rows} {name}: it would allow one row, chosen at "
            f"random, to be published as it is. Use a δ far below {1 / n_rows:.2g}, for example {0.01 / n_rows:.1g}."
        )
    return texts


def _factor(epsilon: float) -> str:
    return f"e^{epsilon:g} = {math.exp(epsilon):.2g}" if epsilon < 100 else f"e^{epsilon:g}"


__all__ = ["spend", "weaknesses"]
