"""``python -m benchmarks.real``: what is missing of the releases of real tables, and a summary of all of them."""

from __future__ import annotations

import argparse
import subprocess
import warnings

from benchmarks.real import measure
from benchmarks.real.reference import add_missing
from benchmarks.real.tables import TABLES


def described() -> str:
    """Return the version of the checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=8"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument("tables", nargs="*", help="names, or how they begin; all if there is none")
    parser.add_argument("--epsilon", type=float, nargs="+", default=measure.EPSILONS)
    parser.add_argument("--releases", type=int, default=measure.RELEASES)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--label", default=None, help="the version of the algorithm; by default that of the checkout")
    parser.add_argument("--summary", action="store_true", help="measure nothing")
    parser.add_argument("--page", nargs=2, metavar="LABEL", help="print the table of the docs of two versions")
    chosen = parser.parse_args()
    if chosen.page:
        for line in measure.page(*chosen.page):
            print(line)
        return
    label = chosen.label or described()
    warnings.simplefilter("ignore")
    if not chosen.summary:
        begins = tuple(chosen.tables) or ("",)
        names = []
        for name, table in TABLES.items():
            if name.startswith(begins):
                if table.missing:
                    print(f"{name} is left out: {table.missing}")
                else:
                    names.append(name)
        for name in add_missing(names, chosen.workers):
            print(name, "without privacy: done", flush=True)
        work = measure.tasks(names, chosen.epsilon, chosen.releases, label)
        for name in measure.run(work, chosen.workers):
            print(name, "done", flush=True)
    for line in measure.summary(label):
        print(line)


if __name__ == "__main__":
    main()
