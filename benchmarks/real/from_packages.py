"""Tables that scikit-learn and statsmodels bring along."""

from __future__ import annotations

import numpy as np

from benchmarks.real.models import Column, Response, Rows
from benchmarks.real.table import table

_BLOOD = [
    Column("age", 18, 100, 50, 15),
    Column("male"),
    Column("bmi", 10, 60, 25, 5),
    Column("bp", 40, 160, 90, 15),
    Column("s1", 50, 400, 200, 40),
    Column("s2", 10, 350, 120, 30),
    Column("s3", 10, 150, 50, 15),
    Column("s4", 1, 15, 4, 1.3),
    Column("s5", 2, 8, 4.5, 0.5),
    Column("s6", 40, 200, 90, 12),
]


@table("diabetes", "small n, collinear columns", _BLOOD, Response("progress", "normal", (-3, 4), middle=150, unit=75))
def _diabetes() -> Rows:
    from sklearn.datasets import load_diabetes

    held = load_diabetes(as_frame=True, scaled=False)["frame"]
    return {one.name: held[one.name] for one in _BLOOD if one.name != "male"} | {
        "male": held["sex"] == 2,
        "progress": held["target"],
    }


_CELL = {
    "mean radius": Column("radius", 0, 50, 14, 4),
    "mean texture": Column("texture", 0, 60, 19, 5),
    "mean smoothness": Column("smoothness", 0, 0.3, 0.1, 0.02),
    "mean concavity": Column("concavity", 0, 1, 0.1, 0.1),
    "mean symmetry": Column("symmetry", 0, 0.5, 0.2, 0.03),
    "area error": Column("area_error", 0, 1000, 40, 40),
}


@table(
    "breast_cancer", "small n, nearly separated, skewed", [*_CELL.values()], Response("benign", "logistic", slopes=3.0)
)
def _breast() -> Rows:
    from sklearn.datasets import load_breast_cancer

    held = load_breast_cancer(as_frame=True)["frame"]
    return {"benign": held["target"]} | {one.name: held[name] for name, one in _CELL.items()}


_PIXELS = [Column(f"pixel_{place}", 0, 16, 8, 8) for place in range(64) if 1 <= place % 8 <= 6]


@table("digits", "small n, many columns, some nearly constant", _PIXELS, Response("odd", "logistic", slopes=2))
def _digits() -> Rows:
    from sklearn.datasets import load_digits

    held = load_digits()
    return {"odd": held["target"] % 2} | {one.name: held["data"][:, int(one.name[6:])] for one in _PIXELS}


_VOTER = [
    Column("logpopul", -3, 10, 3, 3),
    Column("TVnews", 0, 7, 3.5, 2.5),
    Column("selfLR", 1, 7, 4, 1.5),
    Column("age", 18, 100, 45, 15),
    Column("educ", 1, 7, 4, 1.5),
    Column("income", 1, 24, 12, 6),
]


@table("election_party", "small n, ordered", _VOTER, Response("PID", "ordered", levels=7))
def _election() -> Rows:
    from statsmodels.datasets import anes96

    held = anes96.load_pandas().data
    return {name: held[name] for name in ["PID", *(one.name for one in _VOTER)]}


@table("election_vote", "small n, steep", _VOTER, Response("vote", "logistic"), apart=True)
def _vote() -> Rows:
    from statsmodels.datasets import anes96

    return _election() | {"vote": anes96.load_pandas().data["vote"]}


_SCHOOLS = [
    Column("LOWINC", 0, 100, 40, 25),
    *(Column(name, 0, 100, 10, 15) for name in ("PERASIAN", "PERBLACK", "PERMINTE")),
    Column("PERHISP", 0, 100, 30, 25),
    Column("AVYRSEXP", 0, 40, 14, 3),
    Column("PTRATIO", 5, 50, 22, 3),
    *(Column(name, 0, 100, 20, 20) for name in ("PCTAF", "PCTCHRT", "PCTYRRND")),
]


@table("star_share", "small n, skewed shares", _SCHOOLS, Response("share", "normal", (-2.5, 2.5), middle=0.5, unit=0.2))
def _star() -> Rows:
    from statsmodels.datasets import star98

    held = star98.load_pandas().data
    return {one.name: held[one.name] for one in _SCHOOLS} | {
        "share": held["NABOVE"] / np.maximum(held["NABOVE"] + held["NBELOW"], 1)
    }
