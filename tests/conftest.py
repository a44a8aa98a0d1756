"""Shared by all tests; nothing here compiles."""

import os
import shutil
import signal
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from types import SimpleNamespace

import numpy as np
import pytensor
import pytest
from pytensor.link.c.op import COp

from pymc_dp.rows.gate import opened_gate
from pymc_dp.samplers.chain_account import Token
from pymc_dp.transforms.trial import Trial


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", type=int, default=0, metavar="N", help="list the N tests and files of most CPU time")


def pytest_configure() -> None:
    """What is kept of stored ledgers is kept apart from that of the user."""
    os.environ["XDG_STATE_HOME"] = os.environ["LOCALAPPDATA"] = tempfile.mkdtemp()
    os.environ["COLUMNS"] = "100"  # pages are as wide as the terminal


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases that are slow or exhaustive, before pytest looks at marks; a test named by ``::`` is left whole.

    Of a test marked `few(n)`, n cases are quick and the others slow. Of the slow cases of a test a tenth, at least one,
    runs in ``make test-slow``; `slow(cases=n)` or `few(n, cases=m)` asks for another number, or for "all". The others
    are exhaustive.
    """
    if any("::" in argument for argument in config.args):
        return
    for cases, marker in _cases_marked(items, "few"):
        (count,) = marker.args
        for item in _all_but(count, cases):
            item.add_marker(pytest.mark.slow(**marker.kwargs))
    for cases, marker in _cases_marked(items, "slow"):
        count = marker.kwargs.get("cases", max(1, len(cases) // 10))
        for item in _all_but(len(cases) if count == "all" else count, cases):
            item.add_marker("exhaustive")


def _all_but(count: int, cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return what is left of the cases without so many of them, spread evenly: the same on every run."""
    n = len(cases)
    return [item for place, item in enumerate(cases) if (place + 1) * count // n == place * count // n]


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
def begins() -> Iterator[None]:
    """Let a test begin chains itself, as if it had taken their tokens."""
    with Token(0).begins():
        yield


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let every folder have so many bytes left."""
    return lambda free: monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
