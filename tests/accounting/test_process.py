"""A ledger is spent in the process that opened it, whatever makes another one of it."""

import json
import multiprocessing
import os
import subprocess
import sys

import cloudpickle
import pytest

import pymc_dp as dp

# Forks of a process that runs threads warn, and may stand still: they are made in one that runs none of pytest's.
SCRIPT = """
import json, multiprocessing, os, threading
import numpy as np, pymc as pm
import pymc_dp as dp
from pymc_dp.accounting import PureEvent

ledger, owner = dp.Ledger(1.0), os.getpid()
with pm.Model() as model:
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.array([0, 1, 1, 0, 1]))

def spend(account=ledger):
    try:
        account.spend(PureEvent(epsilon=0.25), label="ages", neighbours="replace")
    except dp.errors.PrivacyError as error:
        return f"{type(error).__name__}: {error}"
    return "spent"

def release():
    try:
        dp.privatize(model, epsilon=0.25, ledger=ledger)
    except dp.errors.PrivacyError as error:
        return f"{type(error).__name__}: {error}"
    return "released"

def forked(task):
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.write(writer, task().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said

def while_a_thread_holds_the_lock():
    held, done = threading.Event(), threading.Event()
    def hold():
        with ledger._book._lock:
            held.set()
            done.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    said = forked(spend)
    done.set()
    thread.join()
    return said

first = spend()
with multiprocessing.get_context("fork").Pool(1) as pool:
    pooled = pool.apply(spend)
print(json.dumps({
    "refused": [pooled, forked(release), forked(lambda: forked(spend)), while_a_thread_holds_the_lock()],
    "read": forked(lambda: json.dumps([ledger.remaining, ledger.spent.epsilon, repr(ledger), ledger._repr_html_()])),
    "own": forked(lambda: spend(dp.Ledger(1.0))),
    "here": [first, release(), repr(ledger)],
}))
"""


@pytest.fixture(scope="module")
def found():
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    flags = ",".join([*filter(None, [os.environ.get("PYTENSOR_FLAGS")]), "mode=FAST_COMPILE"])
    env = {**os.environ, "PYTENSOR_FLAGS": flags}  # what is looked at is not what is compiled
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # before it, what is said of compiling


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
def test_no_fork_can_spend_and_the_process_that_opened_it_goes_on(found):
    assert len(found["refused"]) == 4
    for said in found["refused"]:
        assert said.startswith("PrivacyError: This ledger was opened in process ")
        assert "Nothing was spent and no data were read. Make the release in the process that opened" in said
    assert found["here"][:2] == ["spent", "released"] and found["own"] == "spent"
    assert found["here"][2].splitlines()[0].endswith("spent epsilon=0.5 in 2 spends, left 0.5")
    remaining, spent, text, page = json.loads(found["read"])
    assert (remaining, spent) == (0.75, 0.25)
    assert "a copy that a fork" in text.splitlines()[0] and "a copy that a fork" in page


def test_no_ledger_travels_to_another_process():
    ledger = dp.Ledger(1.0)
    for method in set(multiprocessing.get_all_start_methods()) - {"fork"}:
        process = multiprocessing.get_context(method).Process(target=print, args=(ledger,))
        with pytest.raises(dp.errors.PrivacyError, match="cannot be copied or pickled"):
            process.start()
    with pytest.raises(dp.errors.PrivacyError, match="cannot be copied or pickled"):
        cloudpickle.dumps(lambda: ledger.remaining)
