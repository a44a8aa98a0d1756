"""Every argument of ``pm.sample`` is checked before the charge, and no other is taken."""

import re

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp import nuts_samplers
from pymc_dp import sampler_arguments as arguments

ROWS = np.arange(40) % 3 == 0


def model(*, discrete: bool = False) -> pm.Model:
    with pm.Model(coords={"row": range(40)}) as made:
        p = pm.Uniform("p", 0.05, 0.95)
        if discrete:
            pm.Bernoulli("k", 0.5)
        weight = pm.Data("weight", np.linspace(0, 1, 40), dims="row")
        pm.Deterministic("of_rows", p * weight, dims="row")
        pm.Deterministic("odds", p / (1 - p))
        pm.Bernoulli("y", p, observed=ROWS, dims="row")
    return made


def refused(text: str, **given) -> None:
    """Assert that a call is refused with an error that names the argument, and costs nothing."""
    ledger = dp.Ledger(epsilon=1.0)
    source = given.pop("model", None) or model()
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.sample(**{"draws": 5, "tune": 5, "epsilon": 1.0, "progressbar": False} | given, model=source, ledger=ledger)
    assert ledger.history == []


EITHER = [
    ({"random_seed": "abc"}, "random_seed must be a whole number >= 0.*'abc'"),
    ({"random_seed": -5}, "random_seed must be .* got -5"),
    ({"random_seed": -1}, "random_seed must be .* got -1"),
    ({"random_seed": 1.5}, "random_seed must be .* got 1.5"),
    ({"random_seed": True}, "random_seed must be .* got True"),
    ({"random_seed": [1, "a"]}, "random_seed must be"),
    ({"random_seed": np.random.RandomState(1)}, "random_seed must be"),
    ({"progressbar": 3}, "progressbar must be one of 'combined'"),
    ({"progressbar": "splitt"}, "Did you mean 'split'"),
    ({"chains": 0}, "chains must be >= 1, got 0"),
    ({"chains": 1.5}, "chains must be a whole number"),
    ({"cores": 0}, "cores must be >= 1, got 0"),
    ({"cores": "all"}, "cores must be a whole number, got 'all'"),
    ({"draws": 0}, "draws must be >= 1, got 0"),
    ({"tune": -1}, "tune must be >= 0, got -1"),
    ({"nonsense": 1}, "nonsense= is no argument of dp.sample or pm.sample"),
    ({"nonsense": 1}, "help.dp.sample. has all that are"),
    ({"bounds": {"y": (0, 1)}}, r"bounds goes into domain=dp.Domain\(bounds=...\)\.$"),
    ({"noise": "laplace"}, r"noise goes into statistics=dp.Statistics\(noise=...\)"),
    ({"momentum_steps": 20}, r"momentum_steps goes into statistics=dp.Gradients\(momentum_steps=...\)"),
    ({"clip_norm": 1.0}, r"clip_norm goes into step=dp.PrivateHMC\(clip_norm=...\), dp.SGLD, "),
    ({"var_name": None}, "Did you mean 'var_names'"),
    ({"ledgers": None}, "Did you mean 'ledger'"),
    ({"initvals": {"p": 0.5}}, "initvals"),
    ({"nuts_sampler_kwargs": {}}, r"write nuts=\{...\}"),
    ({"trace": []}, "trace= is not accepted: the trace is rebuilt"),
    ({"progressbar_theme": 3}, "progressbar_theme must be a rich Theme"),
    ({"quiet": "yes"}, "quiet must be True or False, got 'yes'"),
    ({"discard_tuned_samples": 1}, "discard_tuned_samples must be True or False, got 1"),
    ({"compute_convergence_checks": None}, "compute_convergence_checks must be True or False"),
    ({"keep_warning_stat": "no"}, "keep_warning_stat must be True or False"),
    ({"var_names": ["q"]}, "var_names holds 'q', which is no variable"),
    ({"var_names": ["p", "of_rows"]}, "'of_rows'.* may have been computed from rows"),
    ({"var_names": "p"}, "var_names must be a list of names"),
    ({"var_names": []}, "at least one and each once"),
    ({"var_names": ["p", "p"]}, "at least one and each once"),
    ({"var_names": [3]}, "var_names must name variables"),
    ({"idata_kwargs": {"log_likelihood": True}}, "idata_kwargs holds 'log_likelihood': that of rows would show them"),
    ({"idata_kwargs": {"include_transformed": 1}}, r"idata_kwargs\['include_transformed'\] must be"),
    ({"mp_ctx": "thread"}, "mp_ctx must be one of 'fork'|mp_ctx must be one of 'spawn'"),
    ({"mp_ctx": 1}, "mp_ctx must be one of"),
    ({"blas_cores": "many"}, "blas_cores must be a whole number, got 'many'"),
    ({"blas_cores": 0}, "blas_cores must be >= 1, got 0"),
]
CALLBACK = [
    ({"callback": 3}, r"callback must be a function of \(trace, draw\) or None, got 3"),
    ({"callback": lambda: None}, r"callback must be a function of \(trace, draw\)"),
]
WITHOUT_STEP = [
    *CALLBACK,
    ({"nuts_sampler": "nutpi"}, "nuts_sampler must be one of .*Did you mean 'nutpie'"),
    ({"nuts_sampler": 3}, "nuts_sampler must be one of"),
    ({"init": "jitter"}, "init must be one of 'auto'.*got 'jitter'"),
    ({"init": None}, "init must be one of"),
    ({"jitter_max_retries": -1}, "jitter_max_retries must be >= 0, got -1"),
    ({"n_init": 0}, "n_init must be >= 1, got 0"),
    ({"backend": "fortran"}, "backend must be one of 'numba'"),
    ({"backend": "numba", "compile_kwargs": {"mode": "NUMBA"}}, "backend='numba' and compile_kwargs"),
    ({"compile_kwargs": 3}, "compile_kwargs must map names to values"),
    ({"compile_kwargs": {"mood": 1}}, "compile_kwargs holds 'mood'.*Did you mean 'mode'"),
    ({"compile_kwargs": {"mode": "FASTEST"}}, r"compile_kwargs\['mode'\] must be a mode of PyTensor.*'FASTEST'"),
    ({"compile_kwargs": {"mode": 3}}, r"compile_kwargs\['mode'\] must be a mode of PyTensor"),
    ({"compile_kwargs": {"on_unused_input": "shout"}}, r"compile_kwargs\['on_unused_input'\] must be one of"),
    ({"target_accept": 2}, "target_accept must lie between 0 and 1, both excluded, got 2"),
    ({"target_accept": "high"}, "target_accept must be a number"),
    ({"nuts": {"target_accept": 2}}, r"nuts\['target_accept'\] must lie between 0 and 1"),
    ({"nuts": {"max_depth": 5}}, "nuts holds 'max_depth'.*Did you mean 'max_treedepth'"),
    ({"nuts": 5}, "nuts must map names to values, got 5"),
    ({"nuts": {"target_accept": 0.9}, "target_accept": 0.9}, "target_accept is given twice"),
    ({"max_treedepth": 0}, "max_treedepth must be >= 1, got 0"),
    ({"early_max_treedepth": 2.5}, "early_max_treedepth must be a whole number"),
    ({"step_scale": 0}, "step_scale must lie between 0 and inf"),
    ({"Emax": -1}, "Emax must lie between"),
    ({"gamma": 0}, "gamma must lie between"),
    ({"k": 2}, "k must lie between 0.5 and 1"),
    ({"t0": -1}, "t0 must be >= 0"),
    ({"adapt_step_size": "yes"}, "adapt_step_size must be True or False"),
    ({"metropolis": {"S": 1}}, "metropolis=.* is for a sampler that PyMC does not choose for this model"),
    ({"metropolis": {"width": 1}}, "metropolis holds 'width'"),
]


