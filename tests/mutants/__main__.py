"""Make each mistake of `faults`, one at a time, and see which quick test notices: ``make mutants``.

Results are kept in `results.json`, so that a run goes on where it was stopped. That a test notices a mistake stands as
long as the package and that test file do; that none does, as long as the package and all tests do. A test that fails
without a mistake too notices nothing; it is left out, and the mistake is tried again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.mutants.copied import HERE, PACKAGE, ROOT, Copied, kept_files, tree_hash
from tests.mutants.fault import Fault
from tests.mutants.faults import FAULTS

RESULTS = ROOT / HERE / "results.json"
FOLDER = ROOT / "outputs" / "mutants"
SECONDS = 240
"""Of the processor, for each mistake."""
ANY = 1e9
"""Seconds that a result stands for which more time would not change."""
ENOUGH = 0.95
"""Share of the mistakes that have to be noticed."""
UNTOLD = ("tests/calibration/test_gradients.py::test_stored_numbers_are_of_this_version",)
"""Tests that fail for any change of a source, and notice no mistake by that."""
PATIENCE = 8
"""Seconds by the clock for each of the processor, after which a test that waits is ended."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.*?)?|pymc_dp/\S+?\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)
PASSED = re.compile(r"(\d+) passed")


class Results:
    """What was found so far, as a file."""

    def __init__(self, path: Path) -> None:
        self.path, package = path, tree_hash(f"{PACKAGE}/")
        held = json.loads(path.read_text()) if path.exists() else {}
        new = {"package": package, "broken": [], "faults": {}}
        self.found: dict[str, Any] = held if held.get("package") == package else new

    def of(self, fault: Fault, seconds: float = 0.0) -> dict[str, Any] | None:
        """Return what is known of a mistake; not that nothing noticed it in less time than there is now."""
        held = self.found["faults"].get(fault.name)
        stands = held is not None and (held["digest"], held["tests"]) == (fault.digest, _tests_of(held))
        return held if stands and held["tried"] >= seconds else None

    def put(self, fault: Fault, result: dict[str, Any]) -> None:
        self.found["faults"][fault.name] = {"digest": fault.digest, "tests": _tests_of(result), **result}
        self.write()

    @property
    def broken(self) -> list[str]:
        """Tests that fail without any mistake."""
        return self.found["broken"]

    def write(self) -> None:
        self.path.write_text(json.dumps(self.found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def _tests_of(result: dict[str, Any]) -> str:
    """Hash the tests that a result rests on."""
    return tree_hash(result["killed"].partition("::")[0] if "killed" in result else "tests/")


def stages(fault: Fault) -> list[list[str]]:
    """Return test files in the order in which they run: those the fault names, those that name its file, all others."""
    tests = [path for path in kept_files() if re.fullmatch(r"tests/(.*/)?test_\w+\.py", path) and HERE not in path]
    named = [path for one in fault.first for path in tests if path == one or path.startswith(f"{one.rstrip('/')}/")]
    module = fault.file.removesuffix(".py").replace("/", ".")
    room, stem = module.split(".")[1], module.split(".")[-1]
    written = {path: (ROOT / path).read_text() for path in tests}
    word = re.compile(rf"import.*\b{re.escape(stem)}\b|\b{re.escape(module)}\b")
    near = [path for path in tests if word.search(written[path])]
    near += [path for path in tests if path.startswith(f"tests/{room}/") or Path(path).stem == f"test_{stem}"]
    examples = [path for path in kept_files() if path.startswith(f"{PACKAGE}/") and path.endswith(".py")]
    examples = [path for path in examples if ">>>" in (ROOT / path).read_text() and not path.endswith("_jax.py")]
    promises = [path for path in tests if path.startswith(("tests/promises/", "tests/golden/", "tests/audit/"))]
    found, seen = [], set[str]()
    for stage in (named, near, [*promises, *tests, *examples]):
        new = [path for path in dict.fromkeys(stage) if path not in seen]
        seen.update(new)
        found.append(new)
    return [stage for stage in found if stage]


def run(
    paths: list[str],
    copied: Copied,
    environment: dict[str, str],
    seconds: float,
    broken: list[str],
    *,
    first_only: bool = True,
) -> tuple[int | None, str]:
    """Run tests until the first fails: return the exit code, or None where time ran out, and what was written.

    A fork of this process runs them, which has imported what takes most of the time, and nothing of the package.
    """
    asked = ["-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:nbmake", *["-x"] * first_only]
    asked += [f"--deselect={one}" for one in (*UNTOLD, *broken)]
    limit = max(2, int(seconds))
    with tempfile.TemporaryFile() as written:
        sys.stdout.flush()
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of threads, which hold no lock
            child = os.fork()
        if not child:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(written.fileno(), 1)
            os.dup2(written.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))  # of a fork, counted from 0
            _be(copied.tree, {**environment, "COLUMNS": "400"}, [*asked, *paths])
        status = _ended(child, PATIENCE * limit)
        written.seek(0)
        text = written.read().decode(errors="replace")
    return (os.WEXITSTATUS(status) if os.WIFEXITED(status) else None), text


def _be(tree: Path, environment: dict[str, str], arguments: list[str]) -> NoReturn:
    """Be a process that runs pytest in a folder; all that was imported from this one is forgotten."""
    code = 3
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.chdir(tree)
        os.environ.update(environment)
        sys.modules["numba"].core.config.reload_config()  # or it would go on with the folder of compiled functions
        sys.path[:] = [str(tree), *(path for path in sys.path if path not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", PACKAGE)]:
            del sys.modules[name]
        code = int(pytest.main(arguments))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ended(child: int, seconds: float) -> int:
    """Wait for a child so long by the clock, then end it, and whatever it has started."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return status
            time.sleep(0.1)
    except BaseException:  # Ctrl+C, or an end that somebody asks for: no test goes on without us
        os.killpg(child, signal.SIGKILL)
        raise
    os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def import_most() -> None:
    """Import what all tests need: it takes longer than most of them."""
    for name in (
        "pymc",
        "pytensor.link.numba.dispatch",
        "scipy.stats",
        "opendp.mod",
        "xarray",
        "arviz",
    ):
        import_module(name)


def tried(fault: Fault, copied: Copied, results: Results, seconds: float) -> dict[str, Any]:
    """Return what became of a mistake: which test noticed it, or that none did."""
    began, passed = _used(), 0
    with copied.with_fault(fault) as environment:
        for paths in stages(fault):
            code, written = run(paths, copied, environment, seconds - (_used() - began), results.broken)
            passed += sum(map(int, PASSED.findall(written)))
            taken = round(_used() - began, 1)
            if code is None:
                return {"survived": f"no test failed within {seconds:.0f} seconds", "cpu": taken, "tried": seconds}
            if (noticed := FAILED.search(written)) is not None:
                return {"killed": noticed[1], "cpu": taken, "tried": ANY}
            if code not in (0, 5):
                raise RuntimeError(f"{fault.name}: pytest ended with {code}: {written[-2000:]}")
    return {"survived": f"all {passed} tests passed", "cpu": taken, "tried": ANY}


def checked(faults: list[Fault], copied: Copied, results: Results, seconds: float) -> bool:
    """Run the tests that noticed mistakes without any; those that fail noticed nothing, and their results go.

    Returns
    -------
    bool
        Whether all results stand.
    """
    found = {fault.name: result for fault in faults if "killed" in (result := results.of(fault) or {})}
    tests = {result["killed"] for result in found.values() if not result.get("checked")}
    tests = {test for test in tests if test.startswith(("tests/", f"{PACKAGE}/"))}
    if not tests:
        return True
    environment = copied.environment(copied.compiled)
    code, written = run(sorted(tests), copied, environment, seconds * len(tests), [], first_only=False)
    failed = {test for test in tests if test in FAILED.findall(written)}
    if code is None or (code and not failed):
        print(f"Tests could not be run without a mistake: {written[-300:]}")
        return True
    results.found["broken"] = sorted({*results.broken, *failed})
    for name, result in found.items():
        if result["killed"] in failed:
            del results.found["faults"][name]
        elif result["killed"] in tests:
            result["checked"] = True
    results.write()
    return not failed


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(faults: list[Fault], results: Results) -> int:
    """Print what came out; return how many were noticed."""
    found = [(fault, result) for fault in faults if (result := results.of(fault)) is not None]
    survivors = [(fault, result) for fault, result in found if "survived" in result]
    killed = len(found) - len(survivors)
    print(f"\n{killed} of {len(found)} mistakes were noticed; {len(faults) - len(found)} were not tried.")
    for fault, result in survivors:
        print(f"  {fault.name} ({fault.kind}, {fault.file}): {result['survived']}.\n    {fault.breaks}")
    if results.broken:
        print("Tests that fail without a mistake:", *results.broken, sep="\n  ")
    return killed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="PREFIX", help="those whose names begin so")
    parser.add_argument("--list", action="store_true", help="list the mistakes and what is known of each")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the processor, for each mistake")
    asked = parser.parse_args(arguments)
    faults = [fault for fault in FAULTS if fault.name.startswith(asked.only)]
    results = Results(RESULTS)
    if asked.list:
        for fault in faults:
            result = results.of(fault) or {}
            state = "killed" if "killed" in result else "survived" if result else "not tried"
            print(f"{state:9}  {fault.kind:21}  {fault.operation:24}  {fault.name}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    copied, settled = Copied(FOLDER), False
    os.environ.update(copied.environment(copied.compiled))  # before anything is imported that looks at it
    import_most()
    while not settled:
        for number, fault in enumerate(faults, 1):
            if results.of(fault, asked.seconds) is not None:
                continue
            began = time.monotonic()
            result = tried(fault, copied, results, asked.seconds)
            results.put(fault, result)
            state = f"killed by {result['killed']}" if "killed" in result else f"SURVIVED: {result['survived']}"
            taken = f"{result['cpu']:6.1f} s CPU {time.monotonic() - began:6.1f} s"
            print(f"[{number:2}/{len(faults)}] {taken}  {fault.name}: {state}", flush=True)
        settled = checked(faults, copied, results, asked.seconds)
    return 0 if table(faults, results) >= ENOUGH * len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
