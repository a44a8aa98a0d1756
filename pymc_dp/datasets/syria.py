"""Events of armed conflict in Syria: where, when, who fought whom, and who died."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymc_dp.datasets._sources import local_table
from pymc_dp.datasets.events import read_events

if TYPE_CHECKING:
    import pandas as pd

_FILE = "events/ucdp_ged_syria_2016_2019.parquet"
# Of the columns that are used, row by row as text.
_SHA256 = "15a2c22bc0f4f9618b59af09ad401a96c95032dc662e089f092e69eb87784524"
_COLUMNS = (
    "date_start",
    "adm_1",
    "type_of_violence",
    "side_a",
    "side_b",
    "deaths_a",
    "deaths_b",
    "deaths_civilians",
)

GOVERNORATES = (
    "Al Hasakah",
    "Aleppo",
    "Ar Raqqah",
    "As Suwayda",
    "Damascus",
    "Daraa",
    "Deir ez Zor",
    "Hamah",
    "Homs",
    "Idlib",
    "Latakia",
    "Quneitra",
    "Rif Dimashq",
    "Tartus",
)
VIOLENCE = {1: "state-based", 2: "non-state", 3: "one-sided"}
SIDES = (
    "government, insurgents",
    "government, IS",
    "IS, SDF",
    "insurgents, IS",
    "insurgents, SDF",
    "among insurgents",
    "against civilians",
    "other",
)
_PARTIES = {
    "Government of Syria": "government",
    "IS": "IS",
    "SDF": "SDF",
    "Civilians": "civilians",
    "Government of Turkey": "state",
    "Government of Israel": "state",
}
"""Every other name is one of an insurgent group, or of several."""


def load_syria_events() -> pd.DataFrame:
    """Load events of deadly violence in Syria, January 2016 to November 2019.

    One row is one **event**: an incident of armed force by an organised actor with at least one death. ε for one row
    protects what is recorded about one event, not the person who reported it, nor those who took part in several.

    The table is not downloaded: it is read from the folder named by the environment variable ``PYMC_DP_DATA``
    (``events/ucdp_ged_syria_2016_2019.parquet``), and its content is checked against its digest.

    Returns
    -------
    pandas.DataFrame
        16,227 rows of whole numbers from 0; names of the levels are in ``attrs["levels"]``.

        - ``region``: 14 governorates; ``month``: 47 months.
        - ``violence``: state-based, non-state (neither side is a government), one-sided (against civilians).
        - ``sides``: which parties, of 8 pairs: the government, the Islamic State (IS), the Syrian Democratic Forces
          (SDF), all other groups as insurgents.
        - ``government_dead``, ``opponents_dead``, ``civilians_dead``: whether any of Syrian government forces, of any
          other armed party, and of civilians died.

    Raises
    ------
    DatasetError
        If there is no local copy, or it is not the known table.
    ImportError
        If pandas or pyarrow is not installed.

    Notes
    -----
    339 events without a governorate are left out: see `read_events` for what that means. Grouping of parties and deaths
    is ours, for a model with few levels; deaths whose side is unknown count for no indicator. Licence CC BY 4.0.

    References
    ----------
    Sundberg, Melander (2013). Introducing the UCDP Georeferenced Event Dataset. Journal of Peace Research 50(4).
    Uppsala Conflict Data Program, https://ucdp.uu.se

    Examples
    --------
    >>> from pymc_dp.datasets import load_syria_events
    >>> load_syria_events().shape  # doctest: +SKIP
    (16227, 7)
    """
    table = local_table(
        _FILE,
        _COLUMNS,
        _serialise,
        sha256=_SHA256,
        made="UCDP GED, rows of Syria from 2016 to November 2019",
        by="load_syria_events",
    )
    return read_events(
        _grouped(table),
        region="governorate",
        date="date_start",
        fields={"violence": list(VIOLENCE.values()), "sides": SIDES},
        regions=GOVERNORATES,
        first_month="2016-01",
        last_month="2019-11",
        indicators={
            "government_dead": ["government_deaths"],
            "opponents_dead": ["opponents_deaths"],
            "civilians_dead": ["deaths_civilians"],
        },
    )


def _serialise(table: pd.DataFrame) -> bytes:
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode()


def _grouped(table: pd.DataFrame) -> pd.DataFrame:
    """Say of each event which parties fought, and how many of each died."""
    first, second = (table[side].map(_PARTIES).fillna("insurgents") for side in ("side_a", "side_b"))
    of_first = table["deaths_a"].where(first == "government", 0)
    government = of_first + table["deaths_b"].where(second == "government", 0)
    return table.assign(
        governorate=table["adm_1"].str.removesuffix(" Governorate"),
        violence=table["type_of_violence"].map(VIOLENCE),
        sides=[_pair(*parties) for parties in zip(first, second, strict=True)],
        government_deaths=government,
        opponents_deaths=table["deaths_a"] + table["deaths_b"] - government,
    )


def _pair(first: str, second: str) -> str:
    parties = {first, second}
    if "civilians" in parties:
        return "against civilians"
    if parties == {"insurgents"}:
        return "among insurgents"
    names = {frozenset(name.split(", ")): name for name in SIDES}
    return names.get(frozenset(parties), "other")


__all__ = ["load_syria_events"]
