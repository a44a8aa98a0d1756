"""How much of the package one call enters, warm: distinct functions, lines run, files, and hops between files.

    python -m benchmarks.entered

Of ``dp.privatize`` of a Bernoulli variable; and how many of the functions are the kernel's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pymc as pm

import pymc_dp as dp
from pymc_dp.release.paid import forget_releases

PACKAGE = str(Path(dp.__file__).parent)


def entered(call: Callable[[], Any]) -> dict[str, int]:
    """Count what a call enters of the package."""
    functions, lines, hops, at = set[CodeType](), set[tuple[str, int]](), 0, ""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal hops, at
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE):
            return None
        functions.add(frame.f_code)
        lines.add((name, frame.f_lineno))
        hops, at = hops + (name != at), name
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    own = [code for code in functions if "/kernel/" in code.co_filename]
    return {
        "functions": len(functions),
        "of these in the kernel": len(own),
        "lines": len(lines),
        "files": len({code.co_filename for code in functions}),
        "files of the kernel": len({code.co_filename for code in own}),
        "hops between files": hops,
    }


def main() -> None:
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 2, 2), observed=np.arange(100) % 2)

    def call() -> None:
        forget_releases()
        dp.privatize(model, epsilon=1.0)

    call()
    for name, count in entered(call).items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    main()
