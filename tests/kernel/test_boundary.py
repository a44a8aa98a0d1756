"""What the kernel takes from the rest of the package stands in one file, and its randomness in another."""

import ast
from pathlib import Path

import pymc_dp.kernel

FILES = sorted(Path(pymc_dp.kernel.__file__).parent.glob("*.py"))


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
    assert used == set(pymc_dp.kernel._outside.__all__)


def test_randomness_is_drawn_in_two_files():
    names = {"secure_keys", "secure_generator", "NOISES", "mechanism"}
    found = {path.name for path in FILES for m, given in imports(path) if given & names}
    assert found == {"_outside.py", "draw.py", "table.py"}  # the table's key of persons
    modules = {m.split(".")[0] for path in FILES for m, _ in imports(path)}
    assert not modules & {"secrets", "random", "opendp", "randomgen", "os"}


WALKS = [*sorted((FILES[0].parents[1] / "gradients").glob("*.py")), FILES[0].parents[1] / "find_bounds.py"]
READERS = {"walk_rows.py", "find_bounds.py"}
"""Which have a source of rows, that the kernel opens."""


def test_walks_are_charged_noised_and_read_by_the_kernel_alone():
    for path in WALKS:
        found = list(imports(path))
        names = {(module, name) for module, given in found for name in given}
        assert not {"paid", "charge"} & {name for _, name in names}, path.name
        assert not {"opendp", "secrets", "randomgen", "pymc_dp._random"} & {module for module, _ in found}, path.name
        assert not any(m == "pymc_dp.release.noise" for m, _ in found) or path.name == "find_bounds.py"  # its scale
        assert not any(m == "pymc_dp.rows.gate" for m, _ in found) or path.name in READERS
