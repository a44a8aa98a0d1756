"""Steps that take turns: one trace, what they cost together, what they leave invariant, what is refused."""

import math
import pickle

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

import pymc_dp as dp
from pymc_dp.accounting import ComposedEvent, total_epsilon
from pymc_dp.audit import contains_canary, plant
from pymc_dp.errors import ArgumentError, BudgetExceeded, UnsupportedModelError
from pymc_dp.step_methods.own_variables import reached_by_rows
from tests.step_methods.conftest import domain
from tests.step_methods.turns import BOUNDS, LOSS, PLAIN, QUIET, ROWS, begun, bound, mixture, normal, steps

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.slow
def test_steps_take_turns_and_share_one_budget():
    ledger = dp.Ledger(**LOSS)
    with normal():
        tree = dp.sample(
            6,
            tune=4,
            **LOSS,
            step=steps(scale=0.05),
            domain=dp.Domain(bounds=BOUNDS),
            ledger=ledger,
            random_seed=1,
            **QUIET,
        )
    assert set(tree["posterior"].data_vars) == {"centre", "mean", "sd"} and tree["posterior"].sizes["draw"] == 6
    assert len(np.unique(tree["posterior"]["sd"])) == 6 and len(np.unique(tree["posterior"]["centre"])) > 1
    spent = np.append(tree["warmup_sample_stats"]["epsilon_spent"], tree["sample_stats"]["epsilon_spent"])
    assert (np.diff(spent) >= 0).all() and spent[0] > 0 and spent[-1] <= 2.0
    assert list(tree["sample_stats"].data_vars) == ["epsilon_spent"], "those of other samplers stay behind"
    assert 1.99 < tree.dp.epsilon == spent[-1] <= 2.0 and (tree.dp.delta, tree.dp.guarantee) == (1e-6, "stepwise")
    assert 1.99 < ledger.spent.epsilon <= 2.0 and len(ledger.history) == 1
    said = " ".join(str(tree.dp.report()).split())
    assert "TemperedGibbs of sd" in said and "BarkerMetropolis of mean" in said and "step 2, filter" in said
    assert "centre: no row tells anything" in said


def test_one_step_may_leave_what_no_row_tells_about():
    with normal():
        found = dp.sample(
            3,
            tune=3,
            **LOSS,
            step=dp.BarkerMetropolis(["sd", "mean"], scale=0.05),
            domain=dp.Domain(bounds=BOUNDS),
            **QUIET,
        )
    assert "centre" in found["posterior"] and found.dp.history["likelihood"].tolist() == ["BarkerMetropolis"]


def test_a_metric_is_refused_and_the_way_out_is_one_step():
    with (
        normal(),
        pytest.raises(UnsupportedModelError, match=r"(?s)Pass one step for all variables.*steps in a list share"),
    ):
        dp.sample(
            3,
            epsilon=1.0,
            step=steps(),
            domain=dp.Domain(bounds=BOUNDS, metric=dp.metrics.L1(next(iter(BOUNDS)))),
            **QUIET,
        )


def test_a_list_of_one_step_is_that_step():
    with mixture():
        found = dp.sample(
            2,
            tune=0,
            epsilon=1.0,
            step=[dp.BarkerMetropolis(scale=0.05)],
            domain=domain("replace", bounds=BOUNDS),
            **QUIET,
        )
    assert "step 1" not in str(found.dp.report())


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_chains_mean_the_same_on_one_core_and_two(cores):
    with normal():
        found = dp.sample(
            4, tune=3, chains=2, cores=cores, **LOSS, step=steps(scale=0.05), domain=dp.Domain(bounds=BOUNDS), **QUIET
        )
    one, other = found["posterior"]["sd"].values
    assert found["posterior"].sizes["chain"] == 2 and not np.isin(one, other).any()


@pytest.mark.slow
def test_neighbours_share_everything_but_the_states():
    trees = []
    for last in (1.1, -2.5):
        rows = np.append(ROWS[:-1], last)
        with dp.testing.insecure_randomness(7), normal(rows):
            ledger = dp.Ledger(epsilon=50.0, delta=1e-2)
            trees.append(
                dp.sample(
                    4,
                    tune=0,
                    epsilon=50.0,
                    delta=1e-2,
                    step=steps(),
                    domain=dp.Domain(bounds=BOUNDS),
                    ledger=ledger,
                    random_seed=1,
                    **QUIET,
                )
            )
    assert not trees[0]["posterior"]["sd"].equals(trees[1]["posterior"]["sd"])
    assert str(trees[0].dp.report()) == str(trees[1].dp.report())


