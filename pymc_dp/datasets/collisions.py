"""Road collisions in which somebody was hurt, Great Britain 2015."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymc_dp.datasets._sources import local_table
from pymc_dp.datasets.events import read_events

if TYPE_CHECKING:
    import pandas as pd

_FILE = "events/stats19_collisions_2015.parquet"
# Of the columns that are used, column by column as two-byte integers.
_SHA256 = "97979b5ce9743cdce3c165c68dc47c2686db205eb56df2c74df6f14f06b513ce"

FORCES = {
    1: "Metropolitan",
    3: "Cumbria",
    4: "Lancashire",
    5: "Merseyside",
    6: "Greater Manchester",
    7: "Cheshire",
    10: "Northumbria",
    11: "Durham",
    12: "North Yorkshire",
    13: "West Yorkshire",
    14: "South Yorkshire",
    16: "Humberside",
    17: "Cleveland",
    20: "West Midlands",
    21: "Staffordshire",
    22: "West Mercia",
    23: "Warwickshire",
    30: "Derbyshire",
    31: "Nottinghamshire",
    32: "Lincolnshire",
    33: "Leicestershire",
    34: "Northamptonshire",
    35: "Cambridgeshire",
    36: "Norfolk",
    37: "Suffolk",
    40: "Bedfordshire",
    41: "Hertfordshire",
    42: "Essex",
    43: "Thames Valley",
    44: "Hampshire",
    45: "Surrey",
    46: "Kent",
    47: "Sussex",
    48: "City of London",
    50: "Devon and Cornwall",
    52: "Avon and Somerset",
    53: "Gloucestershire",
    54: "Wiltshire",
    55: "Dorset",
    60: "North Wales",
    61: "Gwent",
    62: "South Wales",
    63: "Dyfed-Powys",
    91: "Northern",
    92: "Grampian",
    93: "Tayside",
    94: "Fife",
    95: "Lothian and Borders",
    96: "Central",
    97: "Strathclyde",
    98: "Dumfries and Galloway",
}
"""Police forces by their number; those from 91 on are what became divisions of Police Scotland in 2013."""
LEVELS = {
    "accident_severity": {1: "fatal", 2: "serious", 3: "slight"},
    "light_conditions": {1: "daylight", 4: "lit", 5: "lamps unlit", 6: "no lamps", 7: "unknown"},
    "weather_conditions": {
        1: "fine",
        2: "rain",
        3: "snow",
        4: "fine, wind",
        5: "rain, wind",
        6: "snow, wind",
        7: "fog",
        8: "other",
        9: "unknown",
    },
    "road_surface_conditions": {1: "dry", 2: "wet", 3: "snow", 4: "ice", 5: "flood", -1: "unknown"},
    "road_type": {
        1: "roundabout",
        2: "one way",
        3: "dual carriageway",
        6: "single carriageway",
        7: "slip road",
        9: "unknown",
    },
    "urban_or_rural": {1: "urban", 2: "rural"},
}
"""Categorical columns of the source, and the names of their codes (STATS20, 2011)."""
NAMES = {
    "accident_severity": "severity",
    "light_conditions": "light",
    "weather_conditions": "weather",
    "road_surface_conditions": "surface",
    "road_type": "road",
    "urban_or_rural": "area",
}
COUNTS = ("number_of_vehicles", "number_of_casualties")
_COLUMNS = ("police_force", "month", *LEVELS, *COUNTS)


def load_collisions() -> pd.DataFrame:
    """Load road collisions with injuries that the police of Great Britain recorded in 2015.

    One row is one **collision**. Several people can have been hurt in it: ε for one row is not ε for one of them.

    The table is not downloaded: it is read from the folder named by the environment variable ``PYMC_DP_DATA``
    (``events/stats19_collisions_2015.parquet``), and its content is checked against its digest.

    Returns
    -------
    pandas.DataFrame
        140,056 rows of whole numbers from 0; names of the levels are in ``attrs["levels"]``.

        - ``region``: 51 police forces; ``month``: 12 months of 2015.
        - ``severity``, ``light``, ``weather``, ``surface``, ``road``, ``area``.
        - ``several_vehicles``, ``several_casualties``: whether there was more than one.

    Raises
    ------
    DatasetError
        If there is no local copy, or it is not the known table.
    ImportError
        If pandas or pyarrow is not installed.

    References
    ----------
    Department for Transport, Road Safety Data (STATS19), 2015; Open Government Licence v3.

    Examples
    --------
    >>> from pymc_dp.datasets import load_collisions
    >>> load_collisions().shape  # doctest: +SKIP
    (140056, 10)
    """
    table = local_table(
        _FILE,
        _COLUMNS,
        _serialise,
        sha256=_SHA256,
        made="collisions of STATS19, 2015",
        by="load_collisions",
    )
    return read_events(
        _named(table),
        region="police_force",
        date="date",
        fields={NAMES[column]: list(names.values()) for column, names in LEVELS.items()},
        regions=list(FORCES.values()),
        first_month="2015-01",
        last_month="2015-12",
        indicators={"several_vehicles": ["more_vehicles"], "several_casualties": ["more_casualties"]},
    )


def _serialise(table: pd.DataFrame) -> bytes:
    return table.to_numpy(dtype="<i2").tobytes(order="F")


def _named(table: pd.DataFrame) -> pd.DataFrame:
    named = {NAMES[column]: table[column].astype("int64").map(names) for column, names in LEVELS.items()}
    return table.assign(
        police_force=table["police_force"].astype("int64").map(FORCES),
        date="2015-" + table["month"].astype("int64").astype(str).str.zfill(2),
        more_vehicles=table["number_of_vehicles"] - 1,
        more_casualties=table["number_of_casualties"] - 1,
        **named,
    )


__all__ = ["load_collisions"]
