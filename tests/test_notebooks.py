"""Notebooks are shown as they were run: all of their code, in order, by this version."""

import json
from importlib.metadata import version

import pytest

from notebooks.execute import digest
from tests.pages import ROOT

NOTEBOOKS = {path.stem: path for path in (ROOT / "notebooks").rglob("*.ipynb")}


def missing(notebook):
    """Return what speaks against a notebook having been run as it stands."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    stamp = notebook["metadata"].get("pymc_dp", {})
    counts = [cell["execution_count"] for cell in code]
    said = {output["output_type"] for cell in code for output in cell["outputs"]}
    return [
        *(["cells without a run"] if None in counts else []),
        *(["cells run in another order"] if counts != list(range(1, len(code) + 1)) else []),
        *(["no outputs"] if not said else []),
        *(["an error"] if "error" in said else []),
        *(["another version"] if stamp.get("version") != version("pymc-dp") else []),
        *(["other code"] if stamp.get("code") != digest(code) else []),
    ]


@pytest.mark.parametrize("name", sorted(NOTEBOOKS))
def test_a_notebook_was_run_as_it_stands(name):
    assert missing(json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))) == []
