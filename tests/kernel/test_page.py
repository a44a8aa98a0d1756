"""The page for those who attack the kernel names every operation, and only tests and files that there are."""

import inspect
import re
from pathlib import Path

import pymc_dp
from pymc_dp.kernel import Kernel
from pymc_dp.kernel.gram import CERTIFIED
from pymc_dp.kernel.totals import ByTotals

ROOT = Path(pymc_dp.__file__).parents[1]
PAGE = (ROOT / "docs" / "kernel.md").read_text(encoding="utf-8")
NO_OPERATION = {"move_of"}
"""Public methods that say a cost, and read nothing."""


def test_every_test_that_the_page_names_is_there():
    written = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 30 and named <= set(re.findall(r"^def (test_\w+)", written, re.M))


def test_every_operation_and_every_shape_is_on_the_page():
    methods = [one for kernel in (Kernel, ByTotals) for one in inspect.getmembers(kernel, inspect.isfunction)]
    public = {name for name, _ in methods if not name.startswith("_")}
    table = PAGE[PAGE.index("## 7 ") :]
    assert {name for name in public - NO_OPERATION if f"`{name}" not in table} <= {"beside"}
    assert not {shape.__name__ for shape in CERTIFIED if f"| `{shape.__name__}" not in PAGE}


def test_every_file_of_the_kernel_is_listed_with_what_must_be_right():
    trusted, kernel = PAGE[PAGE.index("### Who is trusted") : PAGE.index("## 2 ")], ROOT / "pymc_dp" / "kernel"
    folders = tuple(re.findall(r"`([\w/]+/)`", trusted))
    own = {path.relative_to(kernel).as_posix() for path in kernel.rglob("*.py") if path.name != "__init__.py"}
    assert not {name for name in own if f"`{name}`" not in trusted and not name.startswith(folders)}
    inside = {path.name for path in (ROOT / "pymc_dp").rglob("*.py")}
    assert set(re.findall(r"`(?:[\w/]+/)?(\w+\.py)`", trusted)) <= inside
