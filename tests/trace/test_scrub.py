from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as dp
from tests.trace.conftest import build_model, table

QUIET = {
    "tune": 10,
    "draws": 10,
    "chains": 1,
    "cores": 1,
    "progressbar": False,
    "quiet": True,
    "compute_convergence_checks": False,
}


@pytest.fixture(scope="module")
def private() -> pm.Model:
    return dp.privatize(build_model(*table()), epsilon=1.0, ledger=dp.Ledger(epsilon=1.0))


@pytest.fixture(scope="module")
def bare(private: pm.Model) -> xr.DataTree:
    with private:
        return pm.sample(random_seed=1, discard_tuned_samples=False, **QUIET)


def test_scrubbed_trace_has_allowed_groups_only(private: pm.Model, bare: xr.DataTree) -> None:
    safe = dp.scrub(bare, private)
    assert set(safe.children) == {
        "posterior",
        "sample_stats",
        "warmup_posterior",
        "warmup_sample_stats",
        "released",
        "privacy",
    }
    assert set(safe["posterior"].data_vars) == {"p", "odds"}
    assert list(safe["posterior"].coords["group"].values) == ["a", "b", "c"]
    assert safe.dp.report().additions == ()


def test_labels_of_dimensions_that_the_private_model_does_not_have_stay_behind(
    private: pm.Model, bare: xr.DataTree
) -> None:
    tree = bare.copy(deep=True)
    posterior = tree["posterior"].to_dataset().rename(group="patient").assign_coords(patient=["Ann", "Bob", "Cy"])
    tree["posterior"] = xr.DataTree(posterior)
    safe = dp.scrub(tree, private)
    assert safe["posterior"]["p"].dims[-1] == "patient" and "patient" not in safe["posterior"].coords


def test_trace_of_the_raw_model_is_refused(private: pm.Model) -> None:
    raw = build_model(*table())
    tree = xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset({"p": (("chain", "draw", "group"), np.zeros((1, 2, 3)))}),
            "/observed_data": xr.Dataset({"answer": ("patient", np.asarray(raw.rvs_to_values[raw["answer"]].data))}),
        }
    )
    with pytest.raises(dp.errors.TraceError, match="was not sampled from this private model"):
        dp.scrub(tree, private)


@pytest.mark.slow
def test_trace_of_another_release_is_refused(bare: xr.DataTree) -> None:
    other = dp.privatize(build_model(*table()), epsilon=0.01, ledger=dp.Ledger(epsilon=1.0))
    with pytest.raises(dp.errors.TraceError, match="do not hold the release of 'answer'"):
        dp.scrub(bare, other)


def test_noise_of_tests_gives_no_guarantee(tmp_path) -> None:
    model = build_model(*table())
    with dp.testing.insecure_randomness(1):
        private = dp.privatize(model, epsilon=1.0, ledger=dp.Ledger(epsilon=1.0))
    tree = xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset({"p": (("chain", "draw", "group"), np.zeros((1, 2, 3)))}),
            "/observed_data": xr.Dataset(
                {"answer": (("a", "b"), np.asarray(private.rvs_to_values[private["answer"]].get_value()))}
            ),
        }
    )
    safe = dp.scrub(tree, private)
    assert safe.dp.guarantee == "none"
    assert "Not private" in str(safe.dp.report())
    with pytest.raises(dp.errors.TraceError, match="seeded"):
        safe.dp.publish(tmp_path / "a.nc")
