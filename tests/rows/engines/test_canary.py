"""The canary refuses an engine that computes otherwise, before anything is spent: each mutant is found."""

import math

import narwhals as nw
import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.plan import lay_out
from pymc_dp.rows import table as table_module
from pymc_dp.rows.engines import expressions
from tests.release.test_beside import domain_of, model_of, table
from tests.rows.engines.engines import exact, in_engine
from tests.rows.engines.test_identity import stored

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")


def half_away(frame, value):
    """round() of most databases."""
    half = frame.choose(value >= frame.number(0.0), frame.number(0.5), frame.number(-0.5))
    return (value + half).cast(nw.Int64).cast(nw.Float64)


def floor_of_half_more(frame, value):
    return (value + frame.number(0.5)).floor()


def clipped(frame, value, low, high, middle):
    """least(greatest(x, low), high): NaN and null stay, or become the high bound."""
    below = frame.choose(value < frame.number(high), value, frame.number(high))
    return frame.choose(below > frame.number(low), below, frame.number(low))


def nan_is_greatest(frame, value, low, high, middle):
    most = frame.choose(value >= frame.number(high), frame.number(high), frame.number(middle))
    outside = frame.choose(value < frame.number(low), frame.number(low), most)
    return frame.choose((value >= frame.number(low)) & (value <= frame.number(high)), value, outside)


def strict_edges(frame, value, edges, missing, last):
    count = frame.whole(0)
    for edge in edges:
        count = count + frame.choose(value >= frame.number(edge), frame.whole(1), frame.whole(0))
    return frame.choose(value <= frame.number(math.inf), count, frame.whole(missing))


def nearest_level(frame, value, low, high, *, above):
    above = frame.choose(value > frame.whole(high), frame.whole(high), value)
    return frame.choose(value < frame.whole(low), frame.whole(low), above)


MUTANTS = {
    "round": (expressions, "_rounded", half_away, ["normal", "one_cell", "regression"]),
    "floor": (expressions, "_rounded", floor_of_half_more, ["normal", "one_cell", "regression"]),
    "least and greatest": (expressions, "_clamped", clipped, ["normal", "one_cell", "regression"]),
    "NaN as the greatest": (expressions, "_clamped", nan_is_greatest, ["normal", "one_cell", "regression"]),
    "edges": (expressions, "_bin", strict_edges, ["histogram"]),
    "levels": (expressions, "within", nearest_level, ["bernoulli", "categorical"]),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_refused_and_nothing_is_spent(mutant, monkeypatch):
    module, function, other, names = MUTANTS[mutant]
    monkeypatch.setattr(module, function, other)
    for name in names:
        # Rows at hand on which the mutant agrees: the canary finds it all the same.
        rows = {key: np.zeros_like(values) for key, values in table(50).items()}
        parts, columns = stored(name, rows, np.random.default_rng(0))
        beside, _ = in_engine("polars", parts, columns)
        ledger = dp.Ledger(1.0)
        with pytest.raises(dp.errors.UnsupportedModelError, match="does not add up public constants to the integers"):
            domain = domain_of(name, "replace")
            dp.privatize(model_of(name, table(4)), epsilon=1.0, domain=domain, rows=beside, ledger=ledger)
        assert ledger.history == []


def test_integers_of_a_wrong_engine_stay_within_what_was_charged(monkeypatch):
    """Whatever an engine computes, a row moves sums by no more than what was paid for."""
    monkeypatch.setattr(table_module, "sings", lambda *_: True)
    rng = np.random.default_rng(1)

    def anything(frame, value):
        return value * frame.number(0.0) + frame.number(float(rng.integers(-(2**50), 2**50)))

    monkeypatch.setattr(expressions, "_rounded", anything)
    for name in ("one_cell", "regression"):
        model, domain = model_of(name, table(4)), domain_of(name, "replace")
        found = []
        for _ in range(12):
            parts, columns = stored(name, table(1), rng)
            beside, _ = in_engine("polars", parts, columns)
            found.append(exact(model, domain, beside)[0].ravel().astype(object))
        moved = max(sum(abs(one - other)) for one in found for other in found)
        layout = lay_out(inspect(model, domain).sums, dp.Statistics())
        assert 0 < moved <= layout.tables[0].blocks[-1].sensitivity.l1
