"""One latent per row: released, paid for once per scan, and only where the number of rows is public."""

import itertools
import math

import arviz as az
import numpy as np
import pymc as pm
import pytest

from pymc_dp.accounting import ComposedEvent
from pymc_dp.audit.quadrature import privacy_loss
from pymc_dp.domain import Domain
from pymc_dp.errors import UnsupportedModelError
from pymc_dp.sampling import sample
from pymc_dp.step_methods.gibbs import TemperedGibbs, row_latents
from pymc_dp.step_methods.gibbs.row_latents import read_given
from pymc_dp.transforms.restricted_priors import TruncatedDirichlet
from tests.step_methods.gibbs.conftest import bound, domain, scans

pytestmark = pytest.mark.usefixtures("paid")

ROWS = np.array([-2.5, -1.8, -2.2, 2.1, 1.7, 2.4, 2.9, 9.0])


def mixture(rows=ROWS, relation="replace", labels=None, weights=None):
    coords = {"row": labels if labels is not None else [f"person {i}" for i in range(len(rows))], "k": ["a", "b"]}
    with pm.Model(coords=coords) as model:
        w = pm.Dirichlet("w", np.ones(2), dims="k") if weights is None else weights
        z = pm.Categorical("z", w, dims="row")
        mean = pm.Uniform("mean", [-3.0, 0.0], [0.0, 3.0], dims="k")
        pm.Normal("y", mean[z], 1.0, observed=rows, dims="row")
    return model, domain(relation, bounds={"y": (-3, 3)})


def test_a_scan_costs_one_update_of_latents_and_one_of_means():
    step, event = bound(*mixture(), epsilon=1.0)
    assert isinstance(event.event, ComposedEvent) and len(event.event.events) == 2
    paid = {update.name: update.ranges for update in step.scan.updates}
    assert list(paid) == ["w", "z", "mean"]  # the order of the model
    assert paid["w"] == ()
    assert paid["mean"] == pytest.approx((6 * 3.0,), rel=1e-6)  # a row stays in its released cell
    assert len(paid["z"]) == 1 and paid["z"][0] == pytest.approx(6 * 6.0, rel=1e-6)  # any two means in (-3, 3)


@pytest.mark.slow
def test_no_latent_shows_its_row_by_more_than_its_range(monkeypatch):
    """Neighbours in one row, at the worst means: one latent's law changes, by no more than what a scan pays."""
    beta, worst = 0.1, 0.0
    laws = {}
    for value in np.linspace(-4, 4, 9):
        rows = ROWS.copy()
        rows[2] = value
        step, _ = bound(*mixture(rows), epsilon=1e9)
        update = next(item for item in step.scan.updates if item.name == "z")
        for means in ((-3.0, 3.0), (-3.0, 0.0), (0.0, 3.0)):
            seen = []
            monkeypatch.setattr(row_latents, "choose", lambda rng, scores: seen.append(scores))  # noqa: B023
            update.draw(None, {"w": np.array([0.4, 0.6]), "mean": np.array(means)}, {}, beta)
            monkeypatch.undo()
            laws[value, means] = seen[0] - np.logaddexp.reduce(seen[0], axis=1)[:, None]
    for (one, means), (other, same) in itertools.combinations(laws, 2):
        if means == same:
            first, second = laws[one, means], laws[other, means]
            changed = (first != second).any(axis=1)
            assert not changed[np.arange(len(ROWS)) != 2].any()
            worst = max(worst, privacy_loss(first[2], second[2]).epsilon)
    assert 0.4 * beta * update.ranges[0] < worst <= beta * update.ranges[0]


@pytest.mark.parametrize("n", [1, 10, 100, 10_000])
def test_redrawing_one_random_row_hides_nothing(n):
    """The papers' amplification by a random scan: 4 Δl Q / n, of a chain whose states are all released.

    Which latent has changed is visible. The exact law of one such step: no change, or a flip of one of n latents.
    """
    chances = np.array([0.1, 0.9])  # of z = 1 given either row; z starts at 0

    def law(row):
        flips = np.concatenate([[chances[row]], np.full(n - 1, chances[0])]) / n
        return np.log(np.concatenate([[1 - flips.sum()], flips]))

    loss = privacy_loss(law(1), law(0)).epsilon
    claim = 4 * math.log(9) / n
    assert loss == pytest.approx(math.log(9), rel=1e-9)
    assert (claim < loss) == (n > 4)
    if n in (10, 100):
        assert claim == pytest.approx({10: 0.88, 100: 0.088}[n], abs=2e-3)


