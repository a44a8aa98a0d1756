"""Fair's survey on extramarital affairs."""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp._optional import require
from pymc_dp.datasets._sources import check

if TYPE_CHECKING:
    import pandas as pd

_TABLE = Path(__file__).with_name("fair.csv.gz")
_SHA256 = "676760f996c29de72f72b023086f4888f5edc9c939153ca3823a789a9b5e4903"
_CODES = ("rate_marriage", "religious", "educ", "occupation", "occupation_husb")


def load_fair() -> pd.DataFrame:
    """Load the survey in which 6366 married women answered about their marriage and affairs.

    One row is one woman, and no woman has two rows, so that ε for one row is ε for one person. The table comes with
    this package; nothing is downloaded.

    Returns
    -------
    pandas.DataFrame
        6366 rows and 10 columns:

        - ``rate_marriage``, int: her own rating, 1 very poor, 2 poor, 3 fair, 4 good, 5 very good.
        - ``age``, float, years: middle of an age group, 17.5 to 42.
        - ``yrs_married``, float, years: middle of a group, 0.5 to 23.
        - ``children``, float: number of children, 5.5 for more than five.
        - ``religious``, int: 1 not, 2 mildly, 3 fairly, 4 strongly.
        - ``educ``, int, years of schooling: 9 grade school, 12 high school, 14 some college, 16 college graduate,
          17 some graduate school, 20 advanced degree.
        - ``occupation``, int: 1 student, 2 farming, semi-skilled or unskilled, 3 white-collar, 4 teacher, nurse,
          artist, technician or skilled, 5 managerial or business, 6 professional with advanced degree.
        - ``occupation_husb``, int: her husband's, same codes.
        - ``affairs``, float: Fair's measure of time spent in affairs, 0 to 57.6.
        - ``affair``, int: 1 if ``affairs`` > 0, else 0.

    Raises
    ------
    DatasetError
        If the file of the package is not the published table.

    Notes
    -----
    Source: http://fairmodel.econ.yale.edu/rayfair/pdf/2011b.htm, as in statsmodels, which includes it with the author's
    permission. The numbers are the author's; the licence of this package is about the code.

    References
    ----------
    Fair, R. C. (1978). A theory of extramarital affairs. Journal of Political Economy 86(1), 45-61.
    doi:10.1086/260646

    Examples
    --------
    >>> from pymc_dp.datasets import load_fair
    >>> load_fair()[["rate_marriage", "affair"]].shape
    (6366, 2)
    """
    content = gzip.decompress(_TABLE.read_bytes())
    check(content, _SHA256, what=str(_TABLE), remedy="Install pymc-dp anew.")
    names = content.split(b"\n", 1)[0].decode().split(",")
    rows = np.loadtxt(BytesIO(content), delimiter=",", skiprows=1)
    table = require("pandas", by="load_fair").DataFrame(rows, columns=names)
    table = table.astype(dict.fromkeys(_CODES, "int64"))
    return table.assign(affair=(table["affairs"] > 0).astype("int64"))
