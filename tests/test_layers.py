"""A file of the package imports only from itself, from what lies left of it, and from what lies beside."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "pymc_dp"
ROOT = Path(__file__).parents[1] / PACKAGE

LAYERS = (
    *("domain", "inspection", "simulation", "families", "rows", "accounting", "release"),
    *("transforms", "samplers", "step_methods", "gradients", "trace", "plots"),
    *("from_draws", "released", "ledgers", "synthesize", "utilities", "answer", "poststratify", "sensitivities"),
    *("advice", "explain", "privatize", "sampling", "find_bounds", "find_levels", "find_map", "annealing", "plan"),
    *("rehearse", "audit", "warm"),
    # Namespaces: they pass on names of other layers.
    *("schedules", "markov", "models"),
)
# Importable by every layer; the kernel imports none.
CHECKS = {"kernel", "errors", "_validate"}
BESIDE = {
    "kernel": set(),
    **{key: {"kernel"} for key in ("errors", "before_kernel")},
    **{key: set() for key in ("_interrupts", "_lazy", "_optional", "_version", "_compiling", "_display")},
    **{key: set() for key in ("_progress", "_special", "_versions")},
    **dict.fromkeys(("_column_bounds", "_frames", "networks", "metrics", "unit"), CHECKS),
    **{"_validate": CHECKS, "draws": CHECKS, "_documents": {"_display"}},
    **{key: {*CHECKS, "_random"} for key in ("theorems", "testing")},
    "_random": CHECKS,
    "nuts_samplers": {*CHECKS, "_versions"},
    "sampler_arguments": {*CHECKS, "nuts_samplers"},
    "datasets": {*CHECKS, "_random", "_optional"},
}
ALLOWED = {
    **BESIDE,
    **{layer: {*LAYERS[:position], *BESIDE} for position, layer in enumerate(LAYERS)},
    **{key: {*LAYERS, *BESIDE} for key in ("", "__main__")},  # the package itself shows the names of all of them
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


def test_imports_point_from_right_to_left_and_every_file_belongs_to_a_layer():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        own = part_of(module_name(path, ROOT))
        assert own in ALLOWED, path
        for line, imported in imported_modules(path, ROOT):
            other = part_of(imported)
            if other not in ALLOWED[own] | {own} or (other == "" and own != ""):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {imported}")
    assert wrong == []