def test_what_is_paid_for_latents_does_not_shrink_with_their_number():
    """The same rows in the sampler: z ~ Bernoulli(1/2), p(y = z) = .9."""
    paid = []
    for n in (3, 60):
        with pm.Model() as model:
            z = pm.Bernoulli("z", 0.5, shape=n)
            pm.Bernoulli("y", pm.math.switch(z, 0.9, 0.1), observed=np.resize([0, 1], n))
        step, _ = bound(model, Domain(), read=False)
        paid.append(step.scan.ranges)
    assert paid[0] == paid[1] == pytest.approx((2 * math.log(9),))
    assert paid[0][0] >= math.log(9)


@pytest.mark.slow
def test_the_sampler_finds_the_posterior_of_a_mixture(rng):
    """All assignments of few rows are enumerated, the means integrated on a grid."""
    rows = np.array([-1.0, 0.2, 0.9, 1.5])
    model, public = mixture(rows, weights=np.array([0.3, 0.7]))
    step, _ = bound(model, public, epsilon=1e9)
    found = scans(step, 2500, rng)
    assert found["z"].shape == (2500, 4)
    grids = [np.linspace(-3, 0, 601), np.linspace(0, 3, 601)]
    mass = np.zeros(4)
    total = 0.0
    for z in itertools.product((0, 1), repeat=4):
        z = np.array(z)
        weight = np.prod(np.where(z == 0, 0.3, 0.7))
        for level, grid in enumerate(grids):
            mine = rows[z == level]
            weight *= np.exp(-((mine[:, None] - grid) ** 2).sum(axis=0) / 2).mean()
        total += weight
        mass += weight * z
    truth = mass / total
    for place in range(4):
        chain = found["z"][:, place].astype(float)[None]
        assert float(az.ess(chain)) > 100
        assert abs(chain.mean() - truth[place]) < 5 * float(az.mcse(chain))


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("first", ["z", "p"])
def test_the_order_of_variables_does_not_matter(first, rng):
    """Rows move to other cells as soon as their latents are drawn; all assignments are enumerated."""
    answers = np.array([0, 1, 1, 1])
    with pm.Model() as model:
        if first == "z":
            z = pm.Bernoulli("z", 0.5, shape=4)
            p = pm.Uniform("p", 0.05, 0.95, shape=2)
        else:
            p = pm.Uniform("p", 0.05, 0.95, shape=2)
            z = pm.Bernoulli("z", 0.5, shape=4)
        pm.Bernoulli("y", p[z], observed=answers)
    step, _ = bound(model, Domain(), epsilon=1e9)
    found = scans(step, 3000, rng)
    grid = np.linspace(0.05, 0.95, 2001)
    total = expected = 0.0
    for levels in itertools.product((0, 1), repeat=4):
        weight, means = 1.0, []
        for level in (0, 1):
            mine = answers[np.array(levels) == level]
            density = grid ** mine.sum() * (1 - grid) ** (len(mine) - mine.sum())
            weight *= density.mean()
            means.append((grid * density).mean() / density.mean())
        total += weight
        expected += weight * means[levels[2]]
    chain = np.take_along_axis(found["p"], found["z"][:, 2:3].astype(int), axis=1)[:, 0][None]
    assert float(az.ess(chain)) > 300
    assert abs(chain.mean() - expected / total) < 5 * float(az.mcse(chain))


