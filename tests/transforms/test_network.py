"""Private models of released coefficients: their density against exact sums, refits, synthetic rows, the trace."""

import warnings
from itertools import product

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats
from scipy.special import gammaln, logsumexp

import pymc_dp as dp
from pymc_dp.inspection.inspect import inspect
from pymc_dp.release.noise import GAUSSIAN
from pymc_dp.release.plan import plan_release
from pymc_dp.release.written import released_rows
from pymc_dp.released import planned
from pymc_dp.simulation.networks import draw_counts
from pymc_dp.trace.scrub import annotate
from pymc_dp.transforms.network import NetworkDensity
from pymc_dp.transforms.privatize import record_of
from tests.networks import COLLIDER, PAIR, TRIANGLE, network_model, random_rows
from tests.paid import draw_release
from tests.transforms.zoo import log_likelihoods, points, privatize

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
FOURIER = dp.Statistics(mechanism=dp.networks.FourierUpdates())


def density_of(graph, n_rows, mechanism=None, *, epsilon=1.0, noise="gaussian", levels=None, **domain):
    inspection = inspect(network_model(graph, n_rows, levels), dp.Domain(**domain)).sums
    statistics = dp.Statistics(noise, mechanism=mechanism or dp.networks.FourierUpdates())
    plan = plan_release(inspection, statistics, epsilon, 1e-6 if noise == "gaussian" else 0.0)
    return NetworkDensity.of(plan.tables[0], noise_aware=True), plan


def probabilities_of(rng, network):
    return np.concatenate(
        [rng.dirichlet(2 * np.ones(node.n_levels), network.n_cells(i)).ravel() for i, node in enumerate(network.nodes)]
    )


def interpreted(inputs, outputs):
    return pytensor.function(inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore")


# --- density ---------------------------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("graph", "levels", "noise", "domain"),
    [
        (TRIANGLE, {}, "gaussian", {}),
        (COLLIDER, {}, "laplace", {}),  # with a coefficient of parents that no edge joins
        ({"a": [], "b": ["a"]}, {"a": 3, "b": 4}, "gaussian", {}),
        (COLLIDER, {"b": 3}, "gaussian", {"neighbours": "add_remove", "n_max": 3000}),
    ],
)
def test_residuals_have_mean_zero_and_the_covariance_that_the_density_says(graph, levels, noise, domain, rng):
    """Over simulated rows and noise, squared lengths in units of the covariance are chi-squared."""
    density, _ = density_of(graph, 2000, noise=noise, epsilon=0.7, levels=levels, **domain)
    p, z, e = pt.vector(), pt.vector(), pt.vector()
    laplace = noise == "laplace"
    rest, covariance = density.residual(z, p, e if laplace else None)
    evaluate = interpreted([z, p, e], [rest, covariance])
    lengths, roots = [], []
    for _ in range(150):
        truth = probabilities_of(rng, density.network)
        exact = density.sums.exact(draw_counts(rng, density.network, truth, 2000)) * density.sums.step
        variances = rng.exponential(size=density.sums.count) if laplace else np.full(density.sums.count, 0.5)
        released = exact + density.scale * np.sqrt(2 * variances) * rng.normal(size=len(exact))
        residual, spread = evaluate(released, truth, variances)
        root = np.linalg.solve(np.linalg.cholesky(spread), residual)
        lengths.append(root @ root)
        roots.append(root)
    assert stats.kstest(lengths, stats.chi2(len(root)).cdf).pvalue > 1e-3
    roots = np.array(roots)
    assert np.abs(roots.mean(axis=0)).max() < 4.5 / np.sqrt(150)
    assert np.abs(roots.T @ roots / 150 - np.eye(len(root))).max() < 0.6


def test_posterior_of_a_pair_is_that_of_its_exact_counts():
    """Two nodes, 40 rows: every table of counts, binomial, with Gaussian noise, added up over a grid of parameters."""
    n = 40
    density, _ = density_of(PAIR, n, epsilon=2.0)
    grid = (np.arange(9) + 0.5) / 9
    at = np.array(list(product(grid, repeat=3)))
    p, z = pt.vector(), pt.matrix()
    logp = interpreted([z, p], density.logp(z, p, np.zeros((3, 1))))
    # Rows with a = 1, those of them with b = 1, and rows with b = 1 and a = 0.
    ones, one_one, zero_one = np.array(
        [(k, j, i) for k in range(n + 1) for j in range(k + 1) for i in range(n - k + 1)]
    ).T
    sums = np.stack([n - 2 * ones, n - 2 * (one_one + zero_one), n - 2 * (zero_one + ones - one_one)])
    rng = np.random.default_rng(5)
    a = rng.random(n) < 0.3
    b = rng.random(n) < np.where(a, 0.2, 0.7)
    signs = np.stack([1 - 2 * a, 1 - 2 * b, (1 - 2 * a) * (1 - 2 * b)])
    released = signs.sum(axis=1) + GAUSSIAN.simulated(rng, density.scale, (3,))
    noise = -0.5 * ((released[:, None] - sums) ** 2).sum(axis=0) / density.scale**2
    kept = noise > noise.max() - 20
    ones, one_one, zero_one, noise = ones[kept], one_one[kept], zero_one[kept], noise[kept]
    terms = [
        [stats.binom.logpmf(counts, of, share) for share in grid]
        for counts, of in ((ones, n), (zero_one, n - ones), (one_one, ones))
    ]
    exact = [logsumexp(noise + first + second + third) for first, second, third in product(*terms)]
    value = released[:, None].astype(float)
    found = [logp(value, np.array([1 - pa, pa, 1 - p0, p0, 1 - p1, p1])) for pa, p0, p1 in at]
    weights = [np.exp(np.array(item) - logsumexp(item)) for item in (exact, found)]
    means = [weight @ at for weight in weights]
    deviations = [np.sqrt(weight @ at**2 - mean**2) for weight, mean in zip(weights, means, strict=True)]
    assert np.abs(means[0] - means[1]).max() < 0.15 * deviations[0].min()
    np.testing.assert_allclose(deviations[1], deviations[0], rtol=0.1)


