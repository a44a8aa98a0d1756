"""``python _run.py MODULE NAME job.npz answer.npz``: fit every table of a job with one peer, in this interpreter."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]


def answer(module: str, name: str, path: str) -> dict[str, np.ndarray]:
    from _job import Job

    try:
        peers = {peer.name: peer for peer in importlib.import_module(module).PEERS}
    except (ImportError, AttributeError) as error:
        # The caller knows this exit status: a peer that is not there is a line of the table, not a failure.
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(3)
    job, peer = Job.load(Path(path)), peers[name]
    fit = (peer.audited if job.small and job.kind in peer.audited else peer.fits)[job.kind]
    # Of this process, all of whose work is on one thread: what else the machine does matters little. The first fit has
    # to wait for all that is imported and compiled, here and by those that load only when they are called.
    draws, seconds, first = [], [], 0.0
    for table in range(len(job.x)):
        for run in range(job.runs):
            start = time.process_time()
            draws.append(np.atleast_2d(fit(job, job.x[table], job.y[table], 1000 * table + run)))
            seconds.append(time.process_time() - start)
            first = first or time.process_time()
    versions = [f"{package} {_version(package)}" for package in peer.packages]
    times = {"seconds": np.array(seconds), "first": np.array(first)}
    return {"draws": np.array(draws), **times, "versions": np.array(versions, dtype=str)}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of this tree"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        np.savez(sys.argv[4], **answer(*sys.argv[1:4]))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
