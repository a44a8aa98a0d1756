"""Ledgers that outlive the process: nothing is read that was not spent, nothing is forgotten, nothing changes."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pymc_dp as dp
from pymc_dp.accounting import ApproximateEvent, DiscreteLaplaceEvent, GaussianEvent, PureEvent, ZCDPEvent
from pymc_dp.accounting import high_water as marks
from pymc_dp.accounting.book import store_of
from tests.accounting.ledgers import server

PLACES = ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow(cases="all")])]


@pytest.fixture(scope="module")
def database():
    with server() as url:
        yield url


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    return tmp_path / "budget.sqlite" if request.param == "sqlite" else request.getfixturevalue("database")


def named() -> str:
    """A data set that no other test has."""
    return f"survey {os.urandom(4).hex()}"


@pytest.fixture
def ledger(place):
    return dp.Ledger.create(place, dataset=named(), epsilon=1.0, delta=1e-6)


def spend(ledger, epsilon=0.1, label="counts"):
    return ledger.spend(PureEvent(epsilon=epsilon), label=label, neighbours="replace")


def test_it_outlives_the_object(place):
    dataset = named()
    made = dp.Ledger.create(place, dataset=dataset, epsilon=1.0)
    entry = spend(made, 0.25, "ages")
    opened = dp.Ledger.open(place, dataset=dataset)
    assert opened == made and hash(opened) == hash(made)
    assert opened.history == [entry] and opened.spent == made.spent and opened.remaining == 0.75
    assert entry.seq == 1 and entry.time
    assert opened.head == made.head and opened.head["line"] == 1
    assert repr(dataset) in repr(opened) and "1. ages" in repr(opened) and dataset in opened._repr_html_()
    with pytest.raises(dp.errors.BudgetExceeded, match="at most 0.75"):
        spend(opened, 0.8)
    assert opened.history == [entry]


def test_never_two_budgets_by_a_typo(place):
    dataset = named()
    missing = place.with_name("bugdet.sqlite") if isinstance(place, Path) else place
    with pytest.raises(dp.errors.ArgumentError, match="There is no ledger|holds ledgers"):
        dp.Ledger.open(missing, dataset=dataset)
    if isinstance(place, Path):
        assert not missing.exists()
    dp.Ledger.create(place, dataset=dataset, epsilon=1.0)
    with pytest.raises(dp.errors.ArgumentError, match="already, and a second budget"):
        dp.Ledger.create(place, dataset=dataset, epsilon=2.0)
    other = named()
    dp.Ledger.create(place, dataset=other, epsilon=2.0)
    with pytest.raises(dp.errors.ArgumentError, match="must say which of them"):
        dp.Ledger.open(place)
    assert dp.Ledger.open(place, dataset=other).budget.epsilon == 2.0


def test_shares_limit_who_has_one(ledger):
    ledger.grant("ann", epsilon=0.3)
    ann = ledger.as_("ann", why="ages")
    spend(ann, 0.2)
    assert ann.remaining == pytest.approx(0.1) and ledger.remaining > 0.7
    with pytest.raises(dp.errors.BudgetExceeded, match="share of epsilon=0.3"):
        spend(ann, 0.2)
    spend(ledger, 0.2)
    with pytest.raises(dp.errors.ArgumentError, match="'bob' has no share"):
        ledger.as_("bob")
    with pytest.raises(dp.errors.ArgumentError, match="has a share already"):
        ledger.grant("ann", epsilon=1.0)
    with pytest.raises(dp.errors.ArgumentError, match="within the budget"):
        ledger.grant("bob", epsilon=2.0)
    spend(ledger, 0.55)
    with pytest.raises(dp.errors.BudgetExceeded, match="of a budget of"):
        spend(ann, 0.09)
    assert "share of ann" in repr(ledger)


EVENTS = st.one_of(
    st.floats(1e-4, 0.3).map(lambda epsilon: PureEvent(epsilon=epsilon)),
    st.floats(1e-6, 0.01).map(lambda rho: ZCDPEvent(rho=rho)),
    st.floats(5.0, 100.0).map(lambda scale: DiscreteLaplaceEvent(scale=scale, shifts=(1, 1))),
    st.floats(10.0, 200.0).map(lambda noise: GaussianEvent(noise_multiplier=noise)),
    st.floats(0.01, 0.2).map(lambda epsilon: ApproximateEvent(epsilon=epsilon, delta=1e-8)),
)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(events=st.lists(EVENTS, min_size=1, max_size=12), delta=st.sampled_from([0.0, 1e-6]))
def test_stored_and_in_memory_refuse_alike_bit_for_bit(tmp_path_factory, events, delta):
    place = tmp_path_factory.mktemp("ledgers") / "budget.sqlite"
    stored = dp.Ledger.create(place, dataset="survey", epsilon=1.0, delta=delta)
    memory = dp.Ledger(1.0, delta)
    for event in events:
        outcomes = []
        for ledger in (memory, dp.Ledger.open(place)):
            try:
                entry = ledger.spend(event, label="x", neighbours="replace")
                outcomes.append((entry.alone, entry.added, entry.total))
            except (dp.errors.ArgumentError, dp.errors.BudgetExceeded) as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]
        assert stored._book.state == memory._book.state and stored.remaining == memory.remaining
    assert stored.verify() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dp_entry SET body = '{}' WHERE seq = 1",
        "DELETE FROM dp_entry WHERE seq = 1",
        "DELETE FROM dp_ledger",
        "UPDATE dp_ledger SET dataset = 'other'",
        "INSERT INTO dp_entry SELECT ledger, 7, body, hash FROM dp_entry WHERE seq = 1",
        pytest.param("INSERT OR REPLACE INTO dp_entry SELECT * FROM dp_entry WHERE seq = 1", id="replace an entry"),
        pytest.param("INSERT OR REPLACE INTO dp_ledger SELECT * FROM dp_ledger", id="replace the ledger"),
    ],
)
def test_lines_are_only_added(ledger, place, statement):
    spend(ledger)
    if isinstance(place, Path):
        with sqlite3.connect(place) as connection, pytest.raises(sqlite3.IntegrityError, match="only added to"):
            connection.execute(statement)
        connection.close()
    elif "REPLACE" not in statement:
        psycopg = pytest.importorskip("psycopg")

        of = f"SELECT id FROM dp_ledger WHERE dataset = '{ledger.dataset}'"
        own = statement.replace("WHERE seq = 1", f"WHERE seq = 1 AND ledger = ({of})")
        with psycopg.connect(place) as connection, pytest.raises(psycopg.Error, match="only added to"):
            connection.execute(own)
    assert len(ledger.history) == 1 and ledger.verify() == []


def tampered(place, statement):
    """Change a file as somebody would who drops the triggers first."""
    connection = sqlite3.connect(place)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dp_entry SET body = replace(body, '\"0.1\"', '\"0.01\"') WHERE seq = 1",
        "UPDATE dp_entry SET body = replace(body, '1.0', '9.0') WHERE seq = 0",
        "DELETE FROM dp_entry WHERE seq = 1",
        "DELETE FROM dp_entry",
    ],
)
def test_changed_lines_are_seen(tmp_path, statement):
    place = tmp_path / "budget.sqlite"
    ledger = dp.Ledger.create(place, dataset="survey", epsilon=1.0)
    spend(ledger)
    spend(ledger)
    tampered(place, statement)
    with pytest.raises(dp.errors.PrivacyError, match="was changed after it was written, or lines are missing"):
        dp.Ledger.open(place)
    with pytest.raises(dp.errors.PrivacyError, match="was changed after it was written, or lines are missing"):
        ledger.verify()


@pytest.mark.parametrize("more", [0, 3])
def test_an_older_copy_is_refused_also_where_it_went_on(tmp_path, more):
    """A restored backup, and one with which somebody elsewhere went on: a fork."""
    place, backup = tmp_path / "budget.sqlite", tmp_path / "backup.sqlite"
    ledger = dp.Ledger.create(place, dataset="survey", epsilon=1.0)
    spend(ledger)
    backup.write_bytes(place.read_bytes())
    spend(ledger)
    place.write_bytes(backup.read_bytes())
    seen = marks.folder() / ledger.head["ledger"]
    kept = seen.read_text()
    seen.unlink()
    for _ in range(more):
        spend(dp.Ledger.open(place))
    seen.write_text(kept)
    for attempt in (lambda: dp.Ledger.open(place), lambda: spend(ledger)):
        with pytest.raises(dp.errors.PrivacyError, match="not the newest copy"):
            attempt()


@pytest.mark.parametrize("content", [b"budget: 1.0\n" * 100, b""])
def test_a_file_that_is_no_ledger_is_refused(tmp_path, content):
    place = tmp_path / "junk.sqlite"
    place.write_bytes(content)
    with pytest.raises(dp.errors.ArgumentError, match="is not a ledger: it is .*dp.Ledger.create"):
        dp.Ledger.open(place)
    assert place.read_bytes() == content


def child(program, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], env=environment, **options)


FULL = """
import resource, signal, sys
from pymc_dp.accounting import Ledger, PureEvent
import pymc_dp as dp
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ledger = Ledger.open(sys.argv[1])
size = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
try:
    for _ in range(100):
        ledger.spend(PureEvent(epsilon=0.001), label="x" * 3000, neighbours="replace")
