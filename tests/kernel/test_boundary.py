"""The kernel imports nothing else of the package, and nothing else draws in secret."""

import ast
from pathlib import Path

import pytest

import pymc_dp.kernel

PACKAGE = Path(pymc_dp.__file__).parent
FILES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}

SECRETS = {
    "opendp": {"kernel/noise.py"},
    "randomgen": {"kernel/randomness.py"},
    "secrets": {"kernel/randomness.py"},
}
"""What draws in secret, and the only files that import it."""
URANDOM = {
    "accounting/book.py": "names of ledgers and of their lines",
    "step_methods/funding.py": "the number by which chains are counted",
}
"""Where the operating system's bytes are no privacy noise, and why they are drawn."""
GENERATORS = {"secure_generator", "secure_keys", "derived_generator"}
OLD_WAY = "before_kernel.py"
"""The one file that hands the kernel's generators, and its noise, to what does not stand on the kernel yet."""
OF_OLD = ("step_methods/",)
REPLACING = {
    "testing.py": "insecure_randomness and without_noise of tests and demonstrations",
    "plan/rehearsal.py": "simulated tables, whose noise is simulated",
    "plan/sampler.py": "chains on simulated tables",
}
"""Who puts other randomness in the place of the secure one."""


def imports(name, text):
    """Yield (module, name or ""), those inside functions and under TYPE_CHECKING included."""
    package = ["pymc_dp", *Path(name).parent.parts]
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, "") for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) + 1 - level] if level else []
                origin = ".".join([*base, *filter(None, [module])])
                yield from ((origin, alias.name) for alias in names)
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module, ""


def wrong(files):
    """Return (file, what) for every import that the boundary forbids."""
    return [(name, what) for name, text in files.items() for what in _wrong(name, text)]


def _wrong(name, text):
    found = list(imports(name, text))
    yield from (module for module, _ in found if name not in SECRETS.get(module.split(".")[0], {name}))
    if "urandom" in text and name not in URANDOM:
        yield "urandom"
    yield from (_wrong_inside if name.startswith("kernel/") else _wrong_outside)(name, found)


def _wrong_inside(name, found):
    for module, given in found:
        top, *below = *module.split("."), given
        if (top == "pymc_dp" and below[0] != "kernel") or (top in ("os", "random") and name != "kernel/process.py"):
            yield f"{module} {given}"


def _wrong_outside(name, found):
    old = name.startswith(OF_OLD)
    for module, given in found:
        if not module.startswith("pymc_dp"):
            continue
        if "randomness" in (module.split(".")[-1], given) and given in ("randomness", "", "*"):
            yield "all of randomness"
        if given in GENERATORS and name != OLD_WAY and not (old and module == "pymc_dp.before_kernel"):
            yield given
        if given in ("use_insecure", "Insecure") and name not in REPLACING:
            yield given
        if old and module == "pymc_dp.kernel.noise":
            yield module


def test_the_kernel_stands_alone_and_alone_draws_in_secret():
    assert len(FILES) > 500 and wrong(FILES) == []


def test_every_exception_is_still_needed():
    assert all("urandom" in FILES[name] for name in URANDOM)
    assert all("use_insecure" in FILES[name] for name in REPLACING)
    taken = {given for module, given in imports(OLD_WAY, FILES[OLD_WAY]) if module.startswith("pymc_dp")}
    used = {
        given
        for name, text in FILES.items()
        for module, given in imports(name, text)
        if module == "pymc_dp.before_kernel"
    }
    assert taken == used


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kernel/sums.py", "from pymc_dp.errors import ArgumentError"),
        ("kernel/sums.py", "from pymc_dp import _validate"),
        ("kernel/sums.py", "import pymc_dp"),
        ("kernel/sums.py", "def f():\n    from pymc_dp.accounting import Ledger"),
        ("kernel/sums.py", "from ..errors import ArgumentError"),
        ("kernel/sums.py", "from .. import errors"),
        ("kernel/accounting/pure.py", "from ...accounting import book"),
        ("kernel/sums.py", 'importlib.import_module("pymc_dp.errors")'),
        ("kernel/sums.py", "import secrets"),
        ("kernel/draw.py", "from randomgen import AESCounter"),
        ("kernel/sums.py", "def f():\n    from opendp.measurements import make_laplace"),
        ("kernel/sums.py", "os.urandom(8)"),
        ("kernel/sums.py", "import random"),
        ("kernel/sums.py", "from os import getrandom"),
        ("gradients/release.py", "from secrets import token_bytes"),
        ("step_methods/base.py", "import opendp.prelude"),
        ("step_methods/base.py", "from pymc_dp.kernel.randomness import secure_generator"),
        ("step_methods/base.py", "from pymc_dp.kernel.noise import LAPLACE"),
        ("gradients/fit.py", "from pymc_dp.before_kernel import secure_generator"),
        ("gradients/fit.py", "from pymc_dp.kernel import randomness"),
        ("gradients/fit.py", "import pymc_dp.kernel.randomness"),
        ("gradients/fit.py", "from pymc_dp.kernel.draw import secure_keys"),
        ("gradients/fit.py", "from pymc_dp.kernel.randomness import use_insecure"),
        ("gradients/fit.py", "from os import urandom"),
    ],
)
def test_a_planted_import_is_found(name, text):
    assert wrong({name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kernel/sums.py", "from pymc_dp.kernel import draw"),
        ("kernel/sums.py", "from . import draw"),
        ("kernel/accounting/pure.py", "from ..errors import ArgumentError"),
        ("gradients/fit.py", "from pymc_dp.kernel.randomness import insecure"),
        ("step_methods/base.py", "from pymc_dp.before_kernel import secure_generator"),
    ],
)
def test_what_is_allowed_is_not(name, text):
    assert wrong({name: text}) == []


def test_the_kernel_draws_in_six_files():
    names = GENERATORS | {"NOISES", "LAPLACE", "GAUSSIAN", "mechanism"}
    own = {name for name in FILES if name.startswith("kernel/")}
    found = {name for name in own for _, given in imports(name, FILES[name]) if given in names}
    assert found == {
        "kernel/batch_walk.py",
        "kernel/draw.py",
        "kernel/persons.py",
        "kernel/table.py",
    }  # beside randomness.py and noise.py; keys by which rows of persons are chosen


def test_every_public_name_is_found_where_its_type_is():
    typed = {name: module for module, name in imports("kernel/__init__.py", FILES["kernel/__init__.py"])}
    found = {name: getattr(pymc_dp.kernel, name).__module__ for name in pymc_dp.kernel.__all__}
    assert {**typed, **found} == typed and found.keys() == typed.keys() - {"TYPE_CHECKING", "import_module"}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pymc_dp.kernel.nonsense


WALKS = [name for name in FILES if name.startswith("gradients/")] + ["find_bounds.py", "find_levels.py"]
READERS = {"gradients/walk_rows.py", "find_bounds.py"}
"""Which have a source of rows, that the kernel opens."""


def test_walks_are_charged_noised_and_read_by_the_kernel_alone():
    for name in WALKS:
        found = list(imports(name, FILES[name]))
        assert not {"paid", "charge"} & {given for _, given in found}, name
        assert not any(module == "pymc_dp.kernel.noise" for module, _ in found), name
        assert not any(module == "pymc_dp.rows.gate" for module, _ in found) or name in READERS
