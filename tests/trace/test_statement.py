"""A report as a document: what the trace holds and nothing else, in words that are true."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from pymc_dp._documents import latex, markdown, web_page
from pymc_dp._versions import versions
from pymc_dp.trace.report import Report
from pymc_dp.trace.statement import ENDINGS, SCHEMA, Statement, right_at_most
from tests.golden.plain import read
from tests.golden.topics import FOLDER
from tests.test_documents import Read, body, problems
from tests.trace.conftest import CANARY, LABELS

KEYS = """
schema version date dataset publishable headline plain made_with written_with rows unit neighbours epsilon delta metric
mechanism released sampler sources guarantee arithmetic events accountant ledger assumptions limits left_out
not_paid_for registry verdict
"""
"""Of version 1: none may go."""
REGISTRY = {
    "basic": "name data_curators description intended_use data_product_type data_product_region data_product_sector "
    "publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type data_source_type "
    "access_type",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification "
    "utility additional_information",
    "administrative": "status evidence_sources registry_authors tier",
}
"""Fields of the registry's template."""


def released(domain: dp.Domain, **options: object) -> Report:
    """A report of a release of 40 rows in four cells, without chains."""
    with pm.Model(coords={"half": range(2)}) as model:
        pm.Data("person", np.repeat(np.arange(20), 2))
        group = pm.Data("group", np.arange(40) % 2)
        pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="half")[group], observed=np.arange(40) // 2 % 2)
    found = dp.Release.of(dp.privatize(model, epsilon=1.0, domain=domain, **options))
    return Report(record=json.loads(json.dumps(found.record.to_dict())), additions=(), released=found.tables)


def stated(report: Report) -> dict[str, object]:
    return Statement.of(report, "a survey").to_dict()


@pytest.fixture(scope="module")
def persons() -> Report:
    domain = dp.Domain(neighbours="add_remove", n_max=50, unit=dp.Unit("person", max_rows=2))
    return released(domain)


def test_every_format_says_what_the_trace_holds_and_shows_no_row(trace: xr.DataTree, tmp_path) -> None:
    began = datetime.now(UTC)
    for ending in ENDINGS:
        path = trace.dp.report().save(tmp_path / f"statement{ending}", dataset="survey-2026")
        text = path.read_text(encoding="utf-8")
        bare = text.replace("\\_\\allowbreak{}", "_").replace("\\_", "_").replace("\\", "")
        for part in ("survey-2026", versions()["OpenDP"], "number of rows: 60", "discrete Laplace", "bernoulli"):
            assert part in text, (ending, part)
        assert any(f"{day:%Y-%m-%d}" in text for day in (began, datetime.now(UTC)))
        assert all(name in bare for names in REGISTRY.values() for name in names.split() if name not in HIDDEN)
        assert not any(label in text for label in LABELS) and str(CANARY) not in text


def records(found: Any) -> Iterator[dict[str, Any]]:
    """Yield all records among findings that are kept."""
    if isinstance(found, dict) and {"event", "tables", "guarantee"} <= set(found):
        yield found
    elif isinstance(found, dict | list):
        for one in found.values() if isinstance(found, dict) else found:
            yield from records(one)


@pytest.mark.parametrize(
    ("topic", "step"),
    [("traces", 1), ("saved", 1), ("releases", 8), pytest.param("releases", 1, marks=pytest.mark.slow)],
)
def test_every_kind_of_release_has_a_document(topic: str, step: int) -> None:
    kept = list(records(read(FOLDER / f"{topic}.json")))
    assert kept
    for record in kept[::step]:
        statement = Statement.of(Report(record=record, additions=()), "a_survey")
        json.dumps(statement.to_dict(), allow_nan=False)
        article = body(latex(statement.page))
        assert problems(article) == [] and "\\character" not in article
        assert not Read(web_page(statement.page)).open and markdown(statement.page)


HIDDEN = {"description", "unprotected_quantities", "privacy_parameters_details"}
"""Fields whose text a document has elsewhere."""


def test_json_has_a_version_and_its_keys(trace: xr.DataTree, tmp_path) -> None:
    found = json.loads(trace.dp.report().save(tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (found["schema"], found["version"]) == (SCHEMA, 1) and set(found) == set(KEYS.split())
    assert {group: " ".join(found["registry"][group]) for group in found["registry"]} == REGISTRY
    assert found["made_with"] == versions() and found["dataset"] is None
    assert (found["epsilon"], found["delta"], found["accountant"]) == (1.0, 0.0, "pure")
    (table,) = found["released"]
    assert (table["variable"], table["cells"], table["scales"], table["epsilon"]) == ("answer", 3, [2.0, 2.0], 1.0)
    loss = found["registry"]["privacy_loss"]
    assert (loss["privacy_parameters"], loss["number_of_privacy_units"]) == ({"epsilon": 1.0}, 60)
    assert found["registry"]["dp_variant"]["variant_name"] == "Pure DP"


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.html.txt"])
def test_another_ending_is_refused_before_anything_is_written(trace: xr.DataTree, tmp_path, name: str) -> None:
    with pytest.raises(dp.errors.ArgumentError, match=r"path must end in \.md or \.html or \.tex or \.json"):
        trace.dp.report().save(tmp_path / name)
    with pytest.raises(dp.errors.ArgumentError, match="dataset must be a name"):
        trace.dp.report().save(tmp_path / "a.md", dataset="")
    assert not list(tmp_path.iterdir())


def test_plain_words_say_whom_it_protects(persons: Report, trace: xr.DataTree) -> None:
    of_person, of_row = stated(persons), stated(trace.dp.report())
    assert "whether one person is in them, and holds both for equally likely" in of_person["plain"][1]
    assert (of_person["unit"]["column"], of_person["unit"]["max_rows"]) == ("person", 2)
    assert of_person["registry"]["privacy_loss"]["privacy_unit"] == "Person-level"
    assert "except the private values of one row, and holds two possible ones for" in of_row["plain"][1]
    assert "right in more than 73.2% of cases" in of_row["plain"][1]
    unknown = stated(released(dp.Domain(neighbours="add_remove", n_max=50)))
    assert "whether one row is in them" in unknown["plain"][1]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05])
def test_the_percentage_is_what_the_worst_mechanism_reaches_rounded_up(epsilon: float, delta: float) -> None:
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))  # randomised response, which shows all with probability δ
    reached = 100 * (delta + (1 - delta) * truth)
    assert reached <= right_at_most(epsilon, delta) < reached + 0.1 + 1e-9
