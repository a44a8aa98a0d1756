"""Several releases of one data set add up, whatever kind of ledger paid, and also where no ledger is known."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

pytestmark = pytest.mark.usefixtures("interpreted")
ROWS = np.repeat([0, 1], [59, 24])
NO_NOTE = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def answers(rows=ROWS):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=rows)
    return model


def released(ledger=None, epsilon=1.0, rows=ROWS, **given):
    """A release that this test pays for, or one without a ledger."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.errors.RepeatedReleaseWarning)
        return dp.Release.of(dp.privatize(answers(rows), epsilon=epsilon, ledger=ledger, **given))


def together(*releases):
    """The release that a condition on several is."""
    return dp.Release.of(dp.condition(answers(), list(releases)))


def test_releases_that_one_ledger_in_memory_paid_for_add_up():
    ledger = dp.Ledger(3.0)
    one, other = released(ledger), released(ledger, 0.5)
    with pytest.warns(dp.errors.RepeatedReleaseWarning, match="One ledger paid for releases 1 and 2.*ε = 1.5 in all"):
        both = together(one, other)
    assert both.epsilon == ledger.spent.epsilon == 1.5


@NO_NOTE
def test_the_sum_is_never_below_what_the_ledger_counts():
    ledger = dp.Ledger(5.0, 1e-4)
    noise = dp.Statistics(noise="gaussian")
    parts = [released(ledger, 0.5, delta=1e-6, statistics=noise) for _ in range(3)]
    both = together(*parts)
    assert both.epsilon >= max(ledger.spent.epsilon, sum(part.epsilon for part in parts))
    assert both.delta >= 3e-6


@NO_NOTE
def test_a_stored_ledger_is_one_account_however_it_was_opened(tmp_path):
    place = tmp_path / "ledger.db"
    created = dp.Ledger.create(place, dataset="clinic", epsilon=3.0)
    assert together(released(created), released(dp.Ledger.open(place))).epsilon == 2.0


def test_two_ledgers_are_of_two_data_sets():
    both = together(released(dp.Ledger(1.0)), released(dp.Ledger(1.0), 0.5))
    assert both.epsilon == 1.0


@NO_NOTE
@pytest.mark.parametrize("ending", ["json", "nc"])
def test_files_keep_which_ledger_paid_and_another_process_adds_them_up(ending, tmp_path):
    ledger = dp.Ledger(3.0)
    paths = [str(released(ledger).save(tmp_path / f"{name}.{ending}")) for name in ("one", "other")]
    script = """
import sys, warnings
import numpy as np, pymc as pm, pymc_dp as dp
warnings.simplefilter("ignore")
with pm.Model() as model:
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(2, dtype=int))
print(dp.Release.of(dp.condition(model, [dp.Release.load(path) for path in sys.argv[1:]])).epsilon)
"""
    ran = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, check=True)
    assert float(ran.stdout) == 2.0


def test_releases_without_a_ledger_add_up():
    with pytest.warns(dp.errors.RepeatedReleaseWarning, match="No ledger is known of release 1 and 2.*ε = 1.5"):
        assert together(released(), released(epsilon=0.5)).epsilon == 1.5


@NO_NOTE
def test_a_release_without_a_ledger_is_added_to_each_data_set():
    paid = [released(dp.Ledger(2.0), epsilon) for epsilon in (1.0, 2.0)]
    both = together(*paid, released(epsilon=0.5))
    assert both.epsilon == 2.5
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=ROWS)
    private = dp.condition(model, [*paid, released(epsilon=0.5)])
    with private:
        raw = pm.sample_prior_predictive(3, var_names=["p"], random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"})
    raw["posterior"] = raw["prior"].copy()
    text = " ".join(str(dp.scrub(raw, private).dp.report()).split())
    assert "No ledger is known of release 3" in text and "that of 2, not named 2, 3 2.5, 0" in text


@NO_NOTE
def test_relations_that_differ_are_added_up_as_replacing_a_row():
    come_and_go = dp.Domain(neighbours="add_remove", n_max=1000)
    assert together(released(), released(domain=come_and_go)).epsilon == 3.0
    gaussian = dp.Statistics(noise="gaussian")
    with_delta = released(domain=come_and_go, epsilon=0.5, delta=1e-6, statistics=gaussian)
    both = together(released(), with_delta)
    assert both.epsilon == pytest.approx(1.0 + 2 * with_delta.epsilon, rel=1e-12)
    assert both.delta == pytest.approx(1e-6 * (1 + np.exp(with_delta.epsilon)), rel=1e-9)


@NO_NOTE
def test_a_file_that_says_less_than_one_ledger_paid_is_refused(tmp_path):
    ledger = dp.Ledger(3.0)
    path = together(released(ledger), released(ledger)).save(tmp_path / "both.json")
    written = json.loads(path.read_text())
    written["record"]["epsilon"] = 1.0
    path.write_text(json.dumps(written))
    with pytest.raises(dp.errors.TraceError, match="the releases of a data set cost more"):
        dp.Release.load(path)
