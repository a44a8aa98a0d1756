"""Names come when they are used, are those of the stub, and hide no function behind a module of its name."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pymc_dp
from pymc_dp._lazy import sources

STUB = Path(pymc_dp.__file__).with_suffix(".pyi")


def test_the_stub_lists_what_it_imports_but_namespaces():
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    (listed,) = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)]
    names = [name for name, source in sources(STUB).items() if source != "pymc_dp"]
    assert sorted(listed) == sorted(names) == sorted(pymc_dp.__all__)


@pytest.mark.parametrize("name", sources(STUB))
def test_every_name_is_what_the_stub_says(name):
    source = sources(STUB)[name]
    whole = source == "pymc_dp"
    expected = importlib.import_module(f"pymc_dp.{name}") if whole else vars(importlib.import_module(source))[name]
    assert getattr(pymc_dp, name) is expected
    assert isinstance(expected, ModuleType) == whole


def test_all_names_come_by_a_star():
    code = "from pymc_dp import *; import pymc_dp; assert set(pymc_dp.__all__) <= set(globals())"
    subprocess.run([sys.executable, "-c", code], check=True)
