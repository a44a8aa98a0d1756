"""Private models of released coefficients: their density against exact sums, refits, synthetic rows, the trace."""

import warnings
from itertools import product

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.special import gammaln, logsumexp

import pymc_dp as dp
from tests.networks import COLLIDER, PAIR, network_model, random_rows
from tests.transforms.zoo import log_likelihoods, points, privatize

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
FOURIER = dp.Statistics(mechanism=dp.networks.FourierUpdates())


ORDERS = {"a": [1, 1, -1, -1], "b": [1, -1, 1, -1], "a·b": [1, -1, -1, 1]}
"""What rows (a, b) = 00, 01, 10, 11 add to each coefficient."""


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("graph", [PAIR, {"b": [], "a": ["b"]}, {"a": [], "b": []}])
def test_the_posterior_is_that_of_the_exact_counts(graph):
    """Released for a -> b, and fitted by it, by b -> a or without an edge: every table of 30 rows, added up."""
    n, rng = 30, np.random.default_rng(6)
    a = rng.random(n) < 0.3
    b = rng.random(n) < np.where(a, 0.2, 0.7)
    gaussian = dp.Statistics("gaussian", mechanism=dp.networks.FourierUpdates())
    with dp.testing.insecure_randomness(5):
        rows = {"a": a.astype(int), "b": b.astype(int)}
        release = dp.Release.of(privatize(network_model(PAIR, rows), 2.0, delta=1e-6, statistics=gaussian))
    (table,) = release.record.tables
    fitted = dp.condition(network_model(graph, 2), release)
    used = [name for name in table.cells if any(graph.values()) or name != "a·b"]
    value = np.array([release.tables["network"][table.cells.index(name), 0] for name in used])
    counts = np.array([one for one in product(range(n + 1), repeat=3) if sum(one) <= n])
    counts = np.column_stack([counts, n - counts.sum(axis=1)])
    off = value[:, None] - np.stack([counts @ ORDERS[name] for name in used])
    weights = -0.5 * (off**2).sum(axis=0) / table.scales[0] ** 2 - gammaln(counts + 1).sum(axis=1)
    root, leaf = graph
    grid, exact, at = (np.arange(6) + 0.5) / 6, [], []
    for of_root, *of_leaf in product(grid, repeat=3 if graph[leaf] else 2):
        first, second = np.array([1 - of_root, of_root]), np.array(of_leaf * (3 - len(of_leaf)))
        joint = first[:, None] * np.stack([1 - second, second], axis=1)
        exact.append(logsumexp(weights + counts @ np.log((joint if root == "a" else joint.T).ravel())))
        at.append([of_root, *of_leaf])
    names = [f"p_{root}_logodds__", f"p_{leaf}_logodds__"]
    logit = np.log(at) - np.log1p(-np.array(at))
    points = [dict(zip(names, (one[0], one[1:] if graph[leaf] else one[1]), strict=True)) for one in logit]
    found = log_likelihoods(fitted, points)["network"]
    both = [np.exp(np.array(item) - logsumexp(item)) for item in (exact, found)]
    means = [weight @ np.array(at) for weight in both]
    deviations = [np.sqrt(weight @ np.array(at) ** 2 - mean**2) for weight, mean in zip(both, means, strict=True)]
    assert np.abs(means[0] - means[1]).max() < 0.1 * deviations[0].min()
    np.testing.assert_allclose(deviations[1], deviations[0], rtol=0.1)


@pytest.fixture(scope="module")
def private():
    rows = random_rows(np.random.default_rng(2), COLLIDER, 3000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return privatize(network_model(COLLIDER, rows), epsilon=1.0, statistics=FOURIER)


def test_a_release_is_saved_and_fitted_by_another_model(private, tmp_path, rng):
    release = dp.Release.of(private)
    for ending in ("json", "nc"):
        loaded = dp.Release.load(release.save(tmp_path / f"network.{ending}"))
        np.testing.assert_array_equal(loaded.tables["network"], release.tables["network"])
        assert loaded.record == release.record
        np.testing.assert_allclose(loaded.marginals()["c_table"], release.marginals()["c_table"])
    same = dp.condition(network_model(COLLIDER, 2), loaded)
    at = points(private, rng, 2)
    np.testing.assert_allclose(log_likelihoods(same, at)["network"], log_likelihoods(private, at)["network"])


@pytest.mark.parametrize(
    "graph",
    [
        {"a": [], "c": ["a"], "d": ["c"]},  # fewer nodes and edges
        {"d": [], "c": ["d"], "a": ["c"]},  # edges turned around
        {"a": [], "b": ["a"], "c": ["a", "b"]},  # an edge between parents, whose table was released
    ],
)
def test_networks_whose_families_lie_within_those_released_can_be_fitted(private, graph):
    release = dp.Release.of(private)
    other = dp.condition(network_model(graph, 2), release)
    found, expected = dp.Release.of(other).marginals(), release.marginals()
    for name in graph:
        one, two = found[f"{name}_table"], expected[f"{name}_table"]
        shared = [dim for dim in one.dims if dim in two.dims]
        sides = [table.sum([dim for dim in table.dims if dim not in shared]).transpose(*shared) for table in (one, two)]
        np.testing.assert_allclose(*sides, atol=1e-9)
    assert np.isfinite(log_likelihoods(other, [other.initial_point()])["network"])


@pytest.mark.parametrize(
    ("graph", "levels", "text"),
    [
        ({"a": [], "d": ["a"]}, {}, "it needs a table of a, d"),
        ({"a": [], "z": ["a"]}, {}, "it has 2 levels, but the release has no such node"),
        (PAIR, {"b": 3}, "it has 3 levels, but the release has 2"),
    ],
)
def test_networks_that_need_more_are_refused(private, graph, levels, text):
    with pytest.raises(dp.errors.UnsupportedModelError, match=text):
        dp.condition(network_model(graph, 2, levels), dp.Release.of(private))


def test_synthetic_rows_have_the_shares_of_the_posterior_draw(private):
    at = {"p_a": 0.3, "p_b": 0.8, "p_c": [[0.1, 0.5], [0.6, 0.9]], "p_d": [0.2, 0.7]}
    dims = {name: ("chain", "draw", *(private.named_vars_to_dims.get(name) or ())) for name in at}
    posterior = xr.Dataset({name: (dims[name], np.asarray(value)[None, None]) for name, value in at.items()})
    with private:
        raw = pm.sample_prior_predictive(1, var_names=["p_a"], compile_kwargs={"mode": "FAST_COMPILE"})
    raw["posterior"] = xr.DataTree(posterior)
    idata = dp.scrub(raw, private)
    found = dp.synthesize(idata, network_model(COLLIDER, 2), 20_000, random_seed=1)
    assert set(found) == set(COLLIDER) and found.sizes == {"row": 20_000}
    frame = found.to_dataframe()
    assert frame["a"].mean() == pytest.approx(0.3, abs=0.015) and frame["b"].mean() == pytest.approx(0.8, abs=0.015)
    for (a, b), part in frame.groupby(["a", "b"]):
        assert part["c"].mean() == pytest.approx(at["p_c"][a][b], abs=0.045)
    for c, part in frame.groupby("c"):
        assert part["d"].mean() == pytest.approx(at["p_d"][c], abs=0.025)
    assert dp.synthesize(idata, network_model(COLLIDER, 2), random_seed=1).sizes == {"row": 3000}
