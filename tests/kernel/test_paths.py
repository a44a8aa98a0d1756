"""Hidden states by exact sums: all paths together move by no more than is charged, and have their distribution."""

import itertools

import numpy as np
import pytest

from pymc_dp.errors import ArgumentError
from pymc_dp.kernel import draw
from pymc_dp.kernel.account import Rehearsal
from pymc_dp.kernel.conjugates import drawing
from pymc_dp.kernel.layout import Layout
from pymc_dp.kernel.paths import MOST_EVIDENCE, Paths
from pymc_dp.kernel.readings import Places
from pymc_dp.kernel.tallies import Cells, Key, Rows, Tally
from pymc_dp.kernel.totals import ByTotals, Totals
from tests.kernel.pairs import PAIRS
from tests.kernel.test_elements import of_elements
from tests.kernel.test_totals import held, layout_of, random_tally, tables


def chains(rng, states, *, zeros=True):
    start, transition = rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), states)
    if zeros:
        keep = rng.random((states + 1, states)) < 0.6
        keep[np.arange(states + 1), rng.integers(0, states, states + 1)] = True
        both = np.concatenate([start[None], transition]) * keep
        start, *transition = both / both.sum(axis=1, keepdims=True)
    return {"start": start, "transition": np.array(transition)}


def log_prior(family):
    """Log probabilities of all paths of one chain, those that are possible."""
    with np.errstate(divide="ignore"):
        start, moves = np.log(family.start), np.log(family.transition)
    paths = np.array(list(itertools.product(range(len(start)), repeat=family.n_steps)))
    logs = start[paths[:, 0]] + moves[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    return paths[logs > -np.inf], logs[logs > -np.inf]


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_neighbours_move_paths_by_the_range_that_is_charged_at_most(relation, monkeypatch):
    caught, rng, worst = [], np.random.default_rng(1), 0.0
    monkeypatch.setattr(Paths, "_draw", lambda self, rng, sums: caught.append(sums.copy()) or sums)
    for trial in range(PAIRS):
        tally, chain, steps, states = random_tally(rng), 2, int(rng.integers(1, 4)), int(rng.integers(1, 4))
        layout = layout_of(tally, relation)
        evidence = of_elements(rng, layout, tally, chain * steps, states).reshape(chain * steps * states, -1)
        given = chains(rng, states, zeros=bool(trial % 2))
        family = Paths(n_chains=chain, n_steps=steps, evidence=evidence, **given)
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            k.draw([family], beta=0.25)
        moved, (paths, _) = (caught[-1] - caught[-2]).reshape(chain, steps, states), log_prior(family)
        used = np.ptp(moved[:, np.arange(steps), paths].sum(axis=2), axis=1).sum()
        charged = k.made[-1].event.eta
        assert used <= charged and k.made[-1].arithmetic == "float64"
        assert drawing(layout, [family], [layout.exponents(evidence, 0.25)]).eta == charged
        worst = max(worst, used / charged)
    assert worst > 0.99


def test_paths_have_the_distribution_of_their_sums():
    tally = Tally(reading=Places(3), cells=Cells((Key(np.arange(3)),)))
    rng, values = np.random.default_rng(2), np.array([0, 2, 1, 1, 2, 0, 0])
    rows = [Rows([values], [np.array([0, 0, 1, 1, 2, 2, 2])])]
    k = ByTotals(Totals(Layout([tally], "replace", 7), rows), Rehearsal("replace"))
    evidence = np.einsum("ab,sl->asbl", np.eye(3), rng.normal(size=(2, 3))).reshape(6, 9)
    family = Paths(n_chains=1, n_steps=3, evidence=evidence, **chains(rng, 2, zeros=False))
    paths, logs = log_prior(family)
    sums = np.array(k._totals._sums) @ evidence.T * 0.8
    expected = np.exp(logs + sums.reshape(3, 2)[np.arange(3), paths].sum(axis=1))
    many = Paths(
        n_chains=4000,
        n_steps=3,
        start=family.start,
        transition=family.transition,
        evidence=np.tile(evidence, (4000, 1)),
    )
    (found,) = k.draw([many], beta=0.8)
    assert found.shape == (4000, 3) and found.dtype == np.int64
    counts = np.bincount(found @ [4, 2, 1], minlength=8)
    assert np.abs(counts / 4000 - expected / expected.sum()).max() < 5 * 0.5 / 4000**0.5


def test_paths_are_well_formed_whatever_the_sums():
    rng = np.random.default_rng(3)
    kinds = [0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 1e-300, 700.0, -700.0]
    for _ in range(300):
        states = int(rng.integers(1, 4))
        given = chains(rng, states)
        family = Paths(n_chains=2, n_steps=5, evidence=np.zeros((10 * states, 1)), **given)
        found = family._draw(draw.float_generator(), rng.choice(kinds, 10 * states))
        assert found.shape == (2, 5) and ((found >= 0) & (found < states)).all()
        assert (family.start[found[:, 0]] > 0).all() and (family.transition[found[:, :-1], found[:, 1:]] > 0).all()
        assert family.reached[np.arange(5), found].all()


@pytest.mark.parametrize(
    "given",
    [
        {"start": [0.5, 0.6]},
        {"start": [1.5, -0.5]},
        {"start": [1.0]},
        {"transition": [[1.0, 0.0], [0.0, 0.0]]},
        {"transition": [[1.0, 0.0]]},
        {"evidence": np.zeros((5, 2))},
        {"evidence": np.full((4, 2), np.nan)},
        {"n_chains": 0},
        {"n_steps": 2.0},
    ],
)
def test_chains_that_make_no_sense_are_refused(given):
    one = {"n_chains": 1, "n_steps": 2, "start": [0.5, 0.5], "transition": np.eye(2), "evidence": np.zeros((4, 2))}
    Paths(**one)
    with pytest.raises(ArgumentError):
        Paths(**{**one, **given})


def test_evidence_that_floats_do_not_hold_is_refused_before_the_charge():
    layout = Layout([Tally(reading=Places(2))], "replace", 2)
    k = ByTotals(Totals(layout, [Rows([np.array([0, 1])], [])]), Rehearsal("replace"))
    one = {"n_chains": 1, "n_steps": 1, "start": [0.5, 0.5], "transition": np.eye(2)}
    for size in (MOST_EVIDENCE / 2, 1e200):
        with pytest.raises(ArgumentError, match="too large for floats"):
            k.draw([Paths(evidence=[[size, 0.0], [0.0, 0.0]], **one)])
    assert not k.made
