"""Fair's survey on extramarital affairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pymc_dp.datasets._sources import require

if TYPE_CHECKING:
    import pandas as pd

_CODES = ("rate_marriage", "religious", "educ", "occupation", "occupation_husb")


def load_fair() -> pd.DataFrame:
    """Load the survey in which 6366 married women answered about their marriage and affairs.

    One row is one woman, and no woman has two rows, so that ε for one row is ε for one person. The table comes with
    statsmodels; nothing is downloaded.

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
    ImportError
        If statsmodels is not installed.

    Notes
    -----
    Source: http://fairmodel.econ.yale.edu/rayfair/pdf/2011b.htm, included in statsmodels with the author's permission.

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
    table = require("statsmodels.datasets.fair", by="load_fair").load_pandas().data
    table = table.astype(dict.fromkeys(_CODES, "int64"))
    return table.assign(affair=(table["affairs"] > 0).astype("int64"))
