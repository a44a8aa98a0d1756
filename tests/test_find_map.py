"""``dp.find_map``: what is charged, refused, shown and written; and what the paper's score would cost."""

import json

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp

GRID = np.linspace(0.05, 0.95, 19)


pytestmark = [
    pytest.mark.usefixtures("interpreted"),
    pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning"),
]


def share(rows=(0, 1, 1, 1), low=0.05, high=0.95):
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(2.0, 2.0), low, high)
        pm.Deterministic("odds", p / (1 - p))
        pm.Bernoulli("y", p, observed=np.asarray(rows, dtype=int))
    return model


def test_the_estimate_is_one_draw_that_may_be_published(tmp_path):
    ledger = dp.Ledger(epsilon=3.0)
    idata = dp.find_map(epsilon=2.0, model=share([0] * 50 + [1] * 200), grid={"p": GRID}, ledger=ledger)
    assert ledger.spent.epsilon == 2.0 and ledger.history[0].label == "CandidateMode of p"
    assert (idata.dp.epsilon, idata.dp.guarantee, idata.dp.arithmetic) == (2.0, "exact", "hardened")
    p, odds = (float(idata["posterior"][name].squeeze()) for name in ("p", "odds"))
    number = int(idata["sample_stats"]["candidate"].squeeze())
    assert p == pytest.approx(GRID[number]) and odds == pytest.approx(p / (1 - p))
    assert idata.dp.publish(tmp_path / "map.nc").is_file()
    assert set(idata.children) == {"posterior", "sample_stats", "privacy"}
    assert "log joint density within" in str(idata.dp.report())
    assert dp.answer(idata, "zero_one", [p], query="p").regret is None


def test_the_range_of_a_row_is_that_of_a_difference_of_two():
    """3 log 2 for counts up to 3 and rates of 1 and 2; one row alone has less."""
    with pm.Model() as model:
        pm.Poisson("y", pm.Uniform("rate", 0.5, 3), observed=[0, 1, 3, 2])
    domain = dp.Domain(bounds={"y": (0, 3)})
    idata = dp.find_map(epsilon=1.0, model=model, domain=domain, grid={"rate": [1.0, 2.0]}, progressbar=False)
    moves = dict(idata.dp.report().record["sampler"]["facts"])["one row moves"]
    assert float(moves.split()[2].rstrip(":")) == pytest.approx(3 * np.log(2), rel=1e-4)
    assert "times the bound" not in moves, "what is enforced was raised: the range was not one of all rows"


def test_a_second_choice_is_seen():
    model = share()
    dp.find_map(epsilon=0.5, model=model, grid=4)
    with pytest.warns(dp.errors.RepeatedReleaseWarning, match="release from these rows"):
        dp.find_map(epsilon=0.5, model=model, grid=4)


def test_candidates_of_a_trace_are_paid_for_together():
    model, ledger = share([0] * 20 + [1] * 60), dp.Ledger(epsilon=5.0)
    draws = dp.sample(6, epsilon=3.0, step=dp.OPS(), model=model, ledger=ledger, progressbar=False)
    idata = dp.find_map(epsilon=0.5, model=model, candidates=draws, ledger=ledger)
    assert idata.dp.epsilon == 3.5 == ledger.spent.epsilon and idata.dp.guarantee == "exact"
    number = int(idata["sample_stats"]["candidate"].squeeze())
    assert float(idata["posterior"]["p"].squeeze()) == pytest.approx(float(draws["posterior"]["p"][0, number]))
    assert "covered by ε = 3.5" in str(idata.dp.report())
    draws["posterior"]["p"].values[0, 0] = 0.5
    with pytest.raises(dp.errors.TraceError, match="candidates holds draws that are not those that were paid for"):
        dp.find_map(epsilon=0.5, model=model, candidates=draws, ledger=ledger)
    assert ledger.spent.epsilon == 3.5


def test_the_price_of_a_trace_cannot_be_changed_to_a_lower_one():
    model, ledger = share([0] * 20 + [1] * 60), dp.Ledger(epsilon=5.0)
    draws = dp.sample(6, epsilon=3.0, step=dp.OPS(), model=model, ledger=ledger, progressbar=False)
    record = json.loads(draws["privacy"].attrs["dp_record"])
    draws["privacy"].attrs["dp_record"] = json.dumps({**record, "epsilon": 0.001})
    with pytest.raises(dp.errors.TraceError, match="dp_record was changed"):
        dp.find_map(epsilon=0.5, model=model, candidates=draws, ledger=ledger)
    assert ledger.spent.epsilon == 3.0


