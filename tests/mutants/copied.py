"""A copy of the tree in which one file at a time is wrong, and caches that never mix the right and the wrong code."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.mutants.fault import Fault

ROOT = Path(__file__).parents[2]
HERE = "tests/mutants/"
PACKAGE = "pymc_dp"
COMPILES = ("njit", "vectorize", "transforms.jit")
"""A file that names one of these may hold compiled functions."""


def kept_files() -> list[str]:
    """Return the paths of all files that git keeps or would keep."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(path for path in found.split("\0") if path and (ROOT / path).is_file())


def tree_hash(*within: str) -> str:
    """Hash the files of some folders, or some files; the faults are not part of it."""
    found = sha256()
    for path in kept_files():
        if path.startswith(within) and not path.startswith(HERE):
            found.update(path.encode() + b"\0" + sha256((ROOT / path).read_bytes()).digest())
    return found.hexdigest()[:16]


class Copied:
    """A copy of the tree, without the tests of the faults, which would notice each of them.

    Numba keeps compiled functions by the path, the date and the size of the file in which they stand, and does not see
    that what they call has changed. Copies keep their dates, so that a folder of compiled functions serves all faults.
    A fault that a compiled function may see gets a copy of this folder, without all functions that may see it.
    PyTensor keeps its functions by a hash of all sources they call.

    Parameters
    ----------
    folder : Path
        The same on every run: paths are part of what caches go by.
    """

    def __init__(self, folder: Path) -> None:
        self.tree, self.compiled, self.own = folder / "tree", folder / "numba", folder / "numba-of-one"
        shutil.rmtree(self.tree, ignore_errors=True)
        self.compiled.mkdir(parents=True, exist_ok=True)
        for path in kept_files():
            if not path.startswith(HERE):
                (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, self.tree / path)
        self._pytensor = folder / "pytensor"

    def environment(self, compiled: Path) -> dict[str, str]:
        threads = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        return {
            **os.environ,
            **dict.fromkeys(threads, "1"),
            "PYTHONPATH": str(self.tree),
            "NUMBA_CACHE_DIR": str(compiled),
            "PYTENSOR_FLAGS": f"base_compiledir={self._pytensor}",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.tree / ".hypothesis"),
        }

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[dict[str, str]]:
        """Let one file be wrong within, and yield the environment in which to run tests."""
        path = self.tree / fault.file
        right = path.read_text()
        if right.count(fault.old) != 1:
            count = right.count(fault.old)
            raise ValueError(f"{fault.name}: its old text occurs {count} times in {fault.file}, not once.")
        stale = tuple(f"{Path(one).stem}." for one in compiling_files() if fault.file in reached(one))
        compiled = self._compiled_without(stale) if stale else self.compiled
        shutil.rmtree(self.tree / ".hypothesis", ignore_errors=True)
        try:
            path.write_text(right.replace(fault.old, fault.new))
            yield self.environment(compiled)
        finally:
            shutil.copy2(ROOT / fault.file, path)
            if stale:
                self._keep_others(stale)

    def _compiled_without(self, stale: tuple[str, ...]) -> Path:
        """Return a folder with all compiled functions but those of files whose names begin so, in any folder."""
        shutil.rmtree(self.own, ignore_errors=True)
        shutil.copytree(self.compiled, self.own, copy_function=os.link)  # Numba replaces files, and writes into none
        for found in self.own.glob("*/*.nb[ic]"):
            if found.name.startswith(stale):
                found.unlink()
        return self.own

    def _keep_others(self, stale: tuple[str, ...]) -> None:
        """Let other faults have what was compiled meanwhile, of files that do not see this one."""
        for found in self.own.glob("*/*.nb[ic]"):
            place = self.compiled / found.parent.name / found.name
            if not found.name.startswith(stale) and not (place.exists() and place.samefile(found)):
                place.parent.mkdir(exist_ok=True)
                found.replace(place)
        shutil.rmtree(self.own, ignore_errors=True)


@cache
def compiling_files() -> list[str]:
    """Return the files of the package that may hold compiled functions."""
    found = (path for path in kept_files() if path.startswith(f"{PACKAGE}/") and path.endswith(".py"))
    return [path for path in found if any(word in (ROOT / path).read_text() for word in COMPILES)]


@cache
def reached(path: str) -> set[str]:
    """Return a file and all files of the package that what is compiled in it may come from."""
    found, ahead = {path}, [path]
    while ahead:
        new = imported(ahead.pop()) - found
        found |= new
        ahead += new
    return found


@cache
def imported(path: str) -> set[str]:
    """Return the files of the package from which a file imports functions and numbers itself, within functions too.

    Compiled code has no classes.
    """
    found = set[str]()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [one.name for one in node.names if one.name.isupper() or not one.name[0].isupper()]
            found |= {node.module for _ in names[:1]} | {f"{node.module}.{name}" for name in names}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    paths = {name.replace(".", "/") + ".py" for name in found if name.partition(".")[0] == PACKAGE}
    return {one for one in paths if (ROOT / one).is_file()}


__all__ = ["HERE", "PACKAGE", "ROOT", "Copied", "kept_files", "tree_hash"]
