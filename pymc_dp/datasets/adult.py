"""UCI Adult: census records of 1994, and whether the person earned more than 50,000 dollars."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

from pymc_dp import _validate
from pymc_dp._optional import require
from pymc_dp.datasets._sources import FOLDER_VARIABLE, DatasetError, check, local_copy, zip_member
from pymc_dp.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

_URL = "https://archive.ics.uci.edu/static/public/2/adult.zip"
# Digests of adult.data and adult.test as UCI publishes them.
_SHA256 = {
    "train": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
_MEMBER = {"train": "adult.data", "test": "adult.test"}
_TEST_HEADER = "|1x3 Cross validator\n"

_COLUMNS = {
    "age": "int64",
    "workclass": "str",
    "fnlwgt": "int64",
    "education": "str",
    "education_num": "int64",
    "marital_status": "str",
    "occupation": "str",
    "relationship": "str",
    "race": "str",
    "sex": "str",
    "capital_gain": "int64",
    "capital_loss": "int64",
    "hours_per_week": "int64",
    "native_country": "str",
    "income": "str",
}

# Written out from adult.names, where the order is the documentation's; never read from the rows. The documentation
# marks three columns as having unknown values, written '?'.
_CATEGORIES: dict[str, tuple[str, ...]] = {
    "workclass": (
        "Private",
        "Self-emp-not-inc",
        "Self-emp-inc",
        "Federal-gov",
        "Local-gov",
        "State-gov",
        "Without-pay",
        "Never-worked",
        "?",
    ),
    "education": (
        "Bachelors",
        "Some-college",
        "11th",
        "HS-grad",
        "Prof-school",
        "Assoc-acdm",
        "Assoc-voc",
        "9th",
        "7th-8th",
        "12th",
        "Masters",
        "1st-4th",
        "10th",
        "Doctorate",
        "5th-6th",
        "Preschool",
    ),
    "marital_status": (
        "Married-civ-spouse",
        "Divorced",
        "Never-married",
        "Separated",
        "Widowed",
        "Married-spouse-absent",
        "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support",
        "Craft-repair",
        "Other-service",
        "Sales",
        "Exec-managerial",
        "Prof-specialty",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Adm-clerical",
        "Farming-fishing",
        "Transport-moving",
        "Priv-house-serv",
        "Protective-serv",
        "Armed-Forces",
        "?",
    ),
    "relationship": ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "native_country": (
        "United-States",
        "Cambodia",
        "England",
        "Puerto-Rico",
        "Canada",
        "Germany",
        "Outlying-US(Guam-USVI-etc)",
        "India",
        "Japan",
        "Greece",
        "South",
        "China",
        "Cuba",
        "Iran",
        "Honduras",
        "Philippines",
        "Italy",
        "Poland",
        "Jamaica",
        "Vietnam",
        "Mexico",
        "Portugal",
        "Ireland",
        "France",
        "Dominican-Republic",
        "Laos",
        "Ecuador",
        "Taiwan",
        "Haiti",
        "Columbia",
        "Hungary",
        "Guatemala",
        "Nicaragua",
        "Scotland",
        "Thailand",
        "Yugoslavia",
        "El-Salvador",
        "Trinadad&Tobago",
        "Peru",
        "Hong",
        "Holand-Netherlands",
        "?",
    ),
    "income": ("<=50K", ">50K"),
}


def load_adult(split: Literal["train", "test"] = "train") -> pd.DataFrame:
    """Load the UCI Adult table.

    One row is one person of the Current Population Survey of March 1994, with ``fnlwgt``, the number of persons whom
    the Census Bureau takes the row to stand for. A copy in the folder named by the environment variable
    ``PYMC_DP_DATA`` (``adult/adult_train.parquet``, ``adult/adult_test.parquet``) is preferred to the download. Either
    is checked against the digest of the file as UCI publishes it.

    Parameters
    ----------
    split : {"train", "test"}
        UCI's own split.

    Returns
    -------
    pandas.DataFrame
        32561 (train) or 16281 (test) rows and 15 columns.

        - Whole numbers: ``age`` (years), ``fnlwgt`` (persons), ``education_num`` (1 to 16, the level of
          ``education``), ``capital_gain``, ``capital_loss`` (US dollars a year), ``hours_per_week``.
        - Text: ``workclass``, ``education``, ``marital_status``, ``occupation``, ``relationship``, ``race``, ``sex``,
          ``native_country``, with ``?`` for unknown, and the label ``income``, ``<=50K`` or ``>50K`` US dollars a year.

    Raises
    ------
    ArgumentError
        If `split` is neither.
    DatasetError
        If the table can neither be found nor downloaded, or is not the published one.
    ImportError
        If pandas, or pyarrow for a local copy, is not installed.

    See Also
    --------
    adult_categories : the public levels of the text columns.

    Notes
    -----
    Licence: CC BY 4.0.

    References
    ----------
    Becker, B., Kohavi, R. (1996). Adult. UCI Machine Learning Repository. doi:10.24432/C5XW20

    Examples
    --------
    >>> from pymc_dp.datasets import load_adult
    >>> load_adult().shape  # doctest: +SKIP
    (32561, 15)
    """
    split_name = _validate.choice("split", split, _SHA256)
    path = local_copy(f"adult/adult_{split_name}.parquet")
    if path is not None:
        return _read_copy(path, split_name)
    return _parse(zip_member(_URL, _MEMBER[split_name], sha256=_SHA256[split_name]))


def adult_categories() -> dict[str, tuple[str, ...]]:
    """Return the levels of the eight categorical columns of Adult and of ``income``.

    They are public: taken from UCI's documentation, in its order, not from the rows. Levels that were read from the
    rows would tell who is among them.

    Returns
    -------
    dict of str to tuple of str
        Column name to levels; ``?`` is last where the documentation allows unknown values.

    References
    ----------
    Becker, B., Kohavi, R. (1996). Adult, file adult.names. UCI Machine Learning Repository. doi:10.24432/C5XW20

    Examples
    --------
    >>> from pymc_dp.datasets import adult_categories
    >>> adult_categories()["sex"]
    ('Female', 'Male')
    >>> sum(len(levels) for column, levels in adult_categories().items() if column != "income")
    102
    """
    return dict(_CATEGORIES)


def encode_adult(table: pd.DataFrame) -> pd.DataFrame:
    """Replace the categorical columns of `table` by positions in their public lists of levels.

    Parameters
    ----------
    table : pandas.DataFrame
        A table with one or more of the columns of :func:`adult_categories`; other columns are left out.

    Returns
    -------
    pandas.DataFrame
        ``int64`` codes, same rows and index. What is not in a list, a missing value included, becomes -1 without a
        word, since a message would tell of a row.

    Raises
    ------
    ArgumentError
        If `table` has none of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from pymc_dp.datasets import encode_adult
    >>> encode_adult(pd.DataFrame({"sex": ["Male", "Female", "unheard of"]}))["sex"].tolist()
    [1, 0, -1]
    """
    pandas = require("pandas", by="encode_adult")
    _validate.instance("table", table, pandas.DataFrame, "Pass what load_adult returned, or a table like it.")
    known = [column for column in _CATEGORIES if column in table.columns]
    if not known:
        raise ArgumentError(f"table must have one of the columns {', '.join(_CATEGORIES)}, got {list(table.columns)}.")
    codes = {column: pandas.Index(_CATEGORIES[column]).get_indexer(table[column]) for column in known}
    return pandas.DataFrame(codes, index=table.index, dtype="int64")


def _read_copy(path: Path, split: str) -> pd.DataFrame:
    """Read a parquet file whose rows, written as UCI writes them, have the published digest."""
    pandas = require("pandas", by="load_adult")
    require("pyarrow", by="load_adult, for a parquet file,")
    remedy = f"Remove it, or unset {FOLDER_VARIABLE}, to download the original."
    table = pandas.read_parquet(path)
    if list(table.columns) != list(_COLUMNS):
        raise DatasetError(f"{path} has the columns {list(table.columns)}, not {list(_COLUMNS)}. {remedy}")
    check(_serialise(table, split), _SHA256[split], what=str(path), remedy=remedy)
    return table.astype(_COLUMNS)


def _parse(content: bytes) -> pd.DataFrame:
    """Read the text of UCI's adult.data or adult.test."""
    pandas = require("pandas", by="load_adult")
    text = content.decode("ascii").removeprefix(_TEST_HEADER)
    table = pandas.read_csv(
        io.StringIO(text), names=list(_COLUMNS), dtype=_COLUMNS, skipinitialspace=True, na_filter=False
    )
    # The test file alone ends its labels with a full stop.
    return table.assign(income=table["income"].str.removesuffix("."))


def _serialise(table: pd.DataFrame, split: str) -> bytes:
    """Write `table` as UCI's file of that split, byte for byte."""
    header, end = (_TEST_HEADER, ".\n") if split == "test" else ("", "\n")
    rows = "".join(", ".join(map(str, row)) + end for row in table.itertuples(index=False, name=None))
    return f"{header}{rows}\n".encode()
