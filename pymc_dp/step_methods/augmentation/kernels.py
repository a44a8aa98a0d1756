"""The compiled loop over augmented rows; imported at first use."""

from __future__ import annotations

from pymc_dp.transforms.count_kernels import log_noise
from pymc_dp.transforms.jit import kernel


@kernel
def _moved(place, step, residuals, scales, gaussian):  # type: ignore[no-untyped-def]
    """Move one residual, and return by how much the log probability of all of them changes."""
    before = log_noise(residuals[place], gaussian, scales[place])
    residuals[place] += step
    return log_noise(residuals[place], gaussian, scales[place]) - before


@kernel
def sweep(places, steps, new_places, new_steps, log_uniform, residuals, scales, gaussian, accepted):  # type: ignore[no-untyped-def]
    """Replace rows by proposals, one after the other, where the noise allows it.

    Parameters
    ----------
    places, steps : (n_rows, n_entries) int64 arrays
        Which released numbers a row adds to, and how much, in grid steps.
    new_places, new_steps : of the same shape
        The same of the proposals.
    log_uniform : (n_rows,) array
        A proposal is accepted if the noise becomes more probable by more than that; never at infinity.
    residuals : (n_numbers,) int64 array
        Released numbers less the sums of the current rows: the noise. Changed in place.
    scales : (n_numbers,) array
    gaussian : bool
    accepted : (n_rows,) bool array
        Written.
    """
    for i in range(places.shape[0]):
        gain = 0.0
        for j in range(places.shape[1]):
            gain += _moved(places[i, j], steps[i, j], residuals, scales, gaussian)
            gain += _moved(new_places[i, j], -new_steps[i, j], residuals, scales, gaussian)
        accepted[i] = gain > log_uniform[i]
        if not accepted[i]:
            for j in range(places.shape[1]):
                residuals[places[i, j]] -= steps[i, j]
                residuals[new_places[i, j]] += new_steps[i, j]