def _named(value: object) -> str:
    """The same in every process: without addresses of objects."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", str(value))


@pytest.mark.parametrize("step", [None, dp.OPS()], ids=["statistics", "step"])
@pytest.mark.parametrize(("given", "text"), EITHER, ids=_named)
def test_what_cannot_be_right_costs_nothing(given, text, step):
    refused(text, step=step, **given)


@pytest.mark.parametrize(("given", "text"), WITHOUT_STEP, ids=_named)
def test_settings_of_pymcs_samplers_cost_nothing_where_they_are_wrong(given, text):
    refused(text, **given)


@pytest.mark.parametrize("name", [*arguments.FREE, *arguments.NUTS, *arguments.STEPS])
def test_settings_of_pymcs_samplers_mean_nothing_to_a_private_step(name):
    refused(f"{name}= is a setting of PyMC's own samplers", step=dp.OPS(), **{name: None})


@pytest.mark.parametrize("step", [dp.OPS(), dp.SGLD(), [dp.TemperedGibbs()]], ids=["OPS", "SGLD", "list"])
def test_nobody_looks_at_states_before_they_are_released(step):
    seen = []
    refused("callback= .* would see states before they are released", step=step, callback=lambda **_: seen.append(1))
    refused("callback= .* would see states before they are released", step=step, callback=None)
    assert seen == []


@pytest.mark.parametrize(("given", "text"), CALLBACK, ids=_named)
def test_draws_from_a_release_may_be_looked_at(given, text):
    refused(text, **given)
    look = {"callback": lambda trace, draw: None}
    assert arguments.checked(look, own_step=False) == look


@pytest.mark.parametrize("given", [{"backend": "jax"}, {"compile_kwargs": {"mode": "JAX"}}], ids=_named)
def test_a_backend_that_is_not_installed_costs_nothing(given, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda package: None)
    refused("'jax' needs the package jax", **given)


@pytest.mark.parametrize("name", ["nutpie", "blackjax", "numpyro"])
def test_a_sampler_that_is_not_installed_costs_nothing(name, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda package: None)
    refused(f"nuts_sampler='{name}' needs the package {name}", nuts_sampler=name)


@pytest.fixture
def all_installed(monkeypatch):
    """Other samplers are as if they were installed, in versions that PyMC can call."""
    versions = {"nutpie": "0.16.10", "fastprogress": "1.0.5"}
    monkeypatch.setattr("importlib.util.find_spec", lambda package: package)
    monkeypatch.setattr("pymc.sampling.mcmc.NUTPIE_INSTALLED", True)
    monkeypatch.setattr(nuts_samplers, "version_of", versions.get)
    return versions


OF_PYMC = {
    "step_scale": 0.2, "Emax": 500, "gamma": 0.1, "k": 0.8, "t0": 5, "adapt_step_size": False, "early_max_treedepth": 5,
}  # fmt: skip


@pytest.mark.parametrize("setting", OF_PYMC)
@pytest.mark.parametrize("name", ["nutpie", "blackjax", "numpyro"])
@pytest.mark.parametrize("within", [False, True], ids=["", "nuts"])
def test_settings_of_pymcs_own_nuts_cost_nothing_under_another(setting, name, within, all_installed):
    given = {"nuts": {setting: OF_PYMC[setting]}} if within else {setting: OF_PYMC[setting]}
    if (setting, name) == ("adapt_step_size", "numpyro"):
        found = arguments.checked({**given, "nuts_sampler": name}, own_step=False)
        assert found["nuts"] == {"adapt_step_size": False}
        return
    words = f"{setting}= is a setting of PyMC's own NUTS; nuts_sampler='{name}' does not take it. Write nuts_sampler="
    refused(words, nuts_sampler=name, **given)


def by_numba(**given):
    return arguments.checked({"backend": "numba", **given}, own_step=False)


@pytest.mark.parametrize("setting", OF_PYMC)
def test_settings_of_pymcs_own_nuts_cost_nothing_where_pymc_takes_nutpie(setting, all_installed):
    refused(f"{setting}= .* nutpie, which PyMC takes by itself", backend="numba", **{setting: OF_PYMC[setting]})
    for given in ({"nuts_sampler": "pymc"}, {"init": "adapt_diag"}, {"callback": lambda trace, draw: None}):
        arguments.require_fitting(by_numba(**{setting: OF_PYMC[setting]}, **given), model())


def test_a_nutpie_that_pymc_cannot_call_costs_nothing(all_installed, monkeypatch):
    all_installed["nutpie"] = "0.16.9"
    refused(r"needs nutpie 0.16.10 or later, .* not 0.16.9\. Install it: pip install", nuts_sampler="nutpie")
    all_installed["nutpie"] = "0.16.10"
    monkeypatch.setattr("pymc.sampling.mcmc.NUTPIE_INSTALLED", False)
    refused("nutpie was installed after PyMC was imported. Start Python anew", nuts_sampler="nutpie")


@pytest.mark.parametrize("name", ["numpyro", "blackjax", "nutpie"])
def test_what_no_sampler_takes_costs_nothing(name, all_installed):
    refused(f"nuts holds 'nonsense', which is no setting for nuts_sampler='{name}' .known: target_accept, ",
            nuts_sampler=name, nuts={"nonsense": 1})  # fmt: skip
    refused(r"nuts\['target_accept'\] must lie between 0 and 1", nuts_sampler=name, nuts={"target_accept": 2})


@pytest.mark.parametrize(
    ("name", "own"), [("numpyro", "max_tree_depth"), ("blackjax", "max_num_doublings"), ("nutpie", "maxdepth")]
)
def test_every_sampler_has_its_own_word_for_the_depth_of_a_tree(name, own, all_installed):
    for given in ({"max_treedepth": 6}, {"nuts": {"max_treedepth": 6}}, {"nuts": {own: 6}}):
        found = arguments.checked({"nuts_sampler": name, **given}, own_step=False)
        assert found["nuts"] == {own: 6}
    refused(f"max_treedepth is given twice: {name} calls it {own}", nuts_sampler=name, max_treedepth=6, nuts={own: 6})


def test_a_sampler_for_other_models_costs_nothing(all_installed):
    refused("needs a model without discrete variables", model=model(discrete=True), nuts_sampler="nutpie")
    refused("callback=.* has no effect on", nuts_sampler="nutpie", callback=lambda **_: None)


def test_a_misspelt_epsilon_and_a_model_in_the_place_of_draws_are_named():
    with pytest.raises(
        dp.errors.ArgumentError, match="epsilon is missing.*epsilonn= is no argument: did you mean epsilon="
    ):
        dp.sample(epsilonn=1.0)
    with pytest.raises(dp.errors.ArgumentError, match="^epsilon is missing, the privacy loss of the trace. Write"):
        dp.sample(draws=3)
    with pytest.raises(dp.errors.ArgumentError, match=r"got a Model\. Write dp\.sample\(model=\.\.\.\)"):
        dp.sample(pm.Model(), epsilon=1.0)
    with pytest.raises(dp.errors.ArgumentError, match=r"got 0\.5\. Did you mean epsilon=0\.5\?"):
        dp.explain(pm.Model(), 0.5)
