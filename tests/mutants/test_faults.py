"""Faults must not rot: each still finds the text that it changes, and what it writes instead is a program."""

import ast
from pathlib import Path

import pytest

from tests.mutants.fault import KINDS
from tests.mutants.faults import FAULTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_changes_what_stands_there_once(fault):
    written = (ROOT / fault.file).read_text()
    assert written.count(fault.old) == 1
    changed = written.replace(fault.old, fault.new)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(written))
    assert fault.kind in KINDS and fault.breaks.endswith(".")
    assert len(fault.first) <= 3 and all((ROOT / path).exists() for path in fault.first)


def test_names_differ():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