@pytest.mark.slow
def test_no_canary_leaves(caplog, recwarn):
    model = normal(np.linspace(-2, 2, 12))
    column = plant(model["rows"].get_value(), low=-3, high=3)
    model["rows"].set_value(column.values)
    with model:
        tree = dp.sample(3, tune=2, **LOSS, step=steps(scale=0.05), domain=dp.Domain(bounds=BOUNDS), **QUIET)
    assert contains_canary([tree, str(tree.dp.report()), caplog.records, list(recwarn)], column.canaries) == []


# --- shares -----------------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("share", [1.0, 3.0])
def test_shares_are_raised_together_as_far_as_the_whole_allows(delta, share):
    step, event = bound(normal(), steps(share), count=20, chains=2, delta=delta)
    parts = [part.budget for part in step.parts]
    assert isinstance(event, ComposedEvent) and event.events == tuple(part.event for part in step.parts)
    assert parts[1].epsilon == pytest.approx(share * parts[0].epsilon)
    assert sum(part.delta for part in parts) <= delta
    assert 0.99 * 2.0 < total_epsilon(event, delta).epsilon <= 2.0
    together = sum(part.epsilon for part in parts)
    assert together > 2.2 if delta else together == pytest.approx(2.0, rel=2e-3)


@pytest.mark.slow
def test_steps_of_another_kind_are_priced_together():
    given = [dp.TemperedGibbs(["sd"], steps_per_draw=2), dp.PenaltyMetropolis(["mean"])]
    step, event = bound(normal(), given, count=20)
    assert 1.9 < total_epsilon(event, 1e-6).epsilon <= 2.0
    assert [part.funding.steps for part in step.parts] == [40, 20]


@pytest.mark.slow
def test_all_steps_take_the_least_power_of_the_likelihood():
    given = [dp.TemperedGibbs(["sd"]), dp.TemperedMetropolis(["mean"], beta=0.001)]
    step, _ = bound(normal(), given, count=4, epsilon=9.0, delta=1e-3)
    assert {part.power for part in step.parts} == {0.001} == {step.power}
    step, _ = bound(normal(), steps(), count=4, epsilon=2.0)
    assert 0 < step.power < 1 and {part.power for part in step.parts} == {step.power}
    assert f"power {step.power:g}" in str(step.describe())


@pytest.mark.slow
def test_a_ledger_is_charged_for_all_at_once():
    ledger = dp.Ledger(epsilon=1.0, delta=1e-6)
    with normal(), pytest.raises(BudgetExceeded):
        dp.sample(2, tune=0, **LOSS, step=steps(), domain=dp.Domain(bounds=BOUNDS), ledger=ledger, **QUIET)
    assert ledger.history == []


