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
        evidence, owners = of_elements(rng, layout, chain * steps, states)
        given = chains(rng, states, zeros=bool(trial % 2))
        family = Paths(n_chains=chain, n_steps=steps, evidence=evidence, steps=owners, **given)
        for rows in tables(rng, tally, relation):
            k = ByTotals(held(layout, rows), Rehearsal(relation))
            k.draw([family], beta=0.25)
        moved, (paths, _) = (caught[-1] - caught[-2]).reshape(chain, steps, states), log_prior(family)
        used = np.ptp(moved[:, np.arange(steps), paths].sum(axis=2), axis=1).sum()
        charged = k.made[-1].event.eta
        assert used <= charged and k.made[-1].arithmetic == "float64"
        sums = np.array(k._totals._sums) * layout.exponents(evidence, 0.25)
        expected = [sums[:, owners == step].sum(axis=1) for step in range(chain * steps)]
        np.testing.assert_allclose(
            caught[-1], np.array(expected) * 2.0 ** -(draw.SHIFT + layout.finer), rtol=1e-9, atol=1e-9
        )
        assert drawing(layout, [family], [layout.exponents(evidence, 0.25)]).eta == charged
        worst = max(worst, used / charged)
    assert worst > 0.99


def test_paths_have_the_distribution_of_their_sums():
    tally = Tally(reading=Places(3), cells=Cells((Key(np.arange(3)),)))
    rng, values = np.random.default_rng(2), np.array([0, 2, 1, 1, 2, 0, 0])
    rows = [Rows([values], [np.array([0, 0, 1, 1, 2, 2, 2])])]
    k = ByTotals(Totals(Layout([tally], "replace", 7), rows), Rehearsal("replace"))
    one = {"n_chains": 1, "n_steps": 3, "evidence": rng.normal(size=(2, 9)) - 1.5, **chains(rng, 2, zeros=False)}
    family = Paths(**one, steps=np.repeat([2, -1, 0], 3))  # evidence below 0, of the first and the last step
    paths, logs = log_prior(family)
    scores = (np.array(k._totals._sums) * one["evidence"] * 0.8).reshape(2, 3, 3).sum(axis=2)
    assert (scores < 0).any()
    expected = np.exp(logs + scores[paths[:, 2], 0] + scores[paths[:, 0], 2])
    counts = np.zeros(8)
    for _ in range(4000):
        (found,) = k.draw([family], beta=0.8)
        counts[found[0] @ [4, 2, 1]] += 1
    assert found.shape == (1, 3) and found.dtype == np.int64
    assert np.abs(counts / 4000 - expected / expected.sum()).max() < 5 * 0.5 / 4000**0.5


def test_steps_of_all_chains_are_drawn_by_their_own_sums():
    """Each cell tells the state of one step of one chain, and nearly for certain."""
    rng, chain, steps, states = np.random.default_rng(4), 40, 5, 3
    key = Key(np.arange(chain * steps))
    tally, values = Tally(reading=Places(states), cells=Cells((key,))), rng.integers(0, states, chain * steps)
    layout = Layout([tally], "replace", chain * steps)
    k = ByTotals(Totals(layout, [Rows([values], [np.arange(chain * steps)])]), Rehearsal("replace"))
    owners = rng.permutation(chain * steps)
    family = Paths(
        n_chains=chain,
        n_steps=steps,
        start=np.full(states, 1 / states),
        transition=np.full((states, states), 1 / states),
        evidence=np.tile(-30 * (1 - np.eye(states)), (1, chain * steps)),
        steps=np.repeat(owners, states),
    )
    (found,) = k.draw([family])
    assert np.array_equal(found.ravel()[owners], values)
    assert k.made[-1].event.eta == pytest.approx(60, rel=1e-6)  # a row moves two steps by 30, or one by 60


def test_paths_are_well_formed_whatever_the_sums():
    rng = np.random.default_rng(3)
    kinds = [0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 1e-300, 700.0, -700.0]
    for _ in range(300):
        states = int(rng.integers(1, 4))
        given = chains(rng, states)
        family = Paths(n_chains=2, n_steps=5, evidence=np.zeros((states, 1)), steps=[0], **given)
        found = family._draw(draw.float_generator(), rng.choice(kinds, (10, states)))
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
        {"evidence": np.zeros((3, 2))},
        {"evidence": np.full((2, 2), np.nan)},
        {"steps": [0]},
        {"steps": [0, np.nan]},
        {"steps": [[0, 1]]},
        {"n_chains": 0},
        {"n_steps": 2.0},
    ],
)
def test_chains_that_make_no_sense_are_refused(given):
    one = {"n_chains": 1, "n_steps": 2, "start": [0.5, 0.5], "transition": np.eye(2)}
    one |= {"evidence": np.zeros((2, 2)), "steps": [0, -1]}
    Paths(**one)
    with pytest.raises(ArgumentError):
        Paths(**{**one, **given})


def test_evidence_that_floats_do_not_hold_is_refused_before_the_charge():
    layout = Layout([Tally(reading=Places(2))], "replace", 2)
    k = ByTotals(Totals(layout, [Rows([np.array([0, 1])], [])]), Rehearsal("replace"))
    one = {"n_chains": 1, "n_steps": 1, "start": [0.5, 0.5], "transition": np.eye(2), "steps": [0, 0]}
    for size in (MOST_EVIDENCE / 2, 1e200):
        with pytest.raises(ArgumentError, match="too large for floats"):
            k.draw([Paths(evidence=[[size, 0.0], [0.0, 0.0]], **one)])
    for steps, text in (([0, 1], "below 1"), ([0, -2], "below 1"), ([0, -1], "of a cell"), ([0, 0.5], "whole")):
        with pytest.raises(ArgumentError, match=text):
            k.draw([Paths(evidence=np.zeros((2, 2)), **{**one, "steps": steps})])
    assert not k.made
