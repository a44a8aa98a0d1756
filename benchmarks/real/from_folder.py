"""Tables of the package's own loaders, and of the folder that PYMC_DP_DATA names."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.real.models import Column, Response, Rows
from benchmarks.real.table import shares, table
from pymc_dp.datasets import DatasetError, load_adult, load_fair, load_randhie, load_tax_units
from pymc_dp.datasets._sources import FOLDER_VARIABLE, local_copy

AGE = Column("age", 15, 100, 45, 15)


@table(
    "adult_income", "skewed and sparse columns",
    [
        AGE,
        Column("age2", 0, 20),
        Column("education", 0, 20, 10, 3),
        Column("hours", 0, 100, 40, 12),
        Column("gain", 0, 10),
        Column("loss", 0, 5),
        *shares("female", "married", "single", "black", "other_race", "government", "self_employed", "foreign"),
    ],
    Response("rich", "logistic"),
)  # fmt: skip
def _adult() -> Rows:
    held = load_adult("train")
    work, race = held["workclass"], held["race"]
    return {
        "rich": held["income"].str.startswith(">").to_numpy(),
        "age": held["age"],
        "age2": ((held["age"] - 45) / 15) ** 2,
        "education": held["education_num"],
        "hours": held["hours_per_week"],
        "gain": held["capital_gain"] / 10_000,
        "loss": held["capital_loss"] / 1000,
        "female": held["sex"] == "Female",
        "married": held["marital_status"].str.startswith("Married-civ"),
        "single": held["marital_status"] == "Never-married",
        "black": race == "Black",
        "other_race": ~race.isin(["Black", "White"]),
        "government": work.str.endswith("-gov"),
        "self_employed": work.str.startswith("Self"),
        "foreign": held["native_country"] != "United-States",
    }


@table(
    "abalone_old", "collinear columns, one outlier",
    [
        Column("length", 0, 1, 0.5, 0.12),
        Column("diameter", 0, 1, 0.4, 0.1),
        Column("height", 0, 1.5, 0.15, 0.05),
        Column("whole", 0, 5, 0.8, 0.5),
        Column("shucked", 0, 2.5, 0.35, 0.2),
        Column("viscera", 0, 1.5, 0.2, 0.1),
        Column("shell", 0, 2, 0.25, 0.15),
        *shares("infant", "male"),
    ],
    Response("old", "logistic", slopes=3.0),
)  # fmt: skip
def _abalone() -> Rows:
    held = _parquet("abalone/abalone.parquet")
    weights = {name: held[f"{name}_weight"] for name in ("whole", "shucked", "viscera", "shell")}
    return {
        "old": held["rings"] > 9,
        "infant": held["sex"] == "I",
        "male": held["sex"] == "M",
        **{name: held[name] for name in ("length", "diameter", "height")},
        **weights,
    }


_FAIR = [
    Column("rate_marriage", 1, 5, 4, 1),
    Column("age", 15, 70, 30, 10),
    Column("yrs_married", 0, 50, 10, 7),
    Column("children", 0, 10, 1, 1.5),
    Column("religious", 1, 4, 2.5, 1),
    Column("educ", 5, 20, 14, 2),
]


@table("fair_affairs", "overdispersed counts", _FAIR, Response("affairs", "poisson", (0, 100)), apart=True)
def _fair() -> Rows:
    held = load_fair()
    return {one.name: held[one.name] for one in _FAIR} | {"affairs": np.round(held["affairs"])}


_HEALTH = [
    *shares("deductible"),
    Column("lpi", 0, 10, 5, 2.5),
    Column("fmde", 0, 10, 4, 3),
    *shares("limited"),
    Column("diseases", 0, 100, 11, 7),
    *shares("good", "fair", "poor"),
    Column("coinsurance", 0, 100, 25, 35),
]


@table("randhie_visits", "overdispersed counts", _HEALTH, Response("visits", "poisson", (0, 200)))
def _randhie() -> Rows:
    held = load_randhie()
    return {name: held[name] for name in ["visits", *(one.name for one in _HEALTH)]}


_UNIT = [
    AGE,
    Column("age2", 0, 20),
    *shares("joint", "head"),
    Column("children", 0, 15, 0.5, 1),
    Column("adults", 0, 10, 1.5, 0.7),
    *shares("south", "west", "midwest"),
]


@table("income_earnings", "skewed, heavy-tailed, large n", _UNIT, Response("wages", "normal", (0, 20), unit=100_000))
def _income() -> Rows:
    held = load_tax_units()
    return {
        "wages": held["wages"],
        "age": held["age"],
        "age2": ((held["age"] - 45) / 15) ** 2,
        "joint": held["status"] == "joint",
        "head": held["status"] == "head of household",
        "children": held["under_18"],
        "adults": held["aged_21_or_more"],
        **{one.lower(): held["region"] == one for one in ("South", "West", "Midwest")},
    }


_ROAD = [
    Column("speed", 0, 70, 40, 15),
    Column("vehicles", 1, 50, 2, 1),
    *shares("dark", "unlit", "wet", "rural", "junction", "motorway", "weekend", "night"),
]


@table("collisions_fatal", "rare outcome, large n", _ROAD, Response("fatal", "logistic", intercept=(-4, 2)))
def _fatal() -> Rows:
    held = _parquet("events/stats19_collisions_2015.parquet")
    hour = held["hour"].fillna(12).astype(int)
    return {
        "fatal": held["accident_severity"] == 1,
        "casualties": held["number_of_casualties"],
        "speed": held["speed_limit"],
        "vehicles": held["number_of_vehicles"],
        "dark": held["light_conditions"] > 1,
        "unlit": held["light_conditions"].isin([5, 6]),
        "wet": held["road_surface_conditions"] > 1,
        "rural": held["urban_or_rural"] == 2,
        "junction": held["junction_detail"] > 0,
        "motorway": held["first_road_class"] == 1,
        "weekend": held["day_of_week"].isin([1, 7]),
        "night": (hour < 6) | (hour > 21),
    }


def _parquet(name: str):
    """Return a file of the folder that PYMC_DP_DATA names."""
    path = local_copy(name)
    if path is None:
        raise DatasetError(f"{name} is not there. Set {FOLDER_VARIABLE} to a folder with a copy.")
    return pd.read_parquet(path)


@table(
    "adult_hours",
    "spike at 40, misfit",
    [AGE, Column("age2", 0, 20), Column("education", 0, 20, 10, 3), *shares("female", "married", "self_employed")],
    Response("hours", "student t", (-4, 6), middle=40, unit=10),
)
def _hours() -> Rows:
    held = load_adult("train")
    return _adult() | {"hours": held["hours_per_week"]}


@table(
    "abalone_rings",
    "skewed, collinear columns, one outlier",
    [
        Column("length", 0, 1, 0.5, 0.12),
        Column("height", 0, 1.5, 0.15, 0.05),
        Column("whole", 0, 5, 0.8, 0.5),
        Column("shell", 0, 2, 0.25, 0.15),
        *shares("infant", "male"),
    ],
    Response("rings", "gamma", (0.1, 6), unit=10),
    apart=True,
)
def _rings() -> Rows:
    return _abalone() | {"rings": _parquet("abalone/abalone.parquet")["rings"]}


@table("randhie_negative", "heavy-tailed counts", _HEALTH, Response("visits", "negative binomial", (0, 200)))
def _randhie_again() -> Rows:
    return _randhie()


@table(
    "income_log",
    "two heaps, large n",
    _UNIT,
    Response("logged", "normal", (0, 16), middle=0, unit=1, intercept=(8, 4), slopes=3),
)
def _income_log() -> Rows:
    held = _income()
    return held | {"logged": np.log1p(held["wages"])}


@table("collisions_casualties", "overdispersed counts, large n", _ROAD, Response("more", "poisson", (0, 60)))
def _casualties() -> Rows:
    held = _fatal()
    return held | {"more": held["casualties"] - 1}


@table(
    "syria_deaths",
    "heavy-tailed counts",
    shares("state", "rebels", "year_2017", "year_2018", "year_2019", "aleppo", "damascus", "idlib", "vague"),
    Response("deaths", "negative binomial", (0, 10_000)),
)
def _syria() -> Rows:
    held = _parquet("events/ucdp_ged_syria_2016_2019.parquet")
    place = held["adm_1"].str.lower().fillna("")
    return {
        "deaths": held["best"],
        "state": held["type_of_violence"] == 1,
        "rebels": held["type_of_violence"] == 2,
        **{f"year_{year}": held["year"] == year for year in (2017, 2018, 2019)},
        **{name: place.str.contains(name) for name in ("aleppo", "damascus", "idlib")},
        "vague": held["where_prec"] > 2,
    }
