"""``python -m pymc_dp``: what is done outside of any program, with files that somebody else may have made."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import ArgumentParser, HelpFormatter, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, override

from pymc_dp._version import __version__

if TYPE_CHECKING:
    import xarray as xr

EPILOG = """\
exit status: 0 where all is well, 1 where a check failed or a trace must not be published, 2 where a command could not
be run.

examples:
  python -m pymc_dp report public.nc --save statement.html
  python -m pymc_dp verify public.nc --ledger budget.sqlite
  python -m pymc_dp ledger show budget.sqlite
"""
TRACE = "what idata.dp.publish wrote, or a trace saved otherwise: a .nc file, or a .zarr folder"
LEDGER = "what dp.Ledger.create made: a file, or a postgresql:// address"
VERIFY = """\
Look at a trace that somebody published, one line a check: that its record and all of its contents are those of its
manifest, and that the events that it records cost no more than the privacy loss that it states. With --ledger also that
every line of the ledger has its hash, and that the line which the trace names was charged for it.

This finds what was changed by hand or by mistake. It is no signature: whoever can write the file can write a record,
events and a manifest that agree. A ledger that somebody else keeps is a witness of more.
"""


class _Paragraphs(HelpFormatter):
    """As wide as the terminal; examples stay as they are."""

    @override
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        parts = text.strip().split("\n\n")
        return "\n\n".join(part if "\n  " in part else fill(part, width, indent) for part in parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    given = _parser().parse_args(arguments)
    try:
        code: int = given.run(given)
    except Exception as error:
        from pymc_dp.errors import PrivacyError

        kind = "" if isinstance(error, PrivacyError) else f"{type(error).__name__}: "
        print(f"{_parser().prog}: {kind}{' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return code


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m pymc_dp",
        description="Differentially private inference for PyMC models.",
        epilog=EPILOG,
        formatter_class=_Paragraphs,
    )
    parser.add_argument("--version", action="version", version=f"pymc_dp {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    report = commands.add_parser(
        "report",
        help="say what a trace guarantees, or write that as a document",
        description="Print what a trace guarantees, for what price, on which assumptions; or write it as a document. "
        "The exit status is 1 where it says that the trace must not be published.",
    )
    report.add_argument("trace", help=TRACE)
    report.add_argument("--save", metavar="FILE", help="write it there: ends in .md, .html, .tex or .json")
    report.add_argument("--dataset", metavar="NAME", help="name of the data set; by default that of the ledger")
    report.set_defaults(run=_report)

    verify = commands.add_parser(
        "verify",
        help="check that a trace is what was published, and what it cost",
        description=VERIFY,
        formatter_class=_Paragraphs,
    )
    verify.add_argument("trace", help=TRACE)
    verify.add_argument("--ledger", metavar="LEDGER", help=LEDGER)
    verify.set_defaults(run=_verify)

    ledger = commands.add_parser("ledger", help="look into a ledger", description="Look into a ledger.")
    actions = ledger.add_subparsers(title="commands", required=True, metavar="COMMAND")
    show = actions.add_parser(
        "show",
        help="what was spent, by whom, and what is left",
        description="Show what was spent, by whom and what for, and what is left. Nothing is changed.",
    )
    show.add_argument("ledger", help=LEDGER)
    show.add_argument("--dataset", metavar="NAME", help="which data set; by default all that it has")
    show.set_defaults(run=_show)

    warm = commands.add_parser("warm", help="compile the package's kernels, once for this machine")
    warm.set_defaults(run=_warm)
    return parser


def _trace(name: str) -> xr.DataTree:
    """Read a trace; one that cannot be read is an error of the package."""
    import xarray as xr

    from pymc_dp._optional import require
    from pymc_dp.errors import ArgumentError

    if not Path(name).exists():
        raise ArgumentError(f"There is no file {name}. Give a trace: a .nc file or a .zarr folder.")
    if not os.access(name, os.R_OK):
        raise ArgumentError(f"This account has no permission to read {name}. Ask whoever owns it, or give a copy.")
    engine = "zarr" if Path(name).suffix == ".zarr" else "netcdf4"
    if engine == "zarr":
        try:
            require("zarr", by="A .zarr folder")
        except ImportError as error:
            raise ArgumentError(f"{error}.") from None
    try:
        with warnings.catch_warnings(action="ignore"), xr.open_datatree(name, engine=engine) as tree:
            return tree.load()
    except Exception as error:  # each reader has errors of its own
        raise ArgumentError(
            f"{name} cannot be read as a trace ({type(error).__name__}). Give a .nc file or a .zarr folder."
        ) from None


def _report(given: Namespace) -> int:
    from pymc_dp import _validate
    from pymc_dp.errors import ArgumentError
    from pymc_dp.trace.accessor import PrivacyAccessor
    from pymc_dp.trace.statement import ENDINGS

    if given.dataset is not None and given.save is None:
        raise ArgumentError("--dataset names the data set in a document. Give --save as well.")
    if given.dataset is not None:
        _validate.text("--dataset", given.dataset)
    if given.save is not None:
        _validate.folder("--save", _validate.path("--save", given.save, ENDINGS))
    report = PrivacyAccessor(_trace(given.trace)).report()
    print(report if given.save is None else f"Written: {report.save(given.save, dataset=given.dataset)}")
    return int(not report.publishable)


def _verify(given: Namespace) -> int:
    from pymc_dp.accounting import Ledger
    from pymc_dp.accounting.book import store_of
    from pymc_dp.errors import ArgumentError
    from pymc_dp.trace.verify import verify

    def opened(dataset: str) -> Ledger:
        if dataset not in held:
            raise ArgumentError(
                f"{given.ledger} has none of {dataset!r}, which the trace names. Give the one that paid."
            )
        return Ledger.open(given.ledger, dataset=dataset)

    tree = _trace(given.trace)
    # Where there is none, nothing is said of the trace.
    held = sorted(store_of(given.ledger).ledgers()) if given.ledger is not None else []
    failed = 0
    for check in verify(tree, opened if given.ledger is not None else None, held):
        failed += check.outcome == "FAILED"
        print(check)
    print(f"{failed} check{'s' * (failed != 1)} FAILED." if failed else "No check failed.")
    return int(failed > 0)


def _show(given: Namespace) -> int:
    from pymc_dp import _validate
    from pymc_dp.accounting import Ledger
    from pymc_dp.accounting.book import store_of
    from pymc_dp.accounting.ledger_texts import page

    held = sorted(store_of(given.ledger).ledgers())
    for name in held if given.dataset is None else [_validate.choice("--dataset", given.dataset, held)]:
        print(page(Ledger.open(given.ledger, dataset=name)).text())
    return 0


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