def test_what_the_trace_of_candidates_took_as_public_is_said_again():
    """The choice protects x; the draws that it shows one of do not."""
    with pm.Model() as model:
        x = pm.Data("x", np.array([0, 1, 0, 1, 1, 0]))
        pm.Bernoulli(
            "y", pm.Truncated("p", pm.Beta.dist(2.0, 2.0), 0.05, 0.95, shape=2)[x], observed=[0, 1, 1, 1, 0, 0]
        )
    ledger, public = dp.Ledger(epsilon=5.0), dp.Domain(public=["x"])
    draws = dp.sample(6, epsilon=1.0, step=dp.OPS(), domain=public, model=model, ledger=ledger, progressbar=False)
    idata = dp.find_map(epsilon=0.5, model=model, candidates=draws, ledger=ledger)
    assert "public column x" in str(idata.dp.report()) and idata.dp.epsilon == 1.5


def test_candidates_of_a_trace_under_a_metric_cost_what_whole_rows_do():
    def bounded():
        with pm.Model() as model:
            pm.Normal("y", pm.Uniform("m", -1, 1), 1, observed=np.zeros(5))
        return model

    ends, ledger = {"y": (-1, 1)}, dp.Ledger(9.0)
    metric = dp.Domain(bounds=ends, metric=dp.metrics.L1("y"))
    options = {"step": dp.OPS(), "model": bounded(), "ledger": ledger, "progressbar": False}
    draws = dp.sample(4, epsilon=0.5, domain=metric, **options)
    assert draws.dp.epsilon == pytest.approx(1.0) and draws.dp.epsilon_per_unit == 0.5
    idata = dp.find_map(epsilon=0.5, domain=dp.Domain(bounds=ends), model=bounded(), candidates=draws, ledger=ledger)
    assert idata.dp.epsilon == pytest.approx(1.5) and idata.dp.metric is None and "the metric" in str(idata.dp.report())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"grid": 4, "candidates": {"p": [0.2, 0.5]}}, "grid and candidates exclude each other"),
        ({"grid": 4, "annealed": True}, "grid and annealed exclude each other"),
        ({"assume_converged": True}, "assume_converged=True is for the annealed posterior"),
        ({"annealed": 1}, "annealed must be True or False"),
        ({"grid": 1}, "grid must be >= 2"),
        ({"candidates": [0.2, 0.5]}, "candidates must be a trace"),
        ({"epsilon": 0.0}, "epsilon must be > 0"),
    ],
)
def test_arguments_are_checked(given, text):
    ledger = dp.Ledger(1.0)
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.find_map(**{"epsilon": 1.0, "model": share(), "ledger": ledger, **given})
    assert ledger.spent.epsilon == 0.0


def several(**beside):
    """A share, and two shares of groups."""
    with pm.Model() as model:
        u, p = pm.Uniform("u", -1, 3), pm.Beta("p", 1, 1, shape=2)
        pm.Bernoulli("y", p[pm.Data("g", np.arange(6) % 2)] / (4 + u), observed=np.zeros(6, dtype=int))
    return {"model": model, **beside}


def loose(kind, **beside):
    """A model whose prior has no ends, is of probabilities, or is in a ball."""
    with pm.Model() as model:
        priors = {"simplex": pm.Dirichlet.dist(np.ones(2)), "beta": pm.Beta.dist(2, 2, shape=2)}
        b = model.register_rv(priors.get(kind, pm.Normal.dist(shape=2)), "b")
        pm.Bernoulli("y", pm.math.sigmoid(b[0]), observed=np.zeros(6, dtype=int))
    return {"model": dp.truncate(model, norms={"b": 2.0}) if kind == "ball" else model, **beside}


HALVES = [[0.5, 0.5]] * 2
CANDIDATES = [
    (several(candidates={"u": [0.0, 1.0]}), r"values of \['u'\], but the free variables are \['p', 'u'\]"),
    (several(candidates={"u": [0.0, 1.0], "p": [0.5, 0.5]}), r"must have shape \(n_candidates, 2\), got \(2,\)"),
    (several(candidates={"u": [0.0, 1.0], "p": HALVES[:1]}), r"as many for each variable, got \["),
    (several(candidates={"u": [0.0, np.nan], "p": HALVES}), r"candidates\['u'\] must hold finite numbers"),
    (several(candidates={"u": np.ma.array([0.0, 1.0], mask=[0, 1]), "p": HALVES}), "must hold finite numbers"),
    (several(candidates={"u": ["a", "b"], "p": HALVES}), "must be an array of numbers"),
    (several(candidates={"u": [0.0, 0.0], "p": HALVES}), "There are 1 distinct candidates, and there must be 2 to"),
    (several(candidates={"u": [0.0, 3.1], "p": HALVES}), "candidates of 'u' are outside of the support of its prior"),
    (loose("beta", candidates={"b": [[0.0, 0.5], [0.5, 0.5]]}), "1 of 2 candidates have no finite prior density"),
    (several(grid={"q": [1.0]}), r"grid names \['q'\], but the free variables are \['p', 'u'\]"),
    (several(grid={"p": HALVES, "u": [0.0, 1.0]}), r"grid\['p'\] must be a list of numbers, got shape \(2, 2\)"),
    (several(grid=2000), "The grid has 8000000000 points, more than"),
    (loose("normal"), "The prior of 'b' has no ends between which a grid could be laid"),
    (loose("simplex"), "A grid cannot hold probabilities that add up to 1"),
    (loose("simplex", candidates={"b": [[0.5, 0.5], [0.5, 0.6]]}), "1 of 2 candidates are not among the values that b"),
    (loose("ball", grid=20), "lie outside of the ball that 'b' is restricted to, of radius 2. Give annealed=True"),
]