except dp.errors.PrivacyError as error:
    print("refused", error)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limits of files")
def test_on_a_full_disk_nothing_is_confirmed_and_the_next_spend_works(tmp_path):
    place = tmp_path / "budget.sqlite"
    ledger = dp.Ledger.create(place, dataset="survey", epsilon=1.0)
    process = child(FULL, place, place.stat().st_size + 40_000, stdout=subprocess.PIPE, text=True)
    said, _ = process.communicate(timeout=120)
    assert said.startswith("refused") and "could not be read or written" in said
    before = len(ledger.history)
    assert ledger.verify() == []
    spend(ledger)
    assert len(ledger.history) == before + 1


TRIES = """
import sys
from pymc_dp.accounting import Ledger, PureEvent
import pymc_dp as dp
ledger, done = Ledger.open(sys.argv[1], dataset=sys.argv[2]), 0
for _ in range(50):
    try:
        ledger.spend(PureEvent(epsilon=0.01), label="try", neighbours="replace")
        done += 1
    except dp.BudgetExceeded:
        pass
print(done)
"""


def test_of_several_processes_exactly_as_many_spend_as_there_is_budget(place):
    dataset = named()
    ledger = dp.Ledger.create(place, dataset=dataset, epsilon=1.0)
    processes = [child(TRIES, place, dataset, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    done = [int(process.communicate(timeout=300)[0]) for process in processes]
    assert sum(done) == 100 == len(ledger.history)
    assert ledger.spent.epsilon == 1.0 and ledger.verify() == []


KILLED = """
import os, sys
from pymc_dp.accounting import Ledger, PureEvent, ZCDPEvent
import pymc_dp as dp
place, dataset, log, delta = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
ledger, number = Ledger.open(place, dataset=dataset), 0
while True:
    number += 1
    event = ZCDPEvent(rho=1e-7) if delta and number % 2 else PureEvent(epsilon=0.0001)
    name = f"{os.getpid()}-{number}"
    try:
        ledger.spend(event, label=name, neighbours="replace")
    except dp.BudgetExceeded:
        os.write(1, b"full")
        break
    with open(log, "a") as file:  # here rows would be read
        file.write(name + "\\n")
"""


def kill_at_random(place, tmp_path, times, *, delta, epsilon):
    dataset, log, rng = named(), tmp_path / "reads.txt", np.random.default_rng(1)
    log.write_text("")
    ledger = dp.Ledger.create(place, dataset=dataset, epsilon=epsilon, delta=delta)
    for _ in range(times):
        process = child(KILLED, place, dataset, log, delta, stdout=subprocess.PIPE)
        before = len(ledger.history)
        until = time.monotonic() + 60
        while process.poll() is None and len(ledger.history) == before and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    reads = [line for line in log.read_text().split("\n") if line]
    spends = {entry.label for entry in ledger.history}
    assert reads and set(reads) <= spends, "read without a spend"
    assert ledger.spent.epsilon <= epsilon and ledger.verify() == []
    spend(ledger, 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_killed_at_random_nothing_was_read_that_was_not_spent(place, tmp_path, delta):
    kill_at_random(place, tmp_path, 3, delta=delta, epsilon=10.0)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_two_hundred_kills(place, tmp_path, delta):
    kill_at_random(place, tmp_path, 200, delta=delta, epsilon=100.0)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@server/db", "postgresql://server/db"),
        ("postgresql://ann:sec?ret@server:5432,[::1]:5433/db", "postgresql://server:5432,[::1]:5433/db"),
        ("postgresql:///db?user=ann&password=secret&host=/run", "postgresql:///db?user=ann&host=/run"),
        ("postgresql:///db?sslpassword=secret", "postgresql:///db"),
        ("postgresql://server/db?user=a@b&password=secret", "postgresql://server/db?user=a@b"),
    ],
)
def test_error_texts_show_no_password(url, shown):
    assert store_of(url).place == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret",
        "postgresql://ann:se/secret@server/db",
        "postgresql://ann:se@secret@server/db",
        "postgresql://ann:se%secret@server/db",
        "postgresql://ann:se%00secret@server/db",
        "postgresql://ann:se?se/secret@server/db",
        "postgresql:///db?password=se=secret",
        "postgresql:///db?password=se&secret",
    ],
)
def test_a_url_of_which_the_server_would_quote_the_password_is_refused(url):
    with pytest.raises(dp.errors.ArgumentError, match="URL of the database") as caught:
        dp.Ledger.open(url)
    assert "secret" not in str(caught.value)


def test_a_spend_within_a_spend_of_the_same_thread_does_not_wait_for_itself(ledger, place):
    """As of a signal handler, by whichever object."""
    other = dp.Ledger.open(place, dataset=ledger.dataset)
    with ledger._book.changing("outer") as state:
        with pytest.raises(dp.errors.PrivacyError, match="by a signal handler or a finalizer"):
            spend(other)
        ledger._book.granted("ann", state.granted("ann", dp.Budget(0.1)))
    spend(other)
    assert len(ledger.history) == 1 and "share of ann" in repr(ledger)
