"""Write all findings anew: ``make golden``, or ``python -m tests.golden.make [topic ...]``, from the root.

Saved releases and traces are left as they are: that what was written once is still read is what they are for. A file
that is missing is made.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import pytensor

from tests.golden import saved
from tests.golden.events import COSTS
from tests.golden.explanations import EXPLANATIONS
from tests.golden.plain import differences, read, written
from tests.golden.releases import RELEASES
from tests.golden.samplers import SAMPLED
from tests.golden.topics import Topic

TOPICS = {topic.name: topic for topic in (COSTS, EXPLANATIONS, RELEASES, SAMPLED, saved.SAVED, saved.NEW_TRACES)}
MOST_SHOWN = 20
LONG = 4.0
"""Seconds of the processor that no entry should take: all together have five minutes."""


def remake(topic: Topic) -> None:
    """Write one file, and say what of it is new."""
    found, seconds = {}, {}
    for name in topic.entries:
        began = time.process_time()
        found[name] = topic.found(name)
        seconds[name] = time.process_time() - began
    before = read(topic.path) if topic.path.exists() else {}
    changed = list(differences(before, found))
    topic.path.write_text(written(found), encoding="utf-8")
    print(f"{topic.path.name}: {len(found)} entries, {len(changed)} differences, {sum(seconds.values()):.0f} s")
    for name in (name for name, taken in seconds.items() if taken > LONG):
        print(f"  {name!r} took {seconds[name]:.1f} s")
    for line in changed[:MOST_SHOWN] if before else ():
        print(f"  {line}")


def main(names: Sequence[str]) -> None:
    with pytensor.config.change_flags(cxx=""):  # constants are folded without a compilation for each
        saved.remake()
        for name in names or TOPICS:
            remake(TOPICS[name])


if __name__ == "__main__":
    main(sys.argv[1:])
