"""The gate: nothing else reads private values, and nothing reads them before they are paid for.

Rows of a model are sealed: a look at them from anywhere but the gate, or before a charge, raises and is noted.
"""

import ast
import sys
import warnings
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import Thread

import numpy as np
import pymc as pm
import pytensor
import pytest
from pytensor.compile import SharedVariable

import pymc_dp as dp
from pymc_dp import sampling
from pymc_dp.errors import BudgetExceeded, PrivacyError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.rows import known_rows, public_values, unwrap
from pymc_dp.release import paid as paid_module
from pymc_dp.release.paid import forget_releases
from pymc_dp.release.plan import draw_release, plan_release
from pymc_dp.release.statistics import Statistics
from pymc_dp.rows import gate
from pymc_dp.step_methods import base
from pymc_dp.transforms.privatize import plan_for
from tests.networks import PAIR, network_model

ROOT = Path(dp.__file__).parent
GATE = str(ROOT / "rows" / "gate.py")
SHAPES = {(str(ROOT / "inspection" / "rows.py"), "shape_of"), (str(ROOT / "inspection" / "schema.py"), "dim_length")}
"""What may ask for a shape."""


# --- who may read -----------------------------------------------------------------------------------------------------

RAW = {
    "rows/gate.py": "private values, once they are paid for",
    "inspection/rows.py": "public values, shapes, and arrays that code makes of nothing",
    "inspection/schema.py": "lengths of dimensions",
    "trace/scrub.py": "released tables",
    "transforms/fill.py": "which values are missing: one more private column, there whatever is missing",
    "transforms/prior_model.py": "copies of public data, without a look",
    "transforms/tabulated.py": "released tables",
    "transforms/marginal_states.py": "released tables",
    "transforms/trial.py": "data of private models",
    "step_methods/markov/collapsed.py": "released tables",
}
"""Files that take values out of shared variables, and which."""
OPENERS = {"release/paid.py", "step_methods/base.py"}
"""Between a charge and its release; a move that was paid for."""


@cache
def files():
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))) for path in ROOT.rglob("*.py")]


def test_no_other_file_takes_values_out_of_shared_variables():
    found = {
        name
        for name, tree in files()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("get_value", "container", "storage")
    }
    assert found == set(RAW)


def test_no_other_file_takes_the_array_of_a_leaf():
    """``leaf.data`` of columns, of observed variables and of what they are called."""
    leaves = ("leaf", "held", "observed", "column")
    found = [
        (name, node.lineno)
        for name, tree in files()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "data" and name not in RAW
        if (getattr(node.value, "id", None) or getattr(node.value, "attr", None)) in leaves
    ]
    assert found == []


def test_the_gate_is_opened_where_something_was_paid_for_and_nowhere_else():
    found = {
        name
        for name, tree in files()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and any(item.name in ("opened_gate", "_OPEN") for item in node.names)
    }
    assert found == OPENERS
    assert not any(
        isinstance(node, ast.Attribute) and node.attr in ("opened_gate", "_OPEN")
        for name, tree in files()
        if name != "rows/gate.py"
        for node in ast.walk(tree)
    )


def test_stored_rows_are_read_in_blocks_by_passes_alone():
    """Or by a table that passes the blocks of another on, when it is asked for its own."""
    found = {
        (name, node.name)
        for name, tree in files()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "blocks"
    }
    assert found == {("rows/passes.py", "_blocks"), ("rows/flags.py", "blocks")}


# --- when it is shut --------------------------------------------------------------------------------------------------

ANSWERS = np.array([0, 1, 1, 0, 1, 1, 0, 1])
SHARED = pytensor.shared(np.arange(4.0), name="x")


def test_it_is_shut_before_and_after_and_where_its_block_fails():
    with pytest.raises(PrivacyError, match="before they are paid for"):
        gate.private_values(SHARED)
    with pytest.raises(ZeroDivisionError), gate.opened_gate():
        assert gate.private_values(SHARED).tolist() == [0, 1, 2, 3]
        raise ZeroDivisionError
    with pytest.raises(PrivacyError):
        gate.private_values(SHARED)


def test_it_is_shut_in_other_threads():
    found = []

    def look():
        try:
            found.append(gate.private_values(SHARED))
        except PrivacyError as error:
            found.append(error)

    with gate.opened_gate():
        thread = Thread(target=look)
        thread.start()
        thread.join()
    assert [type(item) for item in found] == [PrivacyError]


def test_private_values_do_not_pass_for_public_ones():
    with pytest.raises(PrivacyError, match="taken for public"):
        public_values(SHARED, [SHARED])
    (column,) = inspect(grouped()).sums.observed[0].columns
    assert not column.public
    with pytest.raises(PrivacyError, match="taken for public"):
        known_rows(column)


# --- sealed rows ------------------------------------------------------------------------------------------------------


def grouped():
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.05, 0.95, shape=2)
        pm.Bernoulli("y", p[pm.Data("group", np.arange(8) % 2)], observed=ANSWERS)
    return model


def normal():
    with pm.Model() as model:
        mu = pm.Uniform("mu", -1, 1)
        pm.Normal("y", mu, 1.0, observed=np.linspace(-1, 1, 30))
    return model


