"""What the package says and computes is what it said and computed: a change is meant, or a mistake."""

import pytest

from tests.golden.make import TOPICS
from tests.golden.plain import differences, read
from tests.golden.saved import PUBLISHED, RELEASES
from tests.golden.topics import FOLDER

ENTRIES = [(topic, name) for topic in TOPICS.values() for name in topic.entries]
QUICK = [(topic, name) for topic, name in ENTRIES if name in topic.quick]
SLOW = [(topic, name) for topic, name in ENTRIES if name not in topic.quick]
MOST_SHOWN = 12


def identity(item: object) -> str:
    return item if isinstance(item, str) else item.name


def compare(topic, name):
    kept = read(topic.path)
    if name not in kept:
        pytest.fail(f"{topic.path.name} has no entry {name!r}: run `make golden`.")
    searched = "gaussian" in name or "δ = 1e" in name
    found = list(differences(kept[name], topic.found(name), searched=searched))
    if found:
        shown = [*found[:MOST_SHOWN], *([f"... and {len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else [])]
        places = "\n".join(f"  {line}" for line in shown)
        pytest.fail(
            f"{topic.path.name}, {name!r}: {len(found)} differences (as kept, as it is now):\n{places}\n"
            "If all of them are meant, run `make golden`, read the diff of tests/golden, commit it with the change.",
            pytrace=False,
        )


@pytest.mark.parametrize(("topic", "name"), QUICK, ids=identity)
def test_an_entry_is_as_it_was(topic, name):
    compare(topic, name)


@pytest.mark.slow
@pytest.mark.parametrize(("topic", "name"), SLOW, ids=identity)
def test_a_long_entry_is_as_it_was(topic, name):
    compare(topic, name)


@pytest.mark.parametrize("topic", TOPICS.values(), ids=identity)
def test_every_entry_is_kept_and_computed(topic):
    assert set(read(topic.path)) == set(topic.entries)
    assert set(topic.quick) <= set(topic.entries)


def test_saved_files_are_small():
    assert all((FOLDER / name).stat().st_size < 100_000 for name in (*RELEASES, *PUBLISHED))
