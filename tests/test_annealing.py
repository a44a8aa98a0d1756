"""``dp.sample_ais``: what is charged, refused, shown, and written."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from tests.step_methods.conftest import bernoulli

ANSWERS = np.arange(40) % 3 == 0
SMALL = {"particles": 4, "temperatures": 3, "progressbar": False}


pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]


def grouped(rows, bounds=(-2.0, 2.0)):
    """Numbers in groups with labels, a hyper-parameter, a Deterministic of parameters and one of rows."""
    group = np.arange(len(rows)) % 2
    with pm.Model(coords={"group": ["east", "west"]}) as model:
        top = pm.Normal("top")
        mean = pm.Truncated("mean", pm.Normal.dist(top, 1.0), -1.0, 1.0, dims="group")
        pm.Deterministic("gap", mean[1] - mean[0])
        fitted = pm.Deterministic("fitted", mean[pm.Data("g", group)])
        pm.Normal("y", fitted, 0.5, observed=rows)
    return model, dp.Domain(bounds={"y": bounds})


def ais(rows=ANSWERS, **given):
    if rows is ANSWERS:
        given.setdefault("model", bernoulli(rows))
    return dp.sample_ais(**{"epsilon": 1.0, **SMALL, **given})


def test_everything_in_the_trace_was_paid_for(tmp_path):
    """Both kinds of noise at once; no exact weight, no likelihood, no effective sample size."""
    model, public = grouped(np.linspace(-1, 1, 12))
    tree = ais(None, draws=3, model=model, domain=public, resampling="laplace", marginal_likelihood=True)
    names = {"top", "mean", "gap"}
    assert set(tree.children) == {"posterior", "sample_stats", "particles", "released", "privacy"}
    assert set(tree["posterior"].data_vars) == set(tree["particles"].data_vars) == names
    assert set(tree["sample_stats"].data_vars) == {"particle", "epsilon_spent"}
    assert set(tree["released"].data_vars) == {"weights", "log_evidence_tempered"}
    assert tree["posterior"]["mean"].dims == ("chain", "draw", "group") and tree["posterior"].sizes["draw"] == 3
    assert tree["particles"]["mean"].coords["group"].values.tolist() == ["east", "west"]
    chosen = tree["sample_stats"]["particle"].values[0]
    for name in names:
        np.testing.assert_array_equal(
            tree["posterior"][name].values[0], tree["particles"][name].values[chosen], strict=True
        )
    mean = tree["particles"]["mean"].values
    np.testing.assert_allclose(tree["particles"]["gap"].values, mean[:, 1] - mean[:, 0])
    weights = tree["released"]["weights"].values
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert (tree.dp.guarantee, tree.dp.arithmetic) == ("stepwise", "hardened")
    assert 1 - 1e-4 < tree.dp.epsilon <= 1
    report = str(tree.dp.report())
    for text in ("tempered model", "simplex", "ε of each part alone", "path 0.7, weights 0.2, log evidence 0.1"):
        assert text in " ".join(report.replace("│", " ").split())
    assert "not of the model" in tree["released"]["log_evidence_tempered"].attrs["of"]

    read = az.from_netcdf(tree.dp.publish(tmp_path / "trace.nc"))
    assert read["posterior"]["mean"].equals(tree["posterior"]["mean"])
    assert str(read.dp.report()) == report and "fitted" in report
    read.close()
    tree["released"]["log_evidence_tempered"] = tree["released"]["log_evidence_tempered"] + 1
    with pytest.raises(dp.errors.TraceError, match="/released/log_evidence_tempered was changed"):
        tree.dp.publish(tmp_path / "changed.nc")


def test_an_evidence_of_the_model_itself_is_named_so():
    with dp.testing.insecure_randomness(1):
        tree = ais(epsilon=1e6, marginal_likelihood=True)
    released = tree["released"].to_dataset()
    assert list(released.data_vars) == ["log_evidence"] and released["log_evidence"].attrs["beta"] == 1
    assert tree.dp.guarantee == "none"


def test_a_second_run_without_a_ledger_warns():
    model = bernoulli(ANSWERS)
    ais(model=model)
    with pytest.warns(dp.errors.RepeatedReleaseWarning, match="release from these rows"):
        ais(model=model)


def test_latents_private_models_and_models_without_bounds_are_refused():
    with pm.Model() as plain:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=ANSWERS)
    ledger = dp.Ledger(1.0)
    with pytest.raises(dp.errors.UnsupportedModelError, match="dp.truncate"):
        ais(model=plain, ledger=ledger)
    private = dp.privatize(plain, epsilon=1.0, ledger=dp.Ledger(1.0))
    with pytest.raises(dp.errors.ArgumentError, match="private already"):
        ais(model=private, ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"draws": 0}, "draws must be >= 1"),
        ({"particles": 1.5}, "particles must be a whole number"),
        ({"epsilon": -1}, "epsilon must be > 0"),
        ({"resampling": "gauss"}, "resampling must be one of 'range', 'laplace'"),
        ({"marginal_likelihood": 1}, "True or False"),
        ({"weights_share": 0.1}, 'set resampling="laplace"'),
        ({"evidence_share": 0.1}, "set marginal_likelihood=True"),
        ({"evidence_share": 1.0, "marginal_likelihood": True}, r"must lie in \(0, 1\)"),
        ({"temperatures": [2, 1]}, "increase"),
        ({"random_seed": "x"}, "random_seed must be"),
        ({"grid": 1}, "grid must be >= 2"),
    ],
)
def test_arguments_out_of_range_are_refused(given, what):
    with pytest.raises(dp.errors.ArgumentError, match=what):
        ais(**given)


@pytest.mark.parametrize("name", ["particle", "chain", "draw", "dimension"])
def test_names_of_the_trace_are_refused_before_anything_is_spent(name):
    ledger = dp.Ledger(1.0)
    with pm.Model(coords={"particle": [1, 2]} if name == "dimension" else None) as model:
        p = pm.Uniform("p", 0.1, 0.9)
        if name == "dimension":
            pm.Normal("other", dims="particle")
        else:
            pm.Deterministic(name, p + 1)
        pm.Bernoulli("y", p, observed=ANSWERS)
    with pytest.raises(dp.errors.UnsupportedModelError, match="dimension of the trace"):
        ais(None, model=model, ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_without_noise_there_is_no_sampler():
    with dp.testing.without_noise(), pytest.raises(dp.errors.PrivacyError, match="all it does is draw"):
        ais()


def test_draws_by_noised_weights_are_among_particles_whose_released_weight_is_above_0():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("p", 0.1, 0.9), observed=np.arange(12) % 2)
    few = {"particles": 12, "temperatures": 2, "grid": 16, "progressbar": False}
    with dp.testing.insecure_randomness(1):
        idata = dp.sample_ais(60, random_seed=3, resampling="laplace", model=model, epsilon=1.0, **few)
    weights = idata["released"]["weights"].values
    assert (weights == 0).sum() > 3 and (weights[idata["sample_stats"]["particle"].values] > 0).all()
