"""A statement as an entry of the public registry of deployments of differential privacy.

Names and allowed values are those of the registry that OpenDP and others keep, https://registry.opendp.org, by its
template of 2026. What a trace cannot know is None: those who publish fill it in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pymc_dp._column_bounds import checked_bounds, written

if TYPE_CHECKING:
    from pymc_dp.trace.statement import Statement

TITLE = "For the Differential Privacy Deployments Registry (registry.opendp.org)"
ABOUT = (
    "Names of fields are those of the registry, and only those have a value that the trace knows; whoever publishes "
    "knows the others. A statement saved as .json has all of them under the key registry, nested as there."
)
POST_PROCESSING = "Whatever was computed from the released numbers, such as the draws of a sampler given them."
TRUSTED = "Whoever holds the rows runs the mechanism, and is trusted; who reads what is published need not be."


def fields(statement: Statement) -> dict[str, Any]:
    """Return the entry, nested as the registry does."""
    report, record = statement.report, statement.report.record
    ours = record["guarantee"] != "none" and not record.get("maker")
    made = ", ".join(f"{name} {number}".strip() for name, number in report.made_with.items())
    return {
        "basic": {
            "name": statement.dataset or None,
            "data_curators": None,
            "description": " ".join(statement.plain),
            "intended_use": None,
            "data_product_type": None,
            "data_product_region": None,
            "data_product_sector": None,
            "publication_date": None,
        },
        "dp_variant": {
            "variant_name": _variant(record) if ours else None,
            "data_domain": _data_domain(record),
            "unprotected_quantities": "; ".join(record["assumptions"]) or None,
        },
        "privacy_loss": {
            "privacy_unit": {"row": "Row-level", "person": "Person-level"}.get(statement.unit["protects"] or ""),
            "privacy_unit_details": report.neighbours,
            "number_of_privacy_units": statement.rows["public"] if statement.unit["protects"] == "row" else None,
            "privacy_parameters": _parameters(statement) if ours else None,
            "privacy_parameters_details": report.covered,
        },
        "deployment_model": {
            "model_name": "Central" if ours else None,
            "model_name_details": TRUSTED if ours else None,
            "trust_assumptions": None,
            "actors": None,
            "release_type": None,
            "data_source_type": None,
            "access_type": "Non-interactive",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": None,
            "mechanisms": f"{statement.mechanism}; arithmetic: {record['arithmetic']}",
            "composition": COUNTED.get(statement.accountant) if ours else None,
            "post_processing": POST_PROCESSING,
            "justification": record.get("chosen") or None,
            "utility": None,
            "additional_information": made or None,
        },
        "administrative": {"status": "Draft", "evidence_sources": None, "registry_authors": None, "tier": None},
    }


def rows(statement: Statement) -> Iterator[tuple[str, str]]:
    """Yield the fields that are known, but for texts that the statement has already, and the names of the others."""
    elsewhere = {"description", "unprotected_quantities", "privacy_parameters_details"}
    found = {name: value for group in fields(statement).values() for name, value in group.items()}
    for name, value in found.items():
        if isinstance(value, Mapping):
            yield name, ", ".join(f"{key}: {number:g}" for key, number in value.items())
        elif value is not None and name not in elsewhere:
            yield name, str(value)
    yield "to be filled in", ", ".join(name for name, value in found.items() if value is None)


def _variant(record: Mapping[str, Any]) -> str | None:
    if record.get("metric"):
        return None  # the registry has no name for it
    return "Approximate DP" if record["delta"] else "Pure DP"


def _parameters(statement: Statement) -> dict[str, float] | None:
    record = statement.report.record
    if record.get("metric") or not math.isfinite(record["epsilon"]):
        return None
    return {"epsilon": record["epsilon"], **({"delta": record["delta"]} if record["delta"] else {})}


def _data_domain(record: Mapping[str, Any]) -> str | None:
    """Say what a row may be: its columns within their bounds."""
    found = record.get("domain") or {}
    bounds = [f"{name} in {written(checked_bounds(name, ends))}" for name, ends in found.get("bounds", {}).items()]
    norms = [f"{name} of norm at most {norm:g}" for name, norm in found.get("norms", {}).items()]
    columns = {name for table in record["tables"] for name in (table["name"], *table["plan"].get("columns", ()))}
    if not columns and not bounds and not norms:
        return None
    about = f" of {', '.join(sorted(columns))}" if columns else ""
    limits = ", ".join([*bounds, *norms])
    return f"Tables with rows{about}" + (f"; {limits}" if limits else "")


COUNTED = {
    "pure": "Pure losses of all mechanisms add up.",
    "zcdp": "Zero-concentrated DP of all mechanisms, converted to (epsilon, delta) at the end.",
    "gdp": "Gaussian DP of all mechanisms, converted to (epsilon, delta) at the end.",
    "rdp": "Renyi DP of all mechanisms, converted to (epsilon, delta) at the end.",
    "pld": "Privacy loss distributions of all mechanisms, convolved.",
    "sum": "Totals of parts add up.",
    "basic": "Epsilons and deltas of all mechanisms add up.",
}
"""By the accountant that proves the total."""


__all__ = ["ABOUT", "TITLE", "fields", "rows"]
