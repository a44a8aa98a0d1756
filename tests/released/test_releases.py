"""A release alone: what travels, what fits it, and what others published."""

import json

import numpy as np
import pymc as pm
import pytest

import pymc_dp as dp
from pymc_dp.transforms.privatize import record_of

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
GROUP = np.array([0, 1, 2, 1, 0, 2, 2, 1])
ANSWER = np.array([0, 1, 1, 0, 1, 1, 0, 0])
VALUE = np.array([0.1, 2.0, -1.0, 0.3, 1.2, 0.0, 0.7, -0.4])


def groups(answers, group, prior=lambda: pm.Beta("p", 1, 1, dims="g")):
    with pm.Model(coords={"g": ["a", "b", "c"]}) as model:
        index = pm.Data("group", group)
        pm.Bernoulli("y", prior()[index], observed=answers)
    return model


def values(column, prior=lambda: pm.Normal("mu")):
    with pm.Model() as model:
        pm.Normal("y", prior(), pm.HalfNormal("sd"), observed=column)
    return model


MODELS = {
    "counts": (lambda: groups(ANSWER, GROUP), dp.Domain()),
    "public groups": (lambda: groups(ANSWER, GROUP), dp.Domain(public=("group",))),
    "unknown number of rows": (lambda: groups(ANSWER, GROUP), dp.Domain(neighbours="add_remove", n_max=50)),
    "moments": (lambda: values(VALUE), dp.Domain(bounds={"y": (-3, 3)})),
}


def logp_at(model, point):
    return model.compile_logp(mode="FAST_COMPILE")(point)


def points(model, rng):
    start = model.initial_point()
    return [{name: value + rng.normal(size=np.shape(value)) for name, value in start.items()} for _ in range(4)]


@pytest.mark.few(1, cases=2)
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("name", "noise", "ending"),
    [
        *((name, "laplace", "json") for name in MODELS),
        *((name, "gaussian", "nc") for name in MODELS),
        ("counts", "laplace", "nc"),
    ],
)
def test_a_saved_release_gives_the_posterior_of_the_private_model(name, noise, ending, tmp_path, rng):
    build, domain = MODELS[name]
    delta = 1e-6 if noise == "gaussian" else 0.0
    private = dp.privatize(build(), epsilon=1.0, delta=delta, domain=domain, statistics=dp.Statistics(noise=noise))
    release = dp.Release.load(dp.Release.of(private).save(tmp_path / f"release.{ending}"))
    dummies = groups(np.zeros(3, int), np.arange(3)) if "y_cell" and name != "moments" else values(np.zeros(2))
    fitted = dp.condition(dummies, release)
    assert record_of(fitted)[0].to_dict() == record_of(private)[0].to_dict() | {"left_out": ()}
    for point in points(private, rng):
        assert logp_at(fitted, point) == pytest.approx(float(logp_at(private, point)), rel=1e-12)


def test_rows_of_the_dummy_model_are_not_read():
    release = dp.Release.of(dp.privatize(groups(ANSWER, GROUP), epsilon=1.0))
    found = [
        float(
            logp_at(dp.condition(groups(np.full(2, answer), np.full(2, answer)), release), {"p_logodds__": np.zeros(3)})
        )
        for answer in (0, 1)
    ]
    assert found[0] == found[1]


def test_what_does_not_fit_is_said():
    release = dp.Release.of(dp.privatize(groups(ANSWER, GROUP), epsilon=1.0))
    with pm.Model() as other:
        pm.Bernoulli("z", pm.Beta("p", 1, 1), observed=ANSWER)
    with pytest.raises(dp.errors.UnsupportedModelError, match="no table of this name was released"):
        dp.condition(other, release)
    with pm.Model() as ungrouped:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=ANSWER)
    with pytest.raises(dp.errors.UnsupportedModelError, match="indexed by nothing, the cells by group"):
        dp.condition(ungrouped, release)
    with pytest.raises(dp.errors.UnsupportedModelError, match="needs sum"):
        dp.condition(
            values(VALUE),
            dp.Release.of(
                dp.privatize(values(VALUE, lambda: 0.0), epsilon=1.0, domain=dp.Domain(bounds={"y": (-3, 3)}))
            ),
        )
    with pytest.raises(dp.errors.ArgumentError, match="not private"):
        dp.Release.of(ungrouped)
    with pytest.raises(dp.errors.ArgumentError, match=r"\.nc or \.json"):
        release.save("release.txt")


@pytest.mark.parametrize(
    "change",
    [
        lambda written: [1],
        lambda written: {**written, "record": None},
        lambda written: {**written, "tables": {}},
        lambda written: {**written, "tables": {"y": [[1.0, 2.0]]}},
        lambda written: {**written, "tables": {"y": [[float("nan")]]}},
        lambda written: {**written, "record": {**written["record"], "other": 1}},
    ],
)
def test_a_changed_file_is_refused(change, tmp_path):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=ANSWER)
    path = dp.Release.of(dp.privatize(model, epsilon=1.0)).save(tmp_path / "release.json")
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(dp.errors.TraceError, match="no release"):
        dp.Release.load(path)
