"""Whether a metric is about every private column of a table: what it left out, it would say nothing about."""

from __future__ import annotations

from collections.abc import Iterable

from pymc_dp.domain import Domain
from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import Findings

Named = tuple[tuple[str, ...], bool]
"""Names of a column, and whether it is public."""


def check_known(findings: Findings, *, per_unit: bool) -> None:
    """Refuse a metric, unless the caller accounts per unit of it: nobody may take its ε for one of rows."""
    if findings.domain.metric is not None and not per_unit:
        findings.problem("Domain(metric=...)", UNKNOWN, REMEDY)


def refuse_metric(domain: Domain) -> None:
    """Raise for a domain with a metric: whoever accounts ε per row would say something else than it means.

    Raises
    ------
    UnsupportedModelError
    """
    if domain.metric is not None:
        raise UnsupportedModelError([Problem(where="Domain(metric=...)", what=UNKNOWN, remedy=REMEDY)])


def check_metric(findings: Findings, columns: Iterable[Named]) -> None:
    """Refuse a metric that leaves out a private column, or names a public one."""
    metric = findings.domain.metric
    if metric is None or not metric.columns:
        return
    meant = set(metric.columns)
    for names, public in columns:
        shown, found = names[0], meant & set(names)
        if public and found:
            findings.problem(shown, "it is public, and in the metric too", "Leave it out of one of them.")
        elif not public and not found:
            findings.problem(
                shown,
                f"it is private, and the metric ({metric}) says nothing about it: rows that differ in it would be at "
                "distance 0",
                f"Add it: metric=... + dp.metrics.Hamming({shown!r}), or name it in Domain(public=...) if anyone may "
                "know it.",
            )
        elif len(found) > 1:
            findings.problem(shown, f"the metric names it twice, as {sorted(found)}", "Name it once.")


UNKNOWN = "this method accounts ε per row, not per unit of a metric"
REMEDY = (
    "Use dp.OPS(), dp.TemperedGibbs(), dp.BarkerMetropolis() or dp.find_map, or dp.sample without a step where sums of "
    "single columns are released; or leave the metric out: ε is then for whole rows."
)

__all__ = ["REMEDY", "UNKNOWN", "Named", "check_known", "check_metric", "refuse_metric"]
