"""A file of the package imports only from itself, from what lies left of it, and from what lies beside."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "pymc_dp"
ROOT = Path(__file__).parents[1] / PACKAGE

LAYERS = (
    *("domain", "inspection", "simulation", "families", "rows", "proofs", "accounting", "release", "kernel"),
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