def poisson():
    with pm.Model() as model:
        pm.Poisson("y", pm.Uniform("rate", 0.5, 3.0), observed=np.arange(8) % 4)
    return model


def linear():
    with pm.Model() as model:
        x, b = pm.Data("x", np.linspace(-1, 1, 30)), pm.Normal("b", shape=2)
        pm.Normal("y", b[0] + b[1] * x, 1.0, observed=np.linspace(-1, 1, 30))
    return model


def logistic():
    with pm.Model() as model:
        x, b = pm.Data("x", np.linspace(-1, 1, 40)), pm.Uniform("b", -1, 1)
        pm.Bernoulli("y", logit_p=b * x, observed=np.resize(ANSWERS, 40))
    return model


def mixture():
    with pm.Model(coords={"row": range(6), "k": range(2)}) as model:
        z = pm.Categorical("z", pm.Dirichlet("w", np.ones(2), dims="k"), dims="row")
        mean = pm.Uniform("mean", [-3.0, 0.0], [0.0, 3.0], dims="k")
        pm.Normal("y", mean[z], 1.0, observed=np.linspace(-3, 3, 6), dims="row")
    return model


def network():
    return network_model(PAIR, {"a": ANSWERS, "b": 1 - ANSWERS})


X, Y, BOTH = (dict.fromkeys(names, (-1, 1)) for names in ("x", "y", "xy"))
WIDE = {"y": (-3, 3)}
SHORT = {"draws": 3, "tune": 0, "progressbar": False}


def private(**given):
    return lambda model, **more: dp.privatize(model, **{"epsilon": 1.0, **given, **more})


def sampled(step, **given):
    return lambda model, **more: dp.sample(model=model, step=step, **{"epsilon": 1.0, **SHORT, **given, **more})


def annealed(model, **more):
    return dp.sample_ais(model=model, epsilon=1.0, particles=3, temperatures=2, progressbar=False, **more)


def evidence(model, **more):
    return annealed(model, marginal_likelihood=True, **more)


def modal(model, **more):
    return dp.find_map(model=model, epsilon=1.0, grid=5, **more)


def funded(model, domain=None, ledger=None):
    with model:
        step = dp.OPS(epsilon=1.0, domain=domain)
    if ledger is not None:
        raise BudgetExceeded("a funded step has no ledger")
    return step


WAYS = {
    "counts with Laplace noise": (grouped, {}, private()),
    "counts with Gaussian noise": (grouped, {}, private(delta=1e-5, statistics=Statistics(noise="gaussian"))),
    "moments": (normal, Y, private()),
    "products of a regression": (linear, BOTH, private()),
    "coefficients of a network": (network, {}, private(statistics=Statistics(mechanism=dp.networks.FourierUpdates()))),
    "noised gradients": (logistic, X, private(delta=1e-3, statistics=dp.Gradients())),
    "OPS on sums": (grouped, {}, sampled(dp.OPS())),
    "OPS on rows": (logistic, X, sampled(dp.OPS())),
    "a funded step": (grouped, {}, funded),
    "Gibbs on sums": (grouped, {}, sampled(dp.TemperedGibbs())),
    "Gibbs on rows": (logistic, X, sampled(dp.TemperedGibbs())),
    "Gibbs with a latent per row": (mixture, WIDE, sampled(dp.TemperedGibbs())),
    "Barker on sums": (grouped, {}, sampled(dp.BarkerMetropolis(), delta=1e-3)),
    "Barker on rows": (logistic, X, sampled(dp.BarkerMetropolis(), delta=1e-3)),
    "SGLD": (logistic, X, sampled(dp.SGLD(batch_size=5, clip_norm=1.0), delta=1e-3)),
    "HMC": (logistic, X, sampled(dp.PrivateHMC(clip_norm=1.0), delta=1e-3)),
    "annealed importance sampling": (grouped, {}, annealed),
    "annealed importance sampling of counts": (poisson, {"y": (0, 9)}, evidence),
    "a mode": (grouped, {}, modal),
}
FREE = {
    "explain": (logistic, X, lambda model, domain: dp.explain(model, domain, epsilon=1.0, delta=1e-3)),
    "explain counts": (grouped, {}, lambda model, domain: dp.explain(model, domain, epsilon=1.0)),
    "sensitivity": (logistic, X, dp.sensitivity),
    "sensitivity of counts": (grouped, {}, dp.sensitivity),
    "plan": (
        grouped,
        {},
        lambda model, domain: dp.plan(model, epsilon=1.0, domain=domain, repeats=2, progressbar=False),
    ),
    "a plan of a release": (
        linear,
        BOTH,
        lambda model, domain: plan_for(model, epsilon=1.0, delta=0.0, domain=domain, statistics=None),
    ),
}


