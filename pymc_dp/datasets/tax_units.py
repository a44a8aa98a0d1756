"""Tax filing units of the Current Population Survey: who is in them, where they live, what they earn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymc_dp.datasets._sources import local_table

if TYPE_CHECKING:
    import pandas as pd

_FILE = "income/cps_taxunits_2012_2014.parquet"
# Of the numbers, column by column as four-byte integers.
_SHA256 = "96d7596dd80b0a08fe5c9f214351fd3ebda80c5b673513c78b7ca78c61ca8fe8"

_COLUMNS = {
    "FLPDYR": "year",
    "s006": "weight",
    "age_head": "age",
    "age_spouse": "age_spouse",
    "MARS": "status",
    "fips": "state",
    "XTOT": "exemptions",
    "nu06": "under_6",
    "nu13": "under_13",
    "nu18": "under_18",
    "n1820": "aged_18_to_20",
    "n21": "aged_21_or_more",
    "elderly_dependents": "elderly_dependents",
    "EIC": "credit_children",
    "DSI": "dependent",
    "blind_head": "blind",
    "blind_spouse": "blind_spouse",
    "e00200": "wages",
    "e00200p": "wages_head",
    "e00200s": "wages_spouse",
    "e00900": "business",
    "e02100": "farm",
    "earnings": "earnings",
    "money_income": "money_income",
}

STATUSES = {1: "single", 2: "joint", 3: "separate", 4: "head of household"}
"""Filing status by its number in the source."""

# The Census Bureau's regions, by FIPS codes of states.
_REGIONS = {
    "Northeast": (9, 23, 25, 33, 34, 36, 42, 44, 50),
    "Midwest": (17, 18, 19, 20, 26, 27, 29, 31, 38, 39, 46, 55),
    "South": (1, 5, 10, 11, 12, 13, 21, 22, 24, 28, 37, 40, 45, 47, 48, 51, 54),
    "West": (2, 4, 6, 8, 15, 16, 30, 32, 35, 41, 49, 53, 56),
}


def load_tax_units() -> pd.DataFrame:
    """Load tax filing units of the United States, 2012 to 2014, with their earnings.

    One row is one **filing unit** of one year: a person, or a couple who file together, with their dependents. A
    household may hold several units, and a unit may have been interviewed in two years: ε for one row is not ε for one
    household, nor for one person in all years.

    The table is not downloaded: it is read from the folder named by the environment variable ``PYMC_DP_DATA``
    (``income/cps_taxunits_2012_2014.parquet``), and its numbers are checked against their digest.

    Returns
    -------
    pandas.DataFrame
        280,005 rows and 25 columns, whole numbers but for three.

        - ``year``; ``weight``, float: units that the row stands for.
        - ``status``, text: single, joint, separate or head of household, as in ``attrs["statuses"]``.
        - ``state``: FIPS code; ``region``, text: the Census Bureau's, as in ``attrs["regions"]``.
        - ``age``, ``age_spouse``: years, of the head and of the spouse (0 if there is none); 85 stands for 85 or more.
        - ``exemptions``; ``under_6``, ``under_13``: dependents below these ages; ``under_18``, ``aged_18_to_20``,
          ``aged_21_or_more``: people in the unit; ``elderly_dependents``; ``credit_children``: children that count for
          the earned income tax credit, 0 to 3.
        - ``dependent``, ``blind``, ``blind_spouse``: 1 or 0.
        - US dollars a year: ``wages`` and their parts ``wages_head`` and ``wages_spouse``; ``business`` and ``farm``,
          which may be losses; ``earnings``, the sum of wages, business and farm; ``money_income``, all kinds together.

    Raises
    ------
    DatasetError
        If there is no local copy, or it is not the known table.
    ImportError
        If pandas or pyarrow is not installed.

    Notes
    -----
    Made by the Tax-Calculator project (release 6.8.0, CC0 1.0) from the Census Bureau's Current Population Survey. The
    units are a construction: the survey asks persons, and tax units are put together from the answers.

    References
    ----------
    Policy Simulation Library. Tax-Calculator, https://github.com/PSLmodels/Tax-Calculator; its data are prepared in
    https://github.com/PSLmodels/taxdata

    Examples
    --------
    >>> from pymc_dp.datasets import load_tax_units
    >>> load_tax_units().shape  # doctest: +SKIP
    (280005, 25)
    """
    table = local_table(
        _FILE,
        tuple(_COLUMNS),
        _serialise,
        sha256=_SHA256,
        made="made from the file cps.csv.gz of Tax-Calculator 6.8.0",
        by="load_tax_units",
    )
    return _renamed(table)


def _serialise(table: pd.DataFrame) -> bytes:
    """Write the numbers of `table`, column by column."""
    return table.to_numpy(dtype="<i4").tobytes(order="F")


def _renamed(table: pd.DataFrame) -> pd.DataFrame:
    found = table.astype("int64").rename(columns=_COLUMNS)
    regions = {state: region for region, states in _REGIONS.items() for state in states}
    found["weight"] = found["weight"] / 100
    found["status"] = found["status"].map(STATUSES)
    found.insert(found.columns.get_loc("state") + 1, "region", found["state"].map(regions))
    found.attrs = {"statuses": list(STATUSES.values()), "regions": list(_REGIONS)}
    return found


__all__ = ["STATUSES", "load_tax_units"]
