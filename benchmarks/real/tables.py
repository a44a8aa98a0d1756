"""The real tables, what is hard about each of them, and the model that is fitted to it.

Bounds and units are public: what somebody who never saw the rows would write down. None was computed from rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm

import pymc_dp as dp
from benchmarks.real.models import Column, Response, Rows, bounds, clamped, regression
from pymc_dp.datasets import load_adult, load_fair, load_randhie, load_tax_units


@dataclass(frozen=True)
class Table:
    """A table and the model of it."""

    name: str
    difficulty: str
    load: Callable[[], Rows]
    columns: tuple[Column, ...]
    response: Response
    apart: bool = False

    def rows(self) -> Rows:
        """Return the rows, each value within its bounds."""
        return clamped(self.load(), self.columns, self.response)

    def model(self, rows: Rows | None = None) -> pm.Model:
        """Return the model of the rows."""
        return regression(self.rows() if rows is None else rows, self.columns, self.response, apart=self.apart)

    @property
    def domain(self) -> dp.Domain:
        """What is public."""
        return dp.Domain(bounds=bounds(self.columns, self.response, apart=self.apart))


TABLES: dict[str, Table] = {}
"""All tables by name."""


def table(name: str, difficulty: str, columns, response: Response, *, apart: bool = False):
    """Register a loader of raw columns as a table."""

    def register(load: Callable[[], Rows]) -> Callable[[], Rows]:
        TABLES[name] = Table(name, difficulty, load, tuple(columns), response, apart)
        return load

    return register


def _dummies(*names: str) -> list[Column]:
    return [Column(name) for name in names]


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
        *_dummies("female", "married", "single", "black", "other_race", "government", "self_employed", "foreign"),
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
        *_dummies("infant", "male"),
    ],
    Response("old", "logistic"),
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
    *_dummies("deductible"),
    Column("lpi", 0, 10, 5, 2.5),
    Column("fmde", 0, 10, 4, 3),
    *_dummies("limited"),
    Column("diseases", 0, 100, 11, 7),
    *_dummies("good", "fair", "poor"),
    Column("coinsurance", 0, 100, 25, 35),
]


@table("randhie_visits", "overdispersed counts", _HEALTH, Response("visits", "poisson", (0, 200)))
def _randhie() -> Rows:
    held = load_randhie()
    return {name: held[name] for name in ["visits", *(one.name for one in _HEALTH)]}


_UNIT = [
    AGE,
    Column("age2", 0, 20),
    *_dummies("joint", "head"),
    Column("children", 0, 15, 0.5, 1),
    Column("adults", 0, 10, 1.5, 0.7),
    *_dummies("south", "west", "midwest"),
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
    *_dummies("dark", "unlit", "wet", "rural", "junction", "motorway", "weekend", "night"),
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
    import pandas as pd

    from pymc_dp.datasets import DatasetError
    from pymc_dp.datasets._sources import FOLDER_VARIABLE, local_copy

    path = local_copy(name)
    if path is None:
        raise DatasetError(f"{name} is not there. Set {FOLDER_VARIABLE} to a folder with a copy.")
    return pd.read_parquet(path)


def available(held: Table) -> str | None:
    """Return why the rows of a table cannot be had here, or None."""
    try:
        held.load()
    except (OSError, ImportError) as error:
        return str(error)
    return None