@pytest.mark.few(1)
@pytest.mark.parametrize("graph", [{"b": [], "a": ["b"]}, {"a": [], "b": []}])
def test_posterior_of_a_turned_or_missing_edge_is_that_of_the_exact_counts(graph):
    """Released for a -> b, fitted by b -> a or without an edge: every table of 30 rows, multinomial, added up."""
    n, rng = 30, np.random.default_rng(6)
    a = rng.random(n) < 0.3
    b = rng.random(n) < np.where(a, 0.2, 0.7)
    settings = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "statistics": dp.Statistics("gaussian", mechanism=dp.networks.FourierUpdates()),
    }
    with dp.testing.insecure_randomness(5):
        release = dp.Release.of(privatize(network_model(PAIR, {"a": a.astype(int), "b": b.astype(int)}), **settings))
    _, (table,) = planned(network_model(graph, 2), release)
    places = released_rows(release.record.tables[0].plan, table)
    density = NetworkDensity.of(table, noise_aware=True)
    p, z = pt.vector(), pt.matrix()
    logp = interpreted([z, p], density.logp(z, p, np.zeros((len(places), 1))))
    counts = np.array([one for one in product(range(n + 1), repeat=3) if sum(one) <= n])
    counts = np.column_stack([counts, n - counts.sum(axis=1)])  # of (a, b) = 00, 01, 10, 11
    sums = np.stack([counts @ sign for sign in ([1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1])])[places]
    value = release.tables["network"][places]
    weights = -0.5 * ((value - sums) ** 2).sum(axis=0) / density.scale**2 - gammaln(counts + 1).sum(axis=1)
    grid, exact, found, at = (np.arange(6) + 0.5) / 6, [], [], []
    for of_first, *of_second in product(grid, repeat=len(places)):
        first, second = np.array([1 - of_first, of_first]), np.array(2 * of_second if len(places) == 2 else of_second)
        joint = first[:, None] * np.stack([1 - second, second], axis=1)
        shares = joint.T if table.sums.network.names[0] == "b" else joint
        exact.append(logsumexp(weights + counts @ np.log(shares.ravel())))
        tables = np.stack([1 - second, second], axis=1)[: len(places) - 1]
        found.append(float(logp(value, np.concatenate([first, tables.ravel()]))))
        at.append([of_first, *of_second])
    both = [np.exp(np.array(item) - logsumexp(item)) for item in (exact, found)]
    means = [weight @ np.array(at) for weight in both]
    deviations = [np.sqrt(weight @ np.array(at) ** 2 - mean**2) for weight, mean in zip(both, means, strict=True)]
    assert np.abs(means[0] - means[1]).max() < 0.1 * deviations[0].min()
    np.testing.assert_allclose(deviations[1], deviations[0], rtol=0.1)


# --- simulation ------------------------------------------------------------------------------------------------------


# --- models ----------------------------------------------------------------------------------------------------------


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
    idata = annotate({"posterior": posterior}, *record_of(private))
    found = dp.synthesize(idata, network_model(COLLIDER, 2), 20_000, random_seed=1)
    assert set(found) == set(COLLIDER) and found.sizes == {"row": 20_000}
    frame = found.to_dataframe()
    assert frame["a"].mean() == pytest.approx(0.3, abs=0.015) and frame["b"].mean() == pytest.approx(0.8, abs=0.015)
    for (a, b), part in frame.groupby(["a", "b"]):
        assert part["c"].mean() == pytest.approx(at["p_c"][a][b], abs=0.045)
    for c, part in frame.groupby("c"):
        assert part["d"].mean() == pytest.approx(at["p_d"][c], abs=0.025)
    assert dp.synthesize(idata, network_model(COLLIDER, 2), random_seed=1).sizes == {"row": 3000}


def test_seeded_releases_of_neighbours_differ_by_the_row_alone(rng):
    rows = random_rows(rng, TRIANGLE, 40)
    other = {name: np.concatenate([[1 - values[0]], values[1:]]) for name, values in rows.items()}
    found = []
    for table in (rows, other):
        plan = plan_release(inspect(network_model(TRIANGLE, table)).sums, FOURIER, 1.0)
        with dp.testing.insecure_randomness(7):
            found.append(draw_release(plan).values["network"][:, 0])
    moved = dict(zip(plan.tables[0].cell_labels, found[0] - found[1], strict=True))
    assert {label: abs(size) for label, size in moved.items() if size} == {"a": 2, "b": 2, "c": 2, "a·b·c": 2}
