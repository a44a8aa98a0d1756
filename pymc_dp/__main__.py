"""``python -m pymc_dp``: what is done once for a machine, outside of any program."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = _parser().parse_args(arguments)
    code: int = given.run(given)
    return code


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m pymc_dp", description="Differentially private inference for PyMC models.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    warm = commands.add_parser("warm", help="compile the package's kernels, once for this machine")
    warm.set_defaults(run=_warm)
    return parser


def _warm(_: Namespace) -> int:
    from pymc_dp.warm import KINDS, warm

    print(f"Fitting {len(KINDS)} small made-up models, so that their kernels are compiled and kept.", flush=True)
    functions, seconds = 0, 0.0
    for found in warm():
        print(f"  {found.kind}: {found.functions} functions compiled, {found.seconds:.1f} s", flush=True)
        functions, seconds = functions + found.functions, seconds + found.seconds
    print(
        f"{functions} functions compiled, {seconds:.0f} s in all." if functions else "Everything was compiled before."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
