"""The RAND Health Insurance Experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pymc_dp._optional import require

if TYPE_CHECKING:
    import pandas as pd

PLANS = {
    (0, 0): "free",
    (25, 0): "pays 25%",
    (50, 0): "pays 50%",
    (95, 0): "pays 95%",
    (0, 1): "deductible",
    (100, 1): "deductible, pays all",
}


def load_randhie() -> pd.DataFrame:
    """Load visits to doctors under six insurance plans, to which families were assigned at random, 1974 to 1982.

    One row is one person in **one year** of three to five: ε for one row is not ε for one person, who has up to five
    rows and so up to five times the ε. The table comes with statsmodels; nothing is downloaded.

    Returns
    -------
    pandas.DataFrame
        20,190 rows and 12 columns:

        - ``visits``, int: outpatient visits to a doctor within the year, 0 to 77.
        - ``plan``, int: place of the plan in ``plan_names``.
        - ``coinsurance``, int, percent of a bill that a family pays: 0, 25, 50, 95 or 100.
        - ``deductible``, int: 1 under a plan with a deductible for each person.
        - ``lpi``, float: log of the yearly participation incentive payment in dollars, at least 1.
        - ``fmde``, float: 0 with a deductible, else log of the maximum expenditure over the coinsurance rate.
        - ``limited``, float: 1 if physically limited; 0.12 where that is not known.
        - ``diseases``, float: index of chronic diseases, 0 to 58.6.
        - ``good``, ``fair``, ``poor``, int: 1 for this rating of one's own health; all 0 if excellent.
        - ``health``, int: the same in one column, 0 excellent, 1 good, 2 fair, 3 poor.

        ``attrs["plan_names"]`` holds the names of the six plans.

    Raises
    ------
    ImportError
        If statsmodels is not installed.

    Notes
    -----
    Source: RAND Corporation, as used by Cameron and Trivedi; public domain, included in statsmodels.

    References
    ----------
    Cameron, A. C., Trivedi, P. K. (2005). Microeconometrics: Methods and Applications. Cambridge University Press.
    Manning, W. G. et al. (1987). Health insurance and the demand for medical care: evidence from a randomized
    experiment. American Economic Review 77(3), 251-277.

    Examples
    --------
    >>> from pymc_dp.datasets import load_randhie
    >>> load_randhie()[["plan", "visits"]].shape
    (20190, 2)
    """
    found = require("statsmodels.datasets.randhie", by="load_randhie").load_pandas().data
    table = found.rename(
        columns={
            "mdvis": "visits",
            "idp": "deductible",
            "physlm": "limited",
            "disea": "diseases",
            "hlthg": "good",
            "hlthf": "fair",
            "hlthp": "poor",
        }
    )
    table["coinsurance"] = np.rint(np.expm1(table.pop("lncoins"))).astype("int64")
    places = {key: place for place, key in enumerate(PLANS)}
    pairs = zip(table["coinsurance"], table["deductible"], strict=True)
    table["plan"] = np.array([places[pair] for pair in pairs], dtype="int64")
    table["health"] = table["good"] + 2 * table["fair"] + 3 * table["poor"]
    table.attrs["plan_names"] = list(PLANS.values())
    return table
