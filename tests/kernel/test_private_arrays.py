"""Only the kernel computes with private values of sums: arrays that note who touches them.

What copies an array before it computes is not seen: weights that are clamped, and columns that a model computes. Both
are listed on the page of the kernel, and what else imports the gate is in the last test.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.inspection.rows import clamp_floats
from pymc_dp.kernel.tallies import Tally
from pymc_dp.rows import gate

PACKAGE = Path(dp.__file__).parent


class Noting(np.ndarray):
    """An array that notes the innermost file of the package by which something is computed of it."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        note(ufunc.__name__)
        plain = [np.asarray(one) if isinstance(one, Noting) else one for one in inputs]
        out = options.pop("out", None)
        if out is not None:
            options["out"] = tuple(np.asarray(one) if isinstance(one, Noting) else one for one in out)
        return getattr(ufunc, method)(*plain, **options)

    def __array_function__(self, function, types, args, options):
        note(function.__name__)
        return super().__array_function__(function, types, args, options)


TOUCHED = set()
READERS = {
    *("rows/source.py", "rows/passes.py", "rows/table.py", "rows/levels.py", "release/paid.py"),
    *("rows/sums.py", "transforms/likelihood.py", "find_bounds.py", "samplers/rows.py", "samplers/sums.py"),
}
"""Readers of sources and what opens the gate; then what samplers add up, and the search for bounds, by the old way."""


def note(what):
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(str(PACKAGE)):
            TOUCHED.add((Path(name).relative_to(PACKAGE).as_posix(), what))
            return
        frame = frame.f_back


N = 60
RNG = np.random.default_rng(8)
GROUP, BIT, REAL = RNG.integers(0, 3, N), RNG.integers(0, 2, N), RNG.normal(size=N)


def grouped():
    return pm.Data("g", GROUP)


def counts():
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[grouped()], observed=BIT)
    return {}


def moments():
    pm.Normal("y", pm.Normal("m", shape=3)[grouped()], pm.HalfNormal("s"), observed=REAL)
    return {"bounds": {"y": (-3, 3)}}


def logs():
    pm.LogNormal("y", pm.Normal("m"), pm.HalfNormal("s"), observed=np.exp(REAL))
    return {"bounds": {"y": (0.1, 9)}}


def vectors():
    chol, _, _ = pm.LKJCholeskyCov("c", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0, shape=2))
    pm.MvNormal("y", pm.Normal("m", shape=2), chol=chol, observed=RNG.normal(size=(N, 2)))
    return {"bounds": {"y": (-3, 3)}}


def bins():
    pm.StudentT("y", nu=4, mu=pm.Normal("m"), sigma=pm.HalfNormal("s"), observed=REAL)
    return {"bounds": {"y": (-3, 3)}}


def regression():
    x = pm.Data("x", RNG.normal(size=(N, 2)))
    pm.Normal("y", pm.Normal("a") + x @ pm.Normal("b", shape=2), pm.HalfNormal("s"), observed=REAL)
    return {"bounds": {"x": (-3, 3), "y": (-3, 3)}}


def computed():
    x = pm.Data("x", RNG.normal(size=N))
    pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x**2, pm.HalfNormal("s"), observed=REAL)
    return {"bounds": {"x": (-3, 3), "y": (-3, 3)}}


def exposures():
    hours = pm.Data("hours", RNG.uniform(1, 5, N))
    pm.Poisson("y", hours * pm.Gamma("r", 2, 1), observed=BIT)
    return {"bounds": {"hours": (1, 5), "y": (0, 9)}}


def weighted():
    pm.Data("w", RNG.uniform(0, 3, N))
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=BIT)
    return {"bounds": {"w": (0, 3)}, "weights": {"y": "w"}}


def persons():
    pm.Data("who", np.arange(N) // 2)
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=BIT)
    return {"unit": dp.Unit("who", max_rows=2), "neighbours": "add_remove", "n_max": 50}


@pytest.mark.parametrize(
    "build", [counts, moments, logs, vectors, bins, regression, computed, exposures, weighted, persons]
)
def test_private_values_of_sums_are_computed_with_in_the_kernel_alone(build, monkeypatch):
    array = gate._array
    monkeypatch.setattr(gate, "_array", lambda leaf: array(leaf).view(Noting))
    came, exact = [], Tally.exact
    monkeypatch.setattr(Tally, "exact", lambda tally, rows: came.extend(map(type, rows.values)) or exact(tally, rows))
    TOUCHED.clear()
    with pm.Model() as model:
        given = build()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dp.privatize(model, epsilon=5.0, domain=dp.Domain(**given))
    others = {(name, what) for name, what in TOUCHED if not name.startswith("kernel/")}
    assert not others
    assert Noting in came or build is persons  # whose rows are chosen in the kernel first


def test_an_array_notes_who_touches_it():
    TOUCHED.clear()
    clamp_floats(REAL.copy().view(Noting), -1.0, 1.0)
    assert {name for name, _ in TOUCHED} == {"inspection/rows.py"}


def test_few_files_ask_for_private_values():
    """Beside the readers: what does not stand on the kernel yet, and goes."""
    asking = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "rows.gate import" in path.read_text(encoding="utf-8")
    }
    old = {name for name in asking if name.startswith(("step_methods/", "proofs/", "gradients/"))}
    assert asking - old == READERS
