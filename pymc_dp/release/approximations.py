"""What is approximate in the likelihood of a release: the privacy of it does not depend on it."""

from __future__ import annotations

from pymc_dp._display import shorten
from pymc_dp.families.characters import NetworkSums
from pymc_dp.families.family import WholeFamily
from pymc_dp.families.gram import GramSums, has_means, quadratic_error
from pymc_dp.families.statistic import ExposedCounts, LevelCounts
from pymc_dp.inspection.weights import PSEUDO, UNCLAIMED
from pymc_dp.release.regression_layout import mean_of, response_of
from pymc_dp.release.tables import NETWORK, ReleasePlan, TablePlan


def approximations_of(table: TablePlan) -> tuple[str, ...]:
    """Say what is approximate in the likelihood of a released network or regression, whatever the noise."""
    if isinstance(table.statistic, NetworkSums):
        return _of_coefficients(table.statistic)
    statistic, design, found = table.statistic, table.observed.design, []
    if table.weight is not None:
        says = PSEUDO.format(response=table.name, column=table.weight.name)
        return (f"{table.name}: {says}; {UNCLAIMED}.",)
    if not isinstance(statistic, GramSums) or design is None:
        return ()
    if table.observed.by_polynomial:
        response = response_of(table.observed)
        where = f"|η| <= {table.reach:.3g}, where the priors put 99% of rows that are spread over the public bounds"
        if has_means(response, table.reach):
            error = quadratic_error(response, statistic.response, table.reach)
            says = (
                f"A quadratic in the linear predictor η is off by {error:.2g} nats of a row's log-likelihood at worst "
                "for"
            )
        else:
            says = (
                "No quadratic in the linear predictor η follows a row's log-likelihood, as some η are no "
                f"{mean_of(table.observed)}, for"
            )
        found.append(
            f"{table.name}: polynomial statistics of degree 2 (PASS-GLM) stand in for the rows. {says} {where}. "
            "Noise-aware inference takes its tangent and its variance where η lies: exact in the mean for predictors "
            "that are normal within cells, biased for columns of 0 and 1 or with long tails. Coefficients that are "
            "indexed by such a column, b[column], avoid this: it then makes cells."
        )
    return tuple(found)


def _of_coefficients(sums: NetworkSums) -> tuple[str, ...]:
    found = (
        f"{NETWORK}: counts are treated as normal given those of their parents (central limit theorem over the rows "
        "of a cell), with released sizes in their variances; all noise is accounted for, as shared among tables. "
        "Where cells hold few rows, dp.networks.LaplaceUpdates() or no mechanism at all is closer."
    )
    if not sums.unmarried:
        return (found,)
    texts = [label for one, label in zip(sums.coefficients, sums.labels, strict=True) if one in set(sums.unmarried)]
    return (
        found,
        f"{NETWORK}: of {', '.join(shorten(texts, 6))}, parents that no edge joins, only the release is used, not "
        "what the model says about them.",
    )


def of_counts_and_sums(table: TablePlan, plan: ReleasePlan) -> tuple[str, ...]:
    """Say what is approximate in the noise-aware likelihood of released counts, or sums of clamped values."""
    if isinstance(table.statistic, GramSums | NetworkSums) or not plan.statistics.noise_aware:
        return ()
    tested = "dp.rehearse shows how far off that is."
    if isinstance(table.statistic, ExposedCounts):
        high = table.statistic.counts.high
        return (
            f"{table.name}: the posterior takes no count for clamped. Where counts lie beyond {high:g}, the upper "
            "bound, rates come out too low.",
        )
    if not isinstance(table.statistic, LevelCounts):
        family, statistic = table.by_cells
        sizes = table.cells.sizes
        if sizes is not None and isinstance(family, WholeFamily) and family.few_values(statistic, sizes).all():
            return ()
        return (
            f"{table.name}: sums are treated as normal given the size of their cell (central limit theorem over its "
            f"rows). Where cells hold some tens of rows or less, {tested}",
        )
    shown = plan.sizes_shown(table)
    if shown is not None:
        return (
            f"{table.name}: counts are treated as Poisson given the sizes of groups that the release of {shown.name} "
            f"shows, and as independent of other tables given these. Where groups hold some tens of rows, {tested}",
        )
    if table.sizes_known and len(table.statistic.labels) > 2:
        return (
            f"{table.name}: counts add up to the public size of their cell, which the posterior knows by a normal "
            f"density of their total. Where cells hold some tens of rows or less, {tested}",
        )
    return ()


__all__ = ["approximations_of", "of_counts_and_sums"]
