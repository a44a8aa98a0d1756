"""Charge before read: no entry point looks at a row before its ledger is charged, and what is free never does.

Rows of a model are sealed: every look at them is noted, and raises where nothing was charged.
"""

import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pymc as pm
import pytensor
import pytest
from pytensor.compile import SharedVariable

import pymc_dp as dp
from pymc_dp.inspection.rows import unwrap
from pymc_dp.rows import gate
from tests.networks import PAIR, network_model

ROOT = Path(dp.__file__).parent
ANSWERS = np.array([0, 1, 1, 0, 1, 1, 0, 1])
SHAPES = {(str(ROOT / "inspection" / "rows.py"), "shape_of"), (str(ROOT / "inspection" / "schema.py"), "dim_length")}
"""What may ask for a shape."""


def grouped():
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.05, 0.95, shape=2)
        pm.Bernoulli("y", p[pm.Data("group", np.arange(8) % 2)], observed=ANSWERS)
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


def network():
    return network_model(PAIR, {"a": ANSWERS, "b": 1 - ANSWERS})


X, BOTH = (dict.fromkeys(names, (-1, 1)) for names in ("x", "xy"))


def private(**given):
    return lambda model, **more: dp.privatize(model, **{"epsilon": 1.0, **given, **more})


WAYS = {
    "counts with Laplace noise": (grouped, {}, private()),
    "counts with Gaussian noise": (grouped, {}, private(delta=1e-5, statistics=dp.Statistics(noise="gaussian"))),
    "products of a regression": (linear, BOTH, private()),
    "coefficients of a network": (
        network,
        {},
        private(statistics=dp.Statistics(mechanism=dp.networks.FourierUpdates())),
    ),
    "noised gradients": (logistic, X, private(delta=1e-3, statistics=dp.Gradients())),
}
"""What samplers read, and when, is looked at in tests/promises."""
FREE = {
    "explain": (logistic, X, lambda model, domain: dp.explain(model, domain, epsilon=1.0, delta=1e-3)),
    "explain counts": (grouped, {}, lambda model, domain: dp.explain(model, domain, epsilon=1.0)),
    "sensitivity": (logistic, X, dp.sensitivity),
    "sensitivity of counts": (grouped, {}, dp.sensitivity),
    "plan": (grouped, {}, lambda one, domain: dp.plan(one, 1.0, domain=domain, repeats=2, progressbar=False)),
}


class Seal:
    """Notes looks at sealed values; one before the charge raises, and names who looked."""

    def __init__(self, ledger):
        self.ledger, self.broken, self.read = ledger, [], 0

    def look(self):
        frame = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(str(ROOT)):
            frame = frame.f_back
        where = ("a test", "") if frame is None else (frame.f_code.co_filename, frame.f_code.co_name)
        if where in SHAPES:
            return
        if not (self.ledger.history and gate._OPEN.get()):
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


@contextmanager
def sealed(model, ledger):
    seal = Seal(ledger)
    observed = [unwrap(model.rvs_to_values[rv]) for rv in model.observed_RVs]
    for leaf in dict.fromkeys([*model.data_vars, *observed]):
        seal.put_on(leaf)
    with warnings.catch_warnings(), pytensor.config.change_flags(mode="FAST_COMPILE"):
        warnings.simplefilter("ignore")
        yield seal
    assert seal.broken == []


def test_a_look_breaks_the_seal():
    for model, look in (
        (grouped(), lambda model: model["group"].get_value()),
        (grouped(), lambda model: model["group"].eval()),
        (grouped(), lambda model: model.rvs_to_values[model["y"]].data),
        (linear(), lambda model: model.compile_logp()(model.initial_point())),
    ):
        with pytest.raises(AssertionError, match="a test"), sealed(model, dp.Ledger(1.0)):
            look(model)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("way", WAYS)
def test_rows_are_read_after_the_charge_and_never_where_it_is_refused(way):
    build, bounds, use = WAYS[way]
    for epsilon, delta in ((2.0, 1e-2), (0.5, 1e-4)):
        model, ledger = build(), dp.Ledger(epsilon, delta)
        with sealed(model, ledger) as seal:
            try:
                use(model, domain=dp.Domain(bounds=bounds), ledger=ledger)
            except dp.errors.BudgetExceeded:
                assert epsilon < 1 and not seal.read
            else:
                assert epsilon > 1 and seal.read and len(ledger.history) == 1


@pytest.mark.parametrize("what", FREE)
def test_what_is_free_never_looks(what):
    build, bounds, use = FREE[what]
    model = build()
    with sealed(model, dp.Ledger(1.0)) as seal:
        use(model, dp.Domain(bounds=bounds))
    assert not seal.read


def test_the_gate_is_shut_but_in_its_block_and_thread():
    shared, found = pytensor.shared(np.arange(4.0), name="x"), []

    def look():
        try:
            found.append(gate.private_values(shared).tolist())
        except dp.errors.PrivacyError as error:
            found.append(type(error))

    look()
    with pytest.raises(ZeroDivisionError), gate.opened_gate():
        look()
        thread = Thread(target=look)
        thread.start()
        thread.join()
        raise ZeroDivisionError
    look()
    assert found == [dp.errors.PrivacyError, [0.0, 1.0, 2.0, 3.0], dp.errors.PrivacyError, dp.errors.PrivacyError]
