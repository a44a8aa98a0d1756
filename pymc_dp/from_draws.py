"""What released draws of one posterior sample say about the parameters of the table."""

from __future__ import annotations

import math

import xarray as xr

from pymc_dp import _validate
from pymc_dp.errors import TraceError
from pymc_dp.trace.chains import released_draws


def draw_intervals(idata: xr.DataTree, probability: float = 0.9) -> xr.Dataset:
    """Return ``low`` and ``high`` of every parameter, along ``bound``, from k >= 2 draws of ``dp.OPS`` in a trace.

    Where rows are many, the mean of draws at temperature T is N(θ, (1 + T / k) σ²), with the sd σ of the posterior, and
    their own variance s² is about T σ². So (mean - θ) / (s √(1 / T + 1 / k)) has Student's t distribution [Wang et al.,
    2015, proposition 9]. Not so where T brings the prior back: draws then fill its bounds.

    **Guarantee.** That of the trace: computed from its draws and from T, which is public (post-processing).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_dp as dp
    >>> with pm.Model() as model:
    ...     y = pm.Bernoulli("y", pm.Uniform("p", 0.05, 0.95), observed=np.repeat([0, 1], [700, 300]))
    >>> idata = dp.sample(5, epsilon=1.0, step=dp.OPS(), model=model, ledger=dp.Ledger(1.0), progressbar=False)
    >>> draw_intervals(idata)["p"].shape
    (2,)
    """
    from scipy.special import stdtrit

    level = _validate.within("probability", probability, 0.0, 1.0, ends=False)
    posterior, record = released_draws(idata)
    sampler, k = record.get("sampler") or {}, posterior.sizes["chain"] * posterior.sizes["draw"]
    if sampler.get("name") != "OPS" or k < 2:
        raise TraceError("idata must hold two draws of dp.OPS() or more. Write dp.sample(5, step=dp.OPS(), ...).")
    draws = posterior[list(sampler["variables"])]
    mean, spread = draws.mean(("chain", "draw")), draws.std(("chain", "draw"), ddof=1)
    reach = stdtrit(k - 1, (1 + level) / 2) * math.sqrt(float(sampler["power"]) + 1 / k) * spread
    return xr.concat([mean - reach, mean + reach], xr.DataArray(["low", "high"], dims="bound", name="bound"))


__all__ = ["draw_intervals"]