class Seal:
    """Notes every look at sealed values: how many were taken through the gate, and who took others."""

    def __init__(self):
        self.broken, self.read = [], 0

    def look(self):
        frame = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(str(ROOT)):
            frame = frame.f_back
        where = ("a test", "") if frame is None else (frame.f_code.co_filename, frame.f_code.co_name)
        if where in SHAPES:
            return
        if where[0] != GATE or not gate._OPEN.get():
            self.broken.append(where)
            raise AssertionError(f"sealed rows are looked at by {where}")
        self.read += 1

    def put_on(self, leaf):
        if isinstance(leaf, SharedVariable):
            leaf.container.storage = Storage(leaf.container.storage, self)
        else:
            values, seal = leaf.data, self

            def data(_):
                seal.look()
                return values

            leaf.__class__ = type("Sealed", (type(leaf),), {"data": property(data)})


class Storage(list):
    def __init__(self, held, seal):
        super().__init__(held)
        self._seal = seal

    def __getitem__(self, place):
        self._seal.look()
        return super().__getitem__(place)

    def __iter__(self):
        self._seal.look()
        return super().__iter__()

    def __copy__(self):
        """Views of shared variables are sealed as well, and making one is no look."""
        return Storage(list.copy(self), self._seal)


def leaves_of(model):
    observed = [unwrap(model.rvs_to_values[rv]) for rv in model.observed_RVs]
    return list(dict.fromkeys([*model.data_vars, *observed]))


@contextmanager
def sealed(model):
    seal = Seal()
    for leaf in leaves_of(model):
        seal.put_on(leaf)
    with warnings.catch_warnings(), pytensor.config.change_flags(mode="FAST_COMPILE"):
        warnings.simplefilter("ignore")
        yield seal
    assert seal.broken == []


@pytest.fixture(autouse=True)
def _no_history():
    forget_releases()
    yield
    forget_releases()


def test_a_look_breaks_the_seal():
    for model, look in (
        (grouped(), lambda model: model["group"].get_value()),
        (grouped(), lambda model: model["group"].eval()),
        (grouped(), lambda model: model.rvs_to_values[model["y"]].data),
        (normal(), lambda model: model.compile_logp()(model.initial_point())),
    ):
        with pytest.raises(AssertionError, match="a test"), sealed(model):
            look(model)


@pytest.mark.few(7, cases="all")
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("way", WAYS)
def test_rows_are_read_by_the_gate_after_the_charge(way):
    build, bounds, use = WAYS[way]
    model = build()
    with sealed(model) as seal:
        use(model, domain=dp.Domain(bounds=bounds))
    assert seal.read


@pytest.mark.few(7, cases="all")
@pytest.mark.parametrize("way", [way for way in WAYS if way != "a funded step"])
def test_nothing_is_read_where_the_ledger_refuses(way):
    build, bounds, use = WAYS[way]
    model = build()
    with sealed(model) as seal, pytest.raises(BudgetExceeded):
        use(model, domain=dp.Domain(bounds=bounds), ledger=dp.Ledger(epsilon=0.5, delta=1e-4))
    assert not seal.read


@pytest.mark.parametrize("way", WAYS)
def test_nothing_can_be_read_while_the_gate_is_shut(way, monkeypatch):
    """Every way goes through it: where a charge does not open it, or something reads before, all of them fail."""
    build, bounds, use = WAYS[way]
    model = build()
    monkeypatch.setattr(paid_module, "opened_gate", nullcontext)
    monkeypatch.setattr(base, "opened_gate", nullcontext)
    with sealed(model) as seal, pytest.raises(PrivacyError, match="before they are paid for"):
        use(model, domain=dp.Domain(bounds=bounds))
    assert not seal.read


@pytest.mark.parametrize("what", FREE)
def test_what_is_free_never_looks(what):
    build, bounds, use = FREE[what]
    model = build()
    with sealed(model) as seal:
        use(model, dp.Domain(bounds=bounds))
    assert not seal.read


def test_a_release_is_not_drawn_before_the_charge():
    inspection = inspect(grouped()).sums
    with pytest.raises(PrivacyError, match="before they are paid for"):
        draw_release(plan_release(inspection, Statistics(), 1.0))


def test_a_step_that_reads_before_the_charge_fails(monkeypatch):
    """A mutant: rows are loaded where a specification is bound."""
    whole = base.PrivateStep.bound

    def eager(self, *args, **kwargs):
        step, event = whole(self, *args, **kwargs)
        step.load()
        return step, event

    monkeypatch.setattr(base.PrivateStep, "bound", eager)
    model, ledger = grouped(), dp.Ledger(epsilon=2.0)
    with sealed(model) as seal, pytest.raises(PrivacyError, match="before they are paid for"):
        sampling.sample(3, model=model, epsilon=1.0, step=dp.TemperedGibbs(), ledger=ledger, progressbar=False)
    assert not seal.read and not ledger.history


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("start", [None, pytest.param("spawn", marks=pytest.mark.slow)])
def test_latents_beside_rows_are_drawn_in_other_processes(start):
    """The gate is opened by the step itself, wherever it runs."""
    model = mixture()
    idata = dp.sample(
        2,
        tune=0,
        chains=2,
        cores=2,
        epsilon=1.0,
        model=model,
        step=dp.TemperedGibbs(),
        domain=dp.Domain(bounds=WIDE),
        progressbar=False,
        mp_ctx=start,
    )
    assert idata["posterior"]["z"].shape == (2, 2, 6)
