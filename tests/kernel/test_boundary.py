"""What the kernel takes from the rest of the package stands in one file, and its randomness in another."""

import ast
import importlib
from pathlib import Path

import pymc_dp.kernel

FILES = sorted(Path(pymc_dp.kernel.__file__).parent.rglob("*.py"))
OWN = ("randomness.py", "noise.py", "process.py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or "", {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            yield from ((alias.name, set()) for alias in node.names)


def test_one_file_imports_from_outside_of_the_kernel():
    for path in FILES:
        outside = {m for m, _ in imports(path) if m.startswith("pymc_dp") and not m.startswith("pymc_dp.kernel")}
        assert not outside or path.name == "_outside.py", (path.name, outside)


def test_every_name_from_outside_is_used():
    used = set().union(*(names for path in FILES for m, names in imports(path) if m.endswith("_outside")))
    assert used == set(importlib.import_module("pymc_dp.kernel._outside").__all__)


def test_randomness_is_drawn_in_two_files():
    names = {"secure_keys", "secure_generator", "NOISES", "mechanism"}
    found = {path.name for path in FILES for m, given in imports(path) if given & names}
    assert found == {"draw.py", "table.py"}  # the table's key of persons
    modules = {
        m.split(".")[0]
        for path in FILES
        if path.name not in ("randomness.py", "noise.py", "process.py")
        for m, _ in imports(path)
    }
    assert not modules & {"secrets", "random", "opendp", "randomgen", "os"}
