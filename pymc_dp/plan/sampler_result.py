"""The result of ``dp.plan(step=dp.SGLD(...))``: what each clip norm and step size would do, and the call to make."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, override

from pymc_dp._display import Listing, Page, Shown, Table
from pymc_dp.errors import ArgumentError
from pymc_dp.plan.trials import Trial

if TYPE_CHECKING:
    import pandas as pd

FAR = 1.0
"""Distance, in posterior sds, beyond which no setting that was tried samples from the posterior."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SamplerPlan(Shown):
    """What clip norms and step sizes of a sampler would do, by simulation from the prior; no private row was read.

    Attributes
    ----------
    trials : tuple of Trial
    sampler : str
    rows : str
        How many rows were simulated, in words.
    tables : int
        Tables behind each number.

    Examples
    --------
    >>> numbers = {"epsilon": 1.0, "delta": 1e-6, "step_size": None, "clipped": 0.1, "mean_error": 0.1, "sd_ratio": 1.1}
    >>> short = Trial(**numbers, clip_norm=1.0, distance=0.4, call="dp.SGLD(clip_norm=1)")
    >>> long = Trial(**numbers, clip_norm=2.0, distance=0.2, call="dp.SGLD(clip_norm=2)")
    >>> SamplerPlan(trials=(short, long), sampler="SGLD", rows="100 rows", tables=2).best().call
    'dp.SGLD(clip_norm=2)'
    """

    trials: tuple[Trial, ...]
    sampler: str
    rows: str
    tables: int

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Budgets."""
        return tuple(dict.fromkeys(trial.epsilon for trial in self.trials))

    def best(self, epsilon: float | None = None) -> Trial:
        """Return the trial that came nearest to the posterior; `epsilon` may be left out where there is one budget.

        Raises
        ------
        ArgumentError
            For a budget that was not simulated.
        """
        if epsilon is None and len(self.epsilons) == 1:
            epsilon = self.epsilons[0]
        found = [trial for trial in self.trials if trial.epsilon == epsilon]
        if not found:
            raise ArgumentError(
                f"epsilon={epsilon} was not simulated: give one of {', '.join(f'{one:g}' for one in self.epsilons)}."
            )
        return min(found, key=lambda trial: trial.distance)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per trial, its columns the attributes of `Trial`."""
        import pandas as pd

        names = [item.name for item in fields(Trial)]
        return pd.DataFrame([[getattr(trial, name) for name in names] for trial in self.trials], columns=names)

    @property
    @override
    def _page(self) -> Page:
        best = [self.best(epsilon) for epsilon in self.epsilons]
        good = any(trial.distance <= FAR for trial in best)
        near = (
            "" if good else " No setting that was tried comes near the posterior: more rows or a larger ε are needed."
        )
        return Page(
            title=f"Which clip norm and step size for {self.sampler}?",
            headline=f"{self.rows}, {self.tables} tables simulated from the prior; no private row was read.{near}",
            good=good,
            parts=[
                Listing(title="Recommended", lines=[trial.call for trial in best]),
                *(self._table(epsilon) for epsilon in self.epsilons),
                Listing(title="How to read it", lines=NOTES),
            ],
        )

    def _table(self, epsilon: float) -> Table:
        columns = ("clip norm", "step size", "rows clipped", "error of mean", "sd over true", "distance")
        own = [trial for trial in self.trials if trial.epsilon == epsilon]
        rows = [_cells(trial) for trial in sorted(own, key=lambda trial: trial.distance)]
        return Table(title=f"ε = {epsilon:g}, δ = {own[0].delta:g}", columns=columns, rows=rows)


NOTES = (
    "The share of rows whose gradient, at the parameters that a table was drawn with, is longer than the clip norm.",
    "Error of means: root mean square over parameters and tables, in posterior sds, on the unconstrained scale; sd "
    "over true: geometric mean. The distance puts both together: 0 is the posterior itself.",
    "The reference is the posterior of the same table without clipping, noise or batches, with as many steps as it "
    "needs. Chains begin at the model's initial point, as real ones do; half of their steps are tuning, and all are "
    "paid for.",
    (
        "The results hold for tables like those that the prior simulates: where the prior is much wider than what is "
        "known, so are they."
    ),
)


def _cells(trial: Trial) -> tuple[str, ...]:
    size = "as given" if trial.step_size is None else f"{trial.step_size:g}"
    shown = (f"{trial.mean_error:.2g}", f"{trial.sd_ratio:.2g}", f"{trial.distance:.2g}")
    if not isfinite(trial.distance):
        shown = ("diverged", "", "")
    return f"{trial.clip_norm:g}", size, f"{trial.clipped:.0%}", *shown


__all__ = ["SamplerPlan"]