# --- what is sampled --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_blocks_leave_the_tempered_posterior_invariant(rng):
    """Moments of a chain, the centre drawn exactly, against quadrature over mean and sd."""
    model = normal()
    step, _ = bound(model, steps(), count=6000, epsilon=1e6, delta=1e-2)
    for part in step.parts:
        part.temper(0.5)
    grid_mean, grid_sd = np.linspace(-2, 2, 121)[1:-1], np.linspace(0.5, 2.0, 101)
    means, sds = (item.ravel() for item in np.meshgrid(grid_mean, grid_sd, indexing="ij"))
    # The mean given everything but its centre, which is N(0, 1): by quadrature, since truncation spoils the sum.
    nodes = np.linspace(-5, 5, 401)
    weights = stats.norm.pdf(nodes) / (stats.norm.cdf(2 - nodes) - stats.norm.cdf(-2 - nodes))
    prior = (stats.norm.pdf(grid_mean[:, None] - nodes) * weights).sum(axis=1).repeat(len(grid_sd))
    fit = 0.5 * stats.norm.logpdf(ROWS[:, None], means, sds).sum(axis=0)
    height = np.exp(fit - fit.max()) * prior
    height /= height.sum()
    point = begun(step, rng)
    states = []
    for _ in range(6000):
        point = step.advance(point)
        point["centre"] = _centre(point, rng)
        mean, sd = (special.expit(point[f"{name}_interval__"]) for name in ("mean", "sd"))
        states.append([4 * mean - 2, 0.5 + 1.5 * sd])
    draws = np.array(states)[200:]
    for place, grid in enumerate((means, sds)):
        for power in (1, 2):
            truth, seen = (height * grid**power).sum(), draws[:, place] ** power
            blocks = seen[: len(seen) // 40 * 40].reshape(40, -1).mean(axis=1)
            error = blocks.std() / math.sqrt(40)
            assert abs(seen.mean() - truth) < 5 * error + 1e-3, (place, power)


def _centre(point, rng):
    """Draw the centre given the mean, by weights on a grid: what PyMC's own sampler does in a chain."""
    mean = 4 * special.expit(point["mean_interval__"]) - 2
    grid = np.linspace(-5, 5, 401)
    mass = stats.norm.cdf(2 - grid) - stats.norm.cdf(-2 - grid)
    weight = stats.norm.pdf(grid) * stats.norm.pdf(mean - grid) / mass
    return np.asarray(rng.choice(grid, p=weight / weight.sum()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "epsilon", "given"),
    [
        (normal, 1e6, lambda: [dp.TemperedGibbs(["sd"]), dp.BarkerMetropolis(["mean"])]),
        (normal, 1e4, lambda: [dp.BarkerMetropolis(["mean"]), dp.PenaltyMetropolis(["sd"])]),
        (mixture, 1e4, lambda: [dp.TemperedGibbs(["w"]), dp.BarkerMetropolis(["low"])]),
    ],
)
def test_chains_agree_with_nuts_on_the_same_target(make, epsilon, given):
    public = dp.Domain(bounds=BOUNDS)
    with make() as model, pytest.warns(dp.errors.WeakGuaranteeWarning):
        tree = dp.sample(4000, tune=1000, epsilon=epsilon, delta=1e-2, step=given(), domain=public, **QUIET)
    beta = float(dict(tree.dp._record["sampler"]["facts"])["beta"].split(",")[0])
    assert beta == 1 or 0.3 < beta < 0.9, "far from the prior and from the posterior"
    names = [str(rv.name) for rv in model.free_RVs]
    with make() as tempered:
        pm.Potential("tempered", (beta - 1) * pm.logp(tempered["y"], tempered.rvs_to_values[tempered["y"]]).sum())
        truth = pm.sample(4000, tune=1000, chains=1, random_seed=1, **PLAIN)
    for name in names:
        one, other = (found["posterior"][name].values.ravel() for found in (tree, truth))
        scales = [draws.reshape(40, -1).mean(axis=1).std() / math.sqrt(40) for draws in (one, other)]
        assert abs(one.mean() - other.mean()) < 5 * math.hypot(*scales) + 1e-3, name
        assert 0.75 < one.std() / other.std() < 1.3, name


def test_a_variable_that_another_step_moves_stays_where_it_is(rng):
    step, _ = bound(normal(), steps(), count=1)
    point = begun(step, rng)
    point["mean_interval__"], point["centre"] = np.asarray(25.0), np.asarray(7.0)
    gibbs, barker = step.parts
    moved, _ = gibbs.step(point)
    assert moved["mean_interval__"] == 25.0 and moved["centre"] == 7.0
    assert moved["sd_interval__"] != point["sd_interval__"]
    after, _ = barker.step(moved)
    assert after["sd_interval__"] == moved["sd_interval__"] and after["centre"] == 7.0


@pytest.mark.slow
def test_states_can_be_saved_and_restored(rng):
    step, _ = bound(normal(), steps(), count=6, epsilon=50.0, delta=1e-2)
    with dp.testing.insecure_randomness(3):
        step.setup_chain(rng, 0, 6)
    point = {name: np.asarray(value) for name, value in step.prior_model.initial_point().items()}
    point, _ = step.step(point)
    state = pickle.loads(pickle.dumps(step.sampling_state))
    runs = []
    for _ in range(2):
        step.sampling_state = state
        runs.append([at := point])
        for _ in range(3):
            at, _ = step.step(at)
            runs[-1].append(at)
    for one, other in zip(*runs, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_steps_do_not_share_their_randomness():
    step, _ = bound(normal(), steps(), count=2)
    step.setup_chain(None, 0, 2)
    generators = [part.generator for part in step.parts]
    assert generators[0] is not generators[1] and generators[0].random() != generators[1].random()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: [dp.BarkerMetropolis(["mean"])], "leaves over sd"),
        (lambda: [dp.BarkerMetropolis(["mean"]), dp.TemperedGibbs(["sd", "mean"])], "both move 'mean'"),
        (lambda: [dp.BarkerMetropolis(["means"]), dp.TemperedGibbs(["sd"])], "names 'means'.*Did you mean 'mean'"),
        (lambda: [dp.TemperedGibbs(["sd"]), dp.BarkerMetropolis()], "all free variables, beside.*Name its own"),
        (lambda: [dp.TemperedGibbs(["sd"]), dp.OPS()], "all free variables, beside.*pass it alone"),
        (lambda: [*steps(), dp.BarkerMetropolis(["centre"])], "no row tells anything"),
        (lambda: [*steps(), pm.NUTS], "not accepted"),
        (lambda: [], "not accepted"),
        (lambda: [dp.TemperedGibbs(["sd"]), dp.DataAugmentation()], "not accepted"),
    ],
)
def test_what_does_not_fit_together_is_refused(given, words):
    ledger = dp.Ledger(**LOSS)
    with normal(), pytest.raises(ArgumentError, match=words):
        dp.sample(**LOSS, step=given(), domain=dp.Domain(bounds=BOUNDS), ledger=ledger, **QUIET)
    assert ledger.history == []


