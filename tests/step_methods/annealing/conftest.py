import numpy as np
import pymc as pm

from pymc_dp.accounting import Budget
from pymc_dp.domain import Domain
from pymc_dp.rows.gate import opened_gate
from pymc_dp.step_methods.annealing import Annealing, Settings
from pymc_dp.step_methods.annealing.price import path_of
from pymc_dp.step_methods.gibbs import TemperedGibbs
from tests.step_methods.quick import interpreted

pytest_runtest_protocol = interpreted(__file__, slow=True)


def annealing(model, public=None, epsilon=1e9, delta=0.0, *, temperatures=4, read=True, **settings):
    """A run that is priced, with its rows."""
    given = {
        "draws": 1,
        "particles": 5,
        "resampling": "range",
        "evidence": False,
        "weights_share": 0.0,
        "evidence_share": 0.0,
        "grid": None,
        **settings,
    }
    given["evidence_share"] = given["evidence_share"] or 0.1 * given["evidence"]
    run = Annealing(TemperedGibbs().inspect(model, public), Settings(path=path_of(temperatures), **given))
    run.event = run.price(Budget(epsilon, delta))
    if read:
        with opened_gate():
            run.load()
    return run


def domain(relation, **options):
    return Domain(neighbours=relation, n_max=50 if relation == "add_remove" else None, **options)


def held(rows):
    """A column that may hold NaN, of which PyMC would make parameters if it saw it at once."""
    data = pm.Data("d", np.zeros(len(rows)))
    data.set_value(np.asarray(rows, dtype=float))
    return data


def normal(rows):
    with pm.Model() as model:
        mean = pm.Truncated("mean", pm.Normal.dist(0.0, 1.0), -2.0, 2.0)
        sd = pm.Uniform("sd", 0.5, 2.0)
        pm.Normal("y", mean, sd, observed=held(rows))
    return model


def poisson(rows):
    with pm.Model() as model:
        rate = pm.Truncated("rate", pm.Gamma.dist(2.0, 1.0), 0.5, 6.0)
        pm.Poisson("y", rate, observed=pm.Data("d", np.asarray(rows, dtype=int)))
    return model


def counts(rows):
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.05, 0.95)
        pm.Bernoulli("y", p, observed=pm.Data("d", np.asarray(rows, dtype=int)))
    return model


def grouped(rows):
    """Codes of a private group and an answer: a row may leave its cell."""
    with pm.Model() as model:
        p = pm.Truncated("p", pm.Beta.dist(1.0, 1.0), 0.05, 0.95, shape=2)
        group = pm.Data("g", np.asarray(rows, dtype=int) // 2)
        pm.Bernoulli("y", p[group], observed=pm.Data("d", np.asarray(rows, dtype=int) % 2))
    return model


def reread(run, model, rows):
    """Put other rows in the place of those of a run, and read them."""
    rows = np.asarray(rows)
    if "g" in model.named_vars:
        model["g"].set_value((rows // 2).astype(model["g"].type.dtype))
        rows = rows % 2
    model["d"].set_value(rows.astype(model["d"].type.dtype))
    with opened_gate():
        run.load()


def student(rows):
    """Without sums: rows are held one by one."""
    with pm.Model() as model:
        mu = pm.Uniform("mu", -3.0, 3.0)
        pm.StudentT("y", nu=4, mu=mu, sigma=1.0, observed=held(rows))
    return model


def ridge(rows):
    """Two variables of which only the sum is seen: one scan from the prior leaves their difference as it was."""
    with pm.Model() as model:
        a = pm.Truncated("a", pm.Normal.dist(0.0, 1.0), -3.0, 3.0)
        b = pm.Truncated("b", pm.Normal.dist(0.0, 1.0), -3.0, 3.0)
        pm.Normal("y", a + b, 0.5, observed=np.asarray(rows, dtype=float))
    return model