@pytest.mark.parametrize(("given", "text"), CANDIDATES, ids=[text.split(".")[0][:30] for _, text in CANDIDATES])
def test_candidates_that_do_not_fit_cost_nothing(given, text):
    ledger = dp.Ledger(1.0)
    with pytest.raises(dp.errors.ArgumentError, match=text):
        dp.find_map(**{"epsilon": 1.0, "ledger": ledger, "progressbar": False, **given})
    assert ledger.history == []


def test_a_grid_over_many_scalars_is_refused():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=5)
        pm.Bernoulli("y", p[pm.Data("g", np.arange(5))], observed=np.zeros(5, dtype=int))
    with pytest.raises(dp.errors.ArgumentError, match="A grid over 5 scalars is too fine or too coarse"):
        dp.find_map(epsilon=1.0, model=model)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_candidates_given_one_by_one_are_chosen_by_their_density(relation):
    """Equal ones count once and keep their numbers; at a large ε the likeliest is chosen."""
    domain = dp.Domain(neighbours=relation, n_max=1000 if relation == "add_remove" else None)
    ledger = dp.Ledger(1e4, neighbours=relation)
    values = {"p": [0.2, 0.7, 0.2, 0.5]}
    idata = dp.find_map(
        epsilon=1e3,
        model=share([0] * 25 + [1] * 25),
        candidates=values,
        domain=domain,
        ledger=ledger,
        progressbar=False,
    )  # fmt: skip
    assert float(idata["posterior"]["p"].squeeze()) == 0.5 and int(idata["sample_stats"]["candidate"].squeeze()) == 3
    text = " ".join(str(idata.dp.report()).replace("│", " ").split())
    assert "candidates, given as numbers: points of 'p'" in text


def test_what_tells_nothing_and_what_may_tell_anything_is_refused():
    with pytest.raises(dp.errors.UnsupportedModelError, match="Give other candidates") as nothing:
        with pm.Model() as model:
            pm.Bernoulli("y", 0.5 + 0 * pm.Uniform("p", 0, 1), observed=[0, 1, 1])
        dp.find_map(epsilon=1.0, model=model, grid={"p": [0.2, 0.4]})
    assert "no row can tell anything about the parameters, or about which candidate" in str(nothing.value)
    with pytest.raises(dp.errors.UnsupportedModelError, match="y"), pm.Model() as model:
        pm.Normal("y", pm.Uniform("m", -1, 1), 1.0, observed=np.zeros(4))
        dp.find_map(epsilon=1.0, grid={"m": [0.2, 0.4]})


def test_draws_of_another_relation_or_beside_a_metric_are_no_candidates():
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("m", -1, 1), 1.0, observed=np.zeros(5))
    ends, ledger = {"y": (-1, 1)}, dp.Ledger(9.0)
    given = {"model": model, "ledger": ledger, "progressbar": False}
    draws = dp.sample(4, epsilon=0.5, step=dp.OPS(), domain=dp.Domain(bounds=ends), **given)
    for domain, text in (
        (dp.Domain(bounds=ends, metric=dp.metrics.L1("y")), "losses per row and per unit of distance do not add"),
        (dp.Domain(bounds=ends, neighbours="add_remove", n_max=9), "under replace, but the domain says add_remove"),
    ):
        with pytest.raises(dp.errors.ArgumentError, match=text):
            dp.find_map(epsilon=0.5, candidates=draws, domain=domain, **given)
    assert ledger.spent.epsilon == 0.5


def test_an_annealed_draw_under_a_metric_is_of_a_grid():
    """One row a unit away moves log-densities by little: at 200 rows the draw is near the mean."""
    with pm.Model() as model:
        pm.Normal("y", pm.Uniform("m", -1, 1), 1.0, observed=np.full(200, 0.5))
    domain = dp.Domain(bounds={"y": (-1, 1)}, metric=dp.metrics.L1("y"))
    with dp.testing.insecure_randomness(1):
        idata = dp.find_map(epsilon=5.0, model=model, domain=domain, annealed=True, progressbar=False)
    assert idata.dp.epsilon_per_unit == 5.0 and abs(float(idata["posterior"]["m"].squeeze()) - 0.5) < 0.5
