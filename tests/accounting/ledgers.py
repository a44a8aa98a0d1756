"""Where tests keep ledgers: a file, and a PostgreSQL server of their own where its programs are installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, or None."""
    found = shutil.which("pg_ctl")
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    return Path(found).parent if found else versions[-1].parent if versions else None


@contextmanager
def server() -> Iterator[str]:
    """Run a server in a folder of its own, and hand out the URL of a database; skip the test where that cannot be."""
    pytest.importorskip("psycopg")
    where = programs()
    if where is None:
        pytest.skip("PostgreSQL is not installed")
    # The server refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user and not shutil.which("runuser"):
        pytest.skip("no other user to run PostgreSQL as")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    if user:
        shutil.chown(folder, "postgres")
    data, log = folder / "data", folder / "log"

    def run(*arguments: str) -> None:
        subprocess.run([*user, *arguments], check=True, capture_output=True, timeout=120, cwd=folder)

    run(str(where / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    run(str(where / "pg_ctl"), "-D", str(data), "-l", str(log), "-w", "-o", options, "start")
    try:
        yield f"postgresql:///postgres?host={folder}&user=postgres"
    finally:
        run(str(where / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)
