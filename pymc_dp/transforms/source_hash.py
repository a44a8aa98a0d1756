"""What a compiled function does, as a hash: by it compiled models and loops that call the function are kept on disk.

PyTensor asks every operation for such a key and never looks at the function itself: were the key the same for two
versions of this package, the second would run what the first compiled, or fail where a file has been renamed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any


def source_hash(function: Any) -> str | None:
    """Hash the source of a function and of all of its package that it may call; None where a source is missing.

    Whole files count, and their names: that in which the function stands, and those from which the functions in it
    come. Classes are not followed to other files: compiled code has none.
    Numbers that are imported count by their values. A function with numbers of its own, which are in no source, has no
    hash.

    Parameters
    ----------
    function : callable
        What Numba compiles, as its decorators return it.
    """
    written = getattr(function, "py_func", None) or function.__wrapped__
    module, code = sys.modules.get(written.__module__), written.__code__
    if module is None or getattr(module, "__file__", None) is None or code.co_freevars:
        return None
    options = sorted(getattr(function, "targetoptions", {}).items())
    found = sha256(f"{written.__qualname__} {code.co_firstlineno} {options}".encode() + code.co_code)
    for each in _reached(module):
        path = Path(str(each.__file__))
        if not path.is_file():
            return None
        found.update(each.__name__.encode() + path.read_bytes())
        found.update(repr(_numbers(each)).encode())
    return found.hexdigest()


def _reached(module: ModuleType) -> list[ModuleType]:
    """Return a module, and those of its package that the functions in it come from, in order of names."""
    package = module.__name__.partition(".")[0]
    found, ahead = {module.__name__: module}, [module]
    while ahead:
        for name in _origins(ahead.pop()):
            if name not in found and name.partition(".")[0] == package and name in sys.modules:
                found[name] = sys.modules[name]
                ahead.append(found[name])
    return [found[name] for name in sorted(found)]


def _origins(module: ModuleType) -> Iterator[str]:
    for value in vars(module).values():
        if (
            callable(value)
            and not isinstance(value, type)
            and isinstance(origin := getattr(value, "__module__", None), str)
        ):
            yield origin


def _numbers(module: ModuleType) -> list[tuple[str, float]]:
    return sorted((name, value) for name, value in vars(module).items() if isinstance(value, (int, float)))


__all__ = ["source_hash"]
