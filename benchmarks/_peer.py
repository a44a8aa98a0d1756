"""Peers that cannot live in our environment, asked in their own: ``.venv-NAME`` beside the project."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent / "peers"))

from _job import Job as Job
from _job import rows_of as rows_of

HERE = Path(__file__).resolve().parent
NOT_THERE, LIMIT = 3, 3600
THREADS = {
    **{f"{name}_NUM_THREADS": "1" for name in ("NUMBA", "OMP", "OPENBLAS", "MKL")},
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def interpreter(environment: str) -> str:
    """The one that ``PYMC_DP_PEER_NAME`` names, or that of ``.venv-NAME``; without either, this one."""
    given = os.environ.get(f"PYMC_DP_PEER_{environment.upper()}") if environment else None
    own = HERE.parent / f".venv-{environment}" / "bin" / "python"
    return given or (str(own) if environment and own.exists() else sys.executable)


def answer_of(environment: str, module: str, name: str, job: Job, path: Path, *, fresh: bool = False) -> str:
    """Write the answer of a peer to `path`; return nothing, or the last line of what it says is wrong.

    A fresh one finds nothing that was compiled before.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "job.npz"
        job.save(asked)
        command = [interpreter(environment), str(HERE / "peers" / "_run.py"), module, name, str(asked), str(path)]
        settings = {**os.environ, **THREADS, **(_empty_caches(folder) if fresh else {})}
        try:
            done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=LIMIT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return type(error).__name__
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    if done.returncode == NOT_THERE:
        return f"not installed ({last})"
    return last if done.returncode else ""


def _empty_caches(folder: str) -> dict[str, str]:
    flags = ",".join([*filter(None, [os.environ.get("PYTENSOR_FLAGS")]), f"base_compiledir={folder}/pytensor"])
    places = ("NUMBA_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    return {"PYTENSOR_FLAGS": flags, **{name: f"{folder}/{name.lower()}" for name in places}}


def ask(environment: str, module: str, name: str, job: Job) -> dict[str, np.ndarray] | str:
    """The draws and seconds of a peer, or what is wrong: (tables x runs, ..., d) and (tables x runs,)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.npz"
        if wrong := answer_of(environment, module, name, job, path):
            return wrong
        with np.load(path) as held:
            return dict(held)


def diffprivlib(
    kind: str, x: np.ndarray, y: np.ndarray, epsilon: float, *, runs: int = 1, ridge: float | None = None
) -> tuple[np.ndarray, np.ndarray] | str:
    """Coefficients of fits by diffprivlib, (tables x runs, d), and the seconds of each; or why there are none."""
    job = Job(kind=kind, x=x, y=y, epsilon=epsilon, delta=0.0, runs=runs, ridge=ridge)
    found = ask("diffprivlib", "of_diffprivlib", "diffprivlib", job)
    return found if isinstance(found, str) else (found["draws"][:, 0], found["seconds"])
