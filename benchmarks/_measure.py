"""Ratios of things measured turn by turn in one run: on a shared machine absolute times mean little."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Times:
    """Seconds per call of several things, measured in turn: of the clock, and of all cores together."""

    seconds: dict[str, list[float]]
    of_cores: dict[str, list[float]] = field(default_factory=dict)

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def least(self, name: str) -> float:
        return min(self.seconds[name])

    def ratio(self, name: str, reference: str) -> tuple[float, float]:
        """Median of the ratios of neighbouring turns, and ratio of the least times."""
        pairs = zip(self.seconds[name], self.seconds[reference], strict=True)
        return statistics.median(a / b for a, b in pairs), self.least(name) / self.least(reference)

    def ratio_of_cores(self, name: str, reference: str) -> float:
        """Median of the ratios of neighbouring turns, of seconds of all cores."""
        return statistics.median(a / b for a, b in zip(self.of_cores[name], self.of_cores[reference], strict=True))


def in_turn(things: Mapping[str, Callable[[], Any]], *, repeats: int = 7, calls: int = 1) -> Times:
    """Call everything once to warm up, then in turn `repeats` times, `calls` calls each time."""
    for call in things.values():
        call()
    seconds, of_cores = ({name: [] for name in things} for _ in range(2))
    for _ in range(repeats):
        for name, call in things.items():
            gc.collect()
            start, start_of_cores = time.perf_counter(), time.process_time()
            for _ in range(calls):
                call()
            seconds[name].append((time.perf_counter() - start) / calls)
            of_cores[name].append((time.process_time() - start_of_cores) / calls)
    return Times(seconds, of_cores)


def peak_bytes(call: Callable[[], Any]) -> int:
    """Most memory that `call` held beyond what was there before."""
    call()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@dataclass
class Report:
    """A table of what was measured beside its target; `finish` prints it and tells whether every target was met."""

    title: str
    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, what: str, measured: str, target: str = "", *, met: bool | None = None) -> None:
        self.rows.append((what, measured, target, {None: "", True: "ok", False: "MISSED"}[met]))

    def at_most(self, what: str, value: float, limit: float, unit: str = "", digits: int = 2) -> None:
        self.add(what, f"{value:.{digits}f}{unit}", f"<= {limit:g}{unit}", met=value <= limit)

    def at_least(self, what: str, value: float, limit: float, unit: str = "", digits: int = 3) -> None:
        self.add(what, f"{value:.{digits}f}{unit}", f">= {limit:g}{unit}", met=value >= limit)

    def finish(self) -> bool:
        widths = [max(len(row[i]) for row in [*self.rows, ("what", "measured", "target", "")]) for i in range(4)]
        print(self.title)
        for row in [("what", "measured", "target", ""), *self.rows]:
            cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]), row[3]]
            print("  " + "  ".join(cells).rstrip())
        print(flush=True)
        return all(row[3] != "MISSED" for row in self.rows)
