"""Shared by all tests; nothing here compiles."""

import datetime
import json
import os
import shutil
import signal
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytensor
import pytest
from pytensor.link.c.op import COp

from pymc_dp.rows.gate import opened_gate
from pymc_dp.transforms.trial import Trial

PARTS = 10
"""A slow test runs every day another part, one in so many, of its cases, at least one; `--whole` runs all.

`few(n, parts=3)` or `slow(parts=3)` asks for other parts: a test with one case then runs every third day.
"""
DEAR = Path(__file__).with_name("dear.json")
"""CPU seconds of quick tests that take more than `MOST`, as last measured by ``--dear``: they run by turns.

Every day another eighth of them; those marked `always` every day.
"""
MOST, TURNS = 0.3, 8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="all cases of slow and of dear tests, not those of today")
    parser.addoption("--cpu", type=int, default=0, metavar="N", help="list the N tests and files of most CPU time")
    parser.addoption("--dear", action="store_true", help=f"note CPU seconds of the tests that run in {DEAR.name}")


def pytest_configure() -> None:
    """The day is that of the first process: its workers choose the same tests, also at midnight.

    What is kept of stored ledgers is kept apart from that of the user.
    """
    os.environ["XDG_STATE_HOME"] = os.environ["LOCALAPPDATA"] = tempfile.mkdtemp()
    os.environ["COLUMNS"] = "100"  # pages are as wide as the terminal
    os.environ.setdefault("PYMC_DP_DAY", str(datetime.datetime.now(tz=datetime.UTC).date().toordinal()))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the cases that run: before pytest looks at marks, for it sets some."""
    if config.getoption("--whole") or any("::" in argument for argument in config.args):
        return
    for cases, marker in _cases_marked(items, "few"):
        (count,) = marker.args
        for place, item in enumerate(cases):
            if (place + 1) * count // len(cases) == place * count // len(cases):
                item.add_marker(pytest.mark.slow(**marker.kwargs))
    today = int(os.environ["PYMC_DP_DAY"])
    left = {
        item
        for cases, marker in _cases_marked(items, "slow")
        for place, item in enumerate(cases, zlib.crc32(cases[0].originalname.encode()))  # not all on one day
        if (place - today) % marker.kwargs.get("parts", min(PARTS, len(cases)))
    }
    others = {name for place, name in enumerate(json.loads(DEAR.read_text())) if (place - today) % TURNS}
    left |= {
        item
        for item in items
        if item.nodeid in others and not item.get_closest_marker("always") and not item.get_closest_marker("slow")
    }
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def _cases_marked(items: list[pytest.Item], name: str) -> list[tuple[list[pytest.Item], pytest.Mark]]:
    """Return the cases of every parametrised test that have a mark, in their order, and the mark."""
    found = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and (marker := item.get_closest_marker(name)):
            found[item.parent, item.originalname].append((item, marker))
    return [([item for item, _ in cases], cases[0][1]) for cases in found.values()]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what a test takes of the process, its fixtures included: others on the machine do not change that."""
    begun = time.process_time()
    item.user_properties.append(("begun", begun))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    begun = dict(item.user_properties)["begun"]
    report.user_properties = [("cpu", time.process_time() - begun)]  # which workers send to the first process
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    most = config.getoption("--cpu")
    tests, files = defaultdict(float), defaultdict(float)
    for report in (one for of_kind in terminalreporter.stats.values() for one in of_kind if hasattr(one, "when")):
        if report.when == "teardown":
            tests[report.nodeid] = dict(report.user_properties).get("cpu", 0.0)  # examples of the package have none
            files[report.nodeid.partition("::")[0]] += tests[report.nodeid]
    for title, found in (("tests", tests), ("files", files)) if most else ():
        terminalreporter.section(f"CPU seconds, {title} ({sum(found.values()):.0f} in all)")
        for name, seconds in sorted(found.items(), key=lambda one: -one[1])[:most]:
            terminalreporter.write_line(f"{seconds:7.2f} {name}")
    if config.getoption("--dear"):
        known = {**json.loads(DEAR.read_text()), **{name: round(seconds, 1) for name, seconds in tests.items()}}
        dear = {name: seconds for name, seconds in known.items() if seconds >= MOST}
        DEAR.write_text(json.dumps(dict(sorted(dear.items(), key=lambda one: (-one[1], one[0]))), indent=1) + "\n")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Derived from the name of the test file: the same on every run and machine, another in every file."""
    return zlib.crc32(request.path.name.encode())


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True, scope="session")
def constants_folded_by_numpy() -> Iterator[None]:
    """PyTensor folds constants by C, a compilation each; what runs often is compiled by Numba.

    Without a C compiler at all it would not fuse operations, and Numba would have many more functions to compile.
    """
    made = COp.make_thunk

    def plain(self, node, storage_map, compute_map, no_recycling, impl=None):
        return made(self, node, storage_map, compute_map, no_recycling, impl=impl or "py")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(COp, "make_thunk", plain)
        yield


@pytest.fixture(autouse=True)
def settings_stay_as_they_were() -> Iterator[None]:
    """What one test changes for good, all that follow run with: 17 times slower, once, and nobody knew why."""
    before = pytensor.config.mode, pytensor.config.cxx, pytensor.config.floatX
    yield
    assert (pytensor.config.mode, pytensor.config.cxx, pytensor.config.floatX) == before


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """Where tests run in the background, or by a service, a shell has told them to ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def no_progress_bars() -> Iterator[None]:
    """PyMC draws its bars with rich, for which each bar is a thread and a screenful of log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rich.progress.Progress.start", lambda self: None)
        patch.setattr("rich.progress.Progress.stop", lambda self: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def graphs_do_not_note_where_they_were_built() -> Iterator[None]:
    """PyTensor reads the stack at every operation it makes, a twentieth of the suite's time."""
    with pytensor.config.change_flags(traceback__limit=0):
        yield


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Graphs that are used a few times are not compiled."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(autouse=True)
def trials_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Private models that are not sampled are not tried: hundreds of tests would wait seconds each for the same answer.

    Those of `dp.sample` are. Tests of trials themselves override this fixture.
    """
    take = Trial._take
    monkeypatch.setattr(Trial, "_take", lambda self, model: self._compiled and take(self, model))


@pytest.fixture
def paid() -> Iterator[None]:
    """Let a test read private values itself, as if it had charged a budget."""
    with opened_gate():
        yield


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let every folder have so many bytes left."""
    return lambda free: monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