def test_problems_of_all_steps_come_at_once():
    with normal() as model, pytest.raises(UnsupportedModelError) as refused:
        dp.sample(**LOSS, step=[dp.TemperedGibbs(["sd"]), dp.BarkerMetropolis(["mean"])], model=model, **QUIET)
    assert refused.value.problems


def test_a_step_says_its_variables():
    assert repr(dp.TemperedGibbs(["sd"], grid=64)) == "TemperedGibbs(['sd'], grid=64)"
    assert repr(dp.BarkerMetropolis("mean", share=2)) == "BarkerMetropolis(['mean'], share=2)"
    with pytest.raises(ArgumentError, match="share"):
        dp.BarkerMetropolis(["mean"], share=0)
    with normal(), pytest.raises(ArgumentError, match="share"):
        dp.BarkerMetropolis(["mean"], share=2, epsilon=1.0)
    with pytest.raises(ArgumentError, match="share"):
        dp.OPS(share=2)


@pytest.mark.slow
def test_a_filter_that_ends_one_step_ends_all():
    given = [dp.BarkerMetropolis(["sd"]), dp.BarkerMetropolis(["mean"], scale=0.3)]
    loss, public = {"epsilon": 30.0, "delta": 1e-2}, dp.Domain(bounds=BOUNDS)
    with normal(), pytest.warns() as seen:
        tree = dp.sample(300, tune=0, **loss, step=given, domain=public, **QUIET)
    assert any("was spent after" in str(warning.message) for warning in seen)
    assert 0 < tree["posterior"].sizes["draw"] == tree["sample_stats"].sizes["draw"] < 300
    assert float(tree["sample_stats"]["epsilon_spent"].max()) <= 30.0


def regions():
    """Discrete classes of public regions, whose share no row tells anything about."""
    region = np.arange(12) % 3
    with pm.Model() as model:
        share = pm.Beta("share", 1, 1)
        z = pm.Bernoulli("z", share, shape=3)
        p = pm.Uniform("p", -2, 2, shape=2)
        theta = pm.Uniform("theta", 0.5, 2)
        pm.Normal("y", p[z[pm.Data("region", region)]], theta, observed=pm.Data("rows", np.resize(ROWS, 12)))
    return model


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("of_classes", [["z", "p"], ["z"]])
def test_discrete_variables_of_one_step_are_given_to_another(of_classes):
    others = [name for name in ("p", "theta") if name not in of_classes]
    public = dp.Domain(bounds=BOUNDS, public=["region"])
    with regions():
        step = [dp.TemperedGibbs(of_classes), dp.BarkerMetropolis(others, blocks="each", scale=0.05)]
        tree = dp.sample(20, tune=2, **LOSS, step=step, domain=public, **QUIET)
    assert tree["posterior"]["z"].dtype.kind == "i" and set(np.unique(tree["posterior"]["z"])) <= {0, 1}
    assert len(np.unique(tree["posterior"]["share"])) > 1
    with regions(), pytest.raises(UnsupportedModelError, match="z: it is discrete"):
        dp.sample(**LOSS, step=[dp.TemperedGibbs(["p", "theta"]), dp.BarkerMetropolis(["z"])], domain=public, **QUIET)


@pytest.mark.slow
def test_latents_of_rows_are_given_to_another_step():
    with pm.Model() as model:
        w = pm.Dirichlet("w", [1.0, 2.0])
        z = pm.Categorical("z", w, shape=8)
        p = pm.Uniform("p", 0.1, 0.9, shape=2)
        pm.Bernoulli("y", p[z], observed=np.arange(8) % 2)
    assert reached_by_rows(model) == {"z", "p"}
    tree = dp.sample(5, tune=2, **LOSS, step=[dp.TemperedGibbs(["z"]), dp.TemperedGibbs(["p"])], model=model, **QUIET)
    assert tree["posterior"]["z"].shape == (1, 5, 8)
    with pytest.raises(UnsupportedModelError, match="one latent per row"):
        dp.sample(**LOSS, step=[dp.TemperedGibbs(["z"]), dp.BarkerMetropolis(["p"])], model=model, **QUIET)
