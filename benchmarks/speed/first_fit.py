"""CPU seconds until the first fit is there: cold (nothing compiled yet), warm, again, and with another epsilon.

    python benchmarks/speed/first_fit.py              # every block
    python benchmarks/speed/first_fit.py import SGLD  # these

A block runs in two processes one after the other that share caches of PyTensor and numba, empty for the first of them.
Seconds are those of the process and its children, not of the clock. Beside most blocks stands plain PyMC on a model
of the same shape.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

STAGES = ("import", "pymc_dp", "explain", "first", "second", "epsilon", "total")
SAMPLED = {"draws": 500, "tune": 500, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 1}


def seconds() -> float:
    """CPU time of this process and of its children that ended."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


class Clock:
    """What each stage took."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def __call__(self, stage: str, call: Callable[[], Any]) -> Any:
        start = seconds()
        found = call()
        self.spent[stage] = seconds() - start
        return found


def fit_twice(clock: Clock, fit: Callable[[], Any]) -> None:
    """A model without privacy: the first fit and the second."""
    clock("first", fit)
    clock("second", fit)


def fit_private(clock: Clock, fit: Callable[[float], Any]) -> None:
    """The first fit, the second, and one at another epsilon."""
    clock("first", lambda: fit(1.0))
    clock("second", lambda: fit(1.0))
    clock("epsilon", lambda: fit(0.7))


def survey_model() -> Any:
    import pymc as pm

    import pymc_dp as dp

    survey = dp.datasets.load_fair()
    with pm.Model(coords={"rating": range(1, 6)}) as model:
        rating = pm.Data("rating_index", survey["rate_marriage"].to_numpy() - 1)
        p = pm.Beta("p", 1, 1, dims="rating")
        pm.Bernoulli("affair", p[rating], observed=survey["affair"].to_numpy())
    return model


def readme(clock: Clock) -> None:
    import pymc_dp as dp

    model = survey_model()
    clock("explain", lambda: str(dp.explain(model)))
    fit_private(clock, lambda epsilon: dp.sample(model=model, epsilon=epsilon, **SAMPLED))


def readme_plain(clock: Clock) -> None:
    import pymc as pm

    model = survey_model()
    fit_twice(clock, lambda: pm.sample(model=model, **SAMPLED))


def regression_model() -> Any:
    import numpy as np
    import pymc as pm

    rng = np.random.default_rng(1)
    rows = np.clip(rng.normal(size=(2000, 2)), -3, 3)
    income = np.clip(4 + rows @ [0.5, 1.0] + rng.normal(size=2000), 0, 10)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 1, shape=2)
        mean = pm.Normal("base", 3, 2) + pm.Data("x", rows) @ beta
        pm.Normal("income", mean, pm.HalfNormal("sd", 2), observed=income)
    return model


def regression(clock: Clock) -> None:
    import pymc_dp as dp

    model = regression_model()
    domain = dp.Domain(bounds={"x": (-3, 3), "income": (0, 10)})
    budget = {"delta": 1e-6, "domain": domain, "statistics": dp.Statistics(noise="gaussian")}
    fit_private(clock, lambda epsilon: dp.sample(model=model, epsilon=epsilon, **budget, **SAMPLED))


def regression_plain(clock: Clock) -> None:
    import pymc as pm

    model = regression_model()
    fit_twice(clock, lambda: pm.sample(model=model, **SAMPLED))


def logistic_model() -> Any:
    import numpy as np
    import pymc as pm

    rng = np.random.default_rng(1)
    x = np.clip(rng.normal(size=(20_000, 4)), -3, 3)
    y = rng.random(20_000) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.25, 0.0]))
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=4)
        pm.Bernoulli("y", logit_p=pm.Data("x", x) @ b, observed=y.astype(np.int64))
    return model


def sgld(clock: Clock) -> None:
    import pymc_dp as dp

    model = logistic_model()
    budget = {"delta": 1e-6, "domain": dp.Domain(bounds={"x": (-3, 3)}), "chains": 1, "progressbar": False}

    def fit(epsilon: float) -> Any:
        step = dp.SGLD(batch_size=256, clip_norm=1.0, step_size=1e-5)
        return dp.sample(500, epsilon=epsilon, step=step, model=model, random_seed=1, **budget)

    fit_private(clock, fit)


def sgld_plain(clock: Clock) -> None:
    import pymc as pm

    model = logistic_model()
    fit_twice(clock, lambda: pm.sample(model=model, **SAMPLED))


def adult_model() -> Any:
    import pymc as pm

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from _logistic import adult

    train, _ = adult()
    with pm.Model() as model:
        w = pm.Normal("w", 0, 3, shape=train.x.shape[1])
        pm.Bernoulli("y", logit_p=pm.Data("x", train.x) @ w, observed=train.y)
    return model


def gradients(clock: Clock) -> None:
    """Thirty columns of Adult."""
    import pymc_dp as dp

    model = adult_model()
    budget = {"delta": 1e-5, "domain": dp.Domain(norms={"x": 1.0}), "statistics": dp.Gradients()}
    fit_private(clock, lambda epsilon: dp.sample(model=model, epsilon=epsilon, **budget, **SAMPLED))


def nothing(clock: Clock) -> None:
    """Imports alone."""


BLOCKS: dict[str, tuple[Callable[[Clock], None], Callable[[Clock], None] | None]] = {
    "import": (nothing, None),
    "README": (readme, readme_plain),
    "regression": (regression, regression_plain),
    "SGLD": (sgld, sgld_plain),
    "Gradients": (gradients, None),
}


def child(name: str, *, plain: bool) -> None:
    """Run one block in this process and print what its stages took."""
    warnings.simplefilter("ignore")
    clock = Clock()
    clock("import", lambda: __import__("pymc"))
    clock("pymc_dp", lambda: __import__("pymc_dp"))
    run = BLOCKS[name][plain]
    assert run is not None
    run(clock)
    print(json.dumps({**clock.spent, "total": seconds()}))


def measure(name: str, *, plain: bool) -> dict[str, dict[str, float]]:
    """Stages of the block in a process without caches, and in the next one."""
    with tempfile.TemporaryDirectory() as caches:
        env = {**os.environ, "PYTENSOR_FLAGS": f"base_compiledir={caches}", "NUMBA_CACHE_DIR": caches}
        command = [sys.executable, __file__, "--child", name, *(["--plain"] if plain else [])]
        found = {}
        for state in ("cold", "warm"):
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            found[state] = json.loads(done.stdout.splitlines()[-1])
        return found


def main(names: list[str]) -> None:
    """Print one line per block, state, and whether it is private."""
    print(f"{'':28}" + "".join(f"{stage:>9}" for stage in STAGES))
    for name in names or list(BLOCKS):
        for plain, run in enumerate(BLOCKS[name]):
            for state, spent in measure(name, plain=bool(plain)).items() if run is not None else ():
                title = f"{name}, {'plain PyMC' if plain else 'private'}, {state}"
                cells = (f"{spent[stage]:9.2f}" if stage in spent else " " * 9 for stage in STAGES)
                print(f"{title:28}" + "".join(cells), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], plain="--plain" in sys.argv)
    else:
        main(sys.argv[1:])