def test_the_trace_holds_places_not_people():
    labels = [f"canary {i}" for i in range(len(ROWS))]
    model, public = mixture(labels=labels)
    with model:
        idata = sample(3, epsilon=5.0, delta=1e-6, domain=public, step=TemperedGibbs(), progressbar=False,
                       quiet=True, compute_convergence_checks=False)  # fmt: skip
    assert idata.posterior["z"].shape == (1, 3, len(ROWS))
    assert "canary" not in str(idata.posterior.to_dict()) + str(idata.dp.report())
    assert "one latent per row, released" in str(idata.dp.report())


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "categorical", "normal"])
def test_rows_are_clamped_as_for_the_sums(family):
    """Per-row terms added up over the released cells are the likelihood of the exact sums."""
    rows = {"bernoulli": [0, 1, 1], "poisson": [0, 2, 7], "categorical": [0, 2, 1], "normal": [-5.0, 0.5, 2.0]}[family]
    with pm.Model(coords={"k": range(2), "level": range(3)}) as model:
        z = pm.Bernoulli("z", 0.4, shape=3)
        low, high = np.array([0.2, 0.5]), np.array([0.5, 0.9])
        if family == "categorical":
            p = TruncatedDirichlet("p", np.ones(3), 0.1, dims=("k", "level"))
            pm.Categorical("y", p[z], observed=np.array(rows))
        else:
            p = pm.Uniform("p", low, high, dims="k")
            kinds = {
                "bernoulli": lambda p: pm.Bernoulli("y", p, observed=np.array(rows)),
                "poisson": lambda p: pm.Poisson("y", p, observed=np.array(rows)),
                "normal": lambda p: pm.Normal("y", p, 0.5, observed=np.array(rows)),
            }
            kinds[family](p[z])
    public = Domain(bounds={"poisson": {"y": (0, 5)}, "normal": {"y": (-1, 1)}}.get(family, {}))
    step, _ = bound(model, public, epsilon=1.0)
    update = next(item for item in step.scan.updates if item.name == "z")
    rng = np.random.default_rng(1)
    values = {"p": rng.dirichlet(np.ones(3), 2) if family == "categorical" else np.array([0.3, 0.7])}
    table = update.log_likelihood(values)

    def both(z):
        sums = read_given(step.tables, step.latents, {"z": np.array(z)})["y"]
        return float(step.tables[0].logp(sums.sums, sums.sizes).sum().eval(
            {rv: values["p"] for rv in step.prior_model.free_RVs if rv.name == "p"}))  # fmt: skip

    one, other = (0, 1, 1), (1, 0, 1)
    by_rows = [sum(table[row, level] for row, level in enumerate(z)) for z in (one, other)]
    assert both(one) - both(other) == pytest.approx(by_rows[0] - by_rows[1], abs=1e-6)


def test_latents_of_a_private_number_of_rows_are_refused():
    with pytest.raises(UnsupportedModelError, match="one latent per row"):
        bound(*mixture(relation="add_remove"))


def test_latents_with_a_prior_per_row_are_refused():
    with pm.Model() as model:
        z = pm.Bernoulli("z", np.linspace(0.1, 0.9, 4))
        pm.Bernoulli("y", pm.math.switch(z, 0.2, 0.8), observed=np.array([0, 1, 1, 0]))
    with pytest.raises(UnsupportedModelError, match="per row"):
        bound(model)


def test_latents_that_reach_another_prior_are_refused():
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3, shape=4)
        q = pm.Uniform("q", 0.1, 0.5 + z.mean() / 4)
        pm.Bernoulli("y", pm.math.switch(z, q, 0.8), observed=np.array([0, 1, 1, 0]))
    with pytest.raises(UnsupportedModelError):
        bound(model)


def test_latents_that_reach_the_prior_of_other_latents_are_refused():
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3, shape=4)
        other = pm.Bernoulli("other", 0.1 + 0.8 * z.mean(), shape=4)
        q = pm.Uniform("q", 0.1, 0.9, shape=(2, 2))
        pm.Bernoulli("y", q[z, other], observed=np.array([0, 1, 1, 0]))
    with pytest.raises(UnsupportedModelError, match="per row"):
        bound(model)


def test_unbounded_components_are_refused_with_the_truncation():
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3, shape=4)
        mean = pm.Normal("mean", shape=2)
        pm.Normal("y", mean[z], 1.0, observed=np.zeros(4))
    with pytest.raises(UnsupportedModelError, match=r"dp.truncate\(model, {'mean'"):
        bound(model, Domain(bounds={"y": (-1, 1)}))


def test_improper_constants_are_refused():
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3, shape=4)
        pm.Bernoulli("y", pm.math.switch(z, 0.0, 0.5), observed=np.array([0, 1, 1, 0]))
    with pytest.raises(UnsupportedModelError, match="Keep the numbers in the likelihood away"):
        bound(model)


def test_released_latents_decide_the_cells(rng):
    step, _ = bound(*mixture(), epsilon=1e9)
    found = scans(step, 250, rng)
    assert found["z"][100:, :3].mean() < 0.1 and found["z"][100:, 3:].mean() > 0.9
    assert abs(found["mean"][100:, 0].mean() - np.clip(ROWS[:3], -3, 3).mean()) < 0.6
    assert math.isclose(found["w"].sum(axis=1).mean(), 1.0)
