"""Names come when they are used, are those of the stub, and hide no function behind a module of its name."""

import ast
import importlib
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import pymc_dp
from pymc_dp._lazy import LazyPackage, sources

STUB = Path(pymc_dp.__file__).with_suffix(".pyi")
PLANTED = {
    "__init__.py": "from pymc_dp._lazy import attach\n__all__ = attach(__name__)\n",
    "__init__.pyi": "from planted import words\nfrom planted.plan import plan\nfrom planted.broken import missing\n",
    "words.py": "",
    "plan/__init__.py": "from planted.plan.run import plan\n",
    "plan/run.py": "def plan():\n    pass\n",
    "broken.py": "import no_such_package_anywhere\n",
}


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A small lazy package."""
    for name, text in PLANTED.items():
        path = tmp_path / "planted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("planted")
    for name in [name for name in sys.modules if name.partition(".")[0] == "planted"]:
        del sys.modules[name]


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


def test_names_are_shown_before_they_are_imported(planted):
    assert {"words", "plan", "missing"} <= set(dir(planted))
    assert planted.__all__ == ["missing", "plan"], "words is a namespace"
    assert not {"words", "plan"} & set(vars(planted))
    assert "planted.plan" not in sys.modules


@pytest.mark.parametrize("first", ["planted.plan.run", "planted.plan", "planted"])
def test_a_module_does_not_hide_the_function_of_its_name(planted, first):
    importlib.import_module(first)
    assert isinstance(planted.plan, FunctionType)
    assert planted.plan is sys.modules["planted.plan.run"].plan
    assert isinstance(planted, LazyPackage)


def test_what_is_not_there_is_an_attribute_error(planted):
    with pytest.raises(AttributeError, match="'planted' has no attribute 'nonsense'"):
        _ = planted.nonsense
    assert not hasattr(planted, "nonsense")
