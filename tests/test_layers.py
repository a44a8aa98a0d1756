"""A file of the package imports only from itself, from what lies left of it, and from what lies beside."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "pymc_dp"
ROOT = Path(__file__).parents[1] / PACKAGE

LAYERS = (
    *("domain", "inspection", "simulation", "families", "rows", "proofs", "accounting", "release"),
    *("transforms", "step_methods", "gradients", "trace", "plots"),
    *("from_draws", "released", "ledgers", "synthesize", "utilities", "answer", "poststratify", "sensitivities"),
    *("advice", "explain", "privatize", "sampling", "find_bounds", "find_levels", "find_map", "annealing", "plan"),
    *("rehearse", "audit", "warm"),
    # Namespaces: they pass on names of other layers.
    *("schedules", "markov", "models"),
)
# Importable by every layer, importing none.
BESIDE = {
    "errors": set(),
    "_validate": {"errors"},
    "_random": {"errors", "_validate"},
    "_interrupts": set(),
    "_lazy": set(),
    "_optional": set(),
    "_version": set(),
    "nuts_samplers": {"errors", "_validate", "_versions"},
    "sampler_arguments": {"errors", "_validate", "nuts_samplers"},
    "_column_bounds": {"errors", "_validate"},
    "_compiling": set(),
    "_display": set(),
    "_frames": {"errors", "_validate"},
    "_documents": {"_display"},
    "_progress": set(),
    "_special": set(),
    "_versions": set(),
    "draws": {"errors"},
    "intervals": {"errors", "_special"},
    "theorems": {"errors", "_validate", "_random"},
    "networks": {"errors", "_validate"},
    "metrics": {"errors", "_validate"},
    "datasets": {"errors", "_validate", "_random", "_optional"},
    "testing": {"errors", "_validate", "_random"},
    "unit": {"errors", "_validate"},
}
ALLOWED = {
    **BESIDE,
    **{layer: {*LAYERS[:position], *BESIDE} for position, layer in enumerate(LAYERS)},
    # The package itself shows the names of all of them.
    "": {*LAYERS, *BESIDE},
    "__main__": {*LAYERS, *BESIDE},
}


def part_of(module: str) -> str:
    """`pymc_dp.trace.scrub` is in `trace`; `pymc_dp` itself is in the part without a name."""
    return f"{module}.".split(".")[1]


def module_name(path: Path, root: Path) -> str:
    names = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def imported_modules(path: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, module of the package), those inside functions and under TYPE_CHECKING included."""
    module = module_name(path, root)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module=source, names=names, level=level):
                base = ".".join(package.split(".")[: package.count(".") + 2 - level]) if level else ""
                origin = ".".join(filter(None, [base, source]))
                # `from pymc_dp import domain` names a part; any other name comes from the package as a whole.
                found = [f"{origin}.{a.name}" if origin == root.name and a.name in ALLOWED else origin for a in names]
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                found = [name]
            case _:
                continue
        yield from ((node.lineno, name) for name in found if name.split(".")[0] == root.name)


def wrong_imports(root: Path) -> list[str]:
    wrong = []
    for path in sorted(root.rglob("*.py")):
        own = part_of(module_name(path, root))
        for line, imported in imported_modules(path, root):
            other = part_of(imported)
            if other not in ALLOWED.get(own, set()) | {own} or (other == "" and own != ""):
                wrong.append(f"{path.relative_to(root)}:{line} imports {imported}")
    return wrong


def files_without_layer(root: Path) -> list[str]:
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*.py"))
        if part_of(module_name(path, root)) not in ALLOWED
    ]


def test_imports_point_from_right_to_left():
    assert wrong_imports(ROOT) == []


def test_every_file_belongs_to_a_layer():
    assert files_without_layer(ROOT) == []


@pytest.fixture
def planted(tmp_path):
    """A function that writes one file into an otherwise empty package and returns the package's folder."""

    def plant(name: str, text: str) -> Path:
        path = tmp_path / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return tmp_path / PACKAGE

    return plant


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("domain.py", "from pymc_dp.trace.scrub import scrub"),
        ("domain.py", "import pymc_dp.trace"),
        ("domain.py", "import numpy, pymc_dp.trace.scrub as s"),
        ("domain.py", "from pymc_dp import trace"),
        ("domain.py", "from . import trace"),
        ("domain.py", "from .trace import scrub"),
        ("domain.py", "def f():\n    from pymc_dp import sampling"),
        ("domain.py", "if TYPE_CHECKING:\n    from pymc_dp.plots import budget"),
        ("domain.py", "import importlib\nimportlib.import_module('pymc_dp.sampling')"),
        ("families/poisson.py", "from ..sensitivity import statistics"),
        ("families/poisson.py", "from ..sensitivity.statistics import delta"),
        ("families/__init__.py", "from ..sensitivity import statistics"),
        ("families/deep/poisson.py", "from ... import sensitivity"),
        ("step_methods/gibbs/tempered.py", "from pymc_dp.trace import scrub"),
        ("plots/_budget.py", "import pymc_dp"),
        ("plots/_budget.py", "from pymc_dp import Budget"),
        ("plots/_budget.py", "from pymc_dp.sampling import sample"),
        ("sampling.py", "from pymc_dp.audit import audit"),
        ("errors.py", "from pymc_dp._validate import number"),
        ("_random.py", "from pymc_dp.testing import insecure_randomness"),
        ("testing.py", "from pymc_dp.domain import Domain"),
        ("datasets/adult.py", "from pymc_dp.theorems import laplace"),
        ("elsewhere.py", "from pymc_dp.domain import Domain"),
    ],
)
def test_wrong_import_is_found(planted, name, text):
    found = wrong_imports(planted(name, text))
    assert len(found) == 1
    assert found[0].startswith(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trace/scrub.py", "from pymc_dp.domain import Domain\nfrom pymc_dp.transforms import prior_model"),
        ("trace/scrub.py", "from . import manifest\nfrom .manifest import Manifest\nfrom pymc_dp.trace import report"),
        ("trace/__init__.py", "from .scrub import scrub\nfrom ..errors import TraceError"),
        ("domain.py", "from pymc_dp import _validate\nfrom pymc_dp.errors import DomainError\nimport pymc_dp._random"),
        ("domain.py", "import pymc_dp_extras, numpy\nfrom pymc_dp_extras import trace"),
        ("testing.py", "from pymc_dp import _random"),
        ("audit/canary.py", "from pymc_dp.sampling import sample\nfrom pymc_dp.plan import plan"),
        ("__init__.py", "from pymc_dp.sampling import sample\nfrom . import theorems, datasets, testing"),
    ],
)
def test_right_import_is_let_through(planted, name, text):
    assert wrong_imports(planted(name, text)) == []


def test_file_without_layer_is_found(planted):
    planted("domain.py", "")
    planted("trace/__init__.py", "")
    assert files_without_layer(planted("utils.py", "")) == ["utils.py"]


def test_layers_are_reached_from_the_left_only():
    for position, layer in enumerate(LAYERS):
        assert not ALLOWED[layer] & set(LAYERS[position:])
    assert not any(others & set(LAYERS) for others in BESIDE.values())
