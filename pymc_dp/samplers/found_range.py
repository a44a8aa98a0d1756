"""How far one row moves a log-likelihood over a whole parameter space: the largest that is found, and where it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pymc import Model
from pytensor.gradient import grad

from pymc_dp.errors import Problem, UnsupportedModelError
from pymc_dp.inspection.findings import RowInspection
from pymc_dp.inspection.interpreted import kept_while_shared
from pymc_dp.inspection.priors import Prior, priors_of
from pymc_dp.inspection.row_density import clamped
from pymc_dp.inspection.rows import Array, Column
from pymc_dp.samplers.near_rows import NearRows
from pymc_dp.samplers.parameter_points import FAR, FARTHER, ParameterPoints
from pymc_dp.samplers.public_rows import PublicRows
from pymc_dp.samplers.rows import ModelRows, OfPublicRows

ROUNDS, GAIN = 4, 1e-3
"""Times that points are moved on, and by how much the range must grow for another time."""
MOST_ROWS = 700
"""Simulated rows that are looked at, where there are more; those that range far are moved on."""
WORTH = 0.01
"""Share of the range that a centre must save."""
GROWS = 1.01
"""From how much on a range counts as one that grows with its points."""
INSIDE = 0.01
"""Share of a support that is proposed to be cut off, at an end where a likelihood is infinite."""


class FoundRange:
    """R and Δl of one row over all parameters: the largest that are found on public rows and points.

    Parameters
    ----------
    inspection : RowInspection
        Without problems.
    prior_model : pymc.Model
        The model without its rows.

    Attributes
    ----------
    rows : ModelRows
    public : list of str
        Public columns, by their names in the kernel.
    near : NearRows
        At all points that were looked at.
    value : float
        R: how far neighbours move the sum over rows, as a range over the parameters.
    size : float
        Δl: how far they move it at any one point.
    reason : str
        Where they were found.
    worst : tuple of (str, float)
        The row with the largest range and the two points between which it is met: names and values.

    Raises
    ------
    UnsupportedModelError
        If nothing bounds a column or a parameter that the number of a row grows with, or if it is infinite at an end:
        the text names the bounds to give.

    Notes
    -----
    Nothing here is proved: a range that was found has to be enforced where privacy rests on it. Reads no private value.
    """

    def __init__(self, inspection: RowInspection, prior_model: Model) -> None:
        self.priors = priors_of(prior_model)
        self.rows = ModelRows(inspection, prior_model, natural=True)
        columns, replace = self.rows.columns, inspection.domain.neighbours == "replace"
        self.public = [name for name, one in columns.items() if one.public and replace]
        self.parameters = ParameterPoints(self.priors)
        self.near = NearRows(
            self.rows, self.public, PublicRows(columns, self.rows.inputs, self.public), self.parameters.points
        )
        self.near.public.thin(MOST_ROWS)
        bounded = bool(clamped(inspection.model))
        if problems := [*_loose_columns(columns, bounded), *self._unbounded(bounded)]:
            raise UnsupportedModelError(problems)
        self.value = self.size = 0.0
        centre = self._search(inspection.most_rows, replace)
        self.reason = (
            f"the largest found at {len(self.near.points)} points of the parameters, from {len(self.near.public)} "
            "simulated rows, both moved to where it is larger"
        )
        self.worst = self._worst(centre)

    def _search(self, n_rows: int, replace: bool) -> Array:
        """Find the range without a centre, then about one; return the centre at all points, 0 where none is better."""
        centre = self._converged(n_rows, replace, False)
        if replace and not self.public:
            alone = self.value
            centre = self._converged(n_rows, replace, True)
            if self.value > alone * (1 - WORTH):
                centre = self._found(n_rows, replace, False)
        return centre

    def _converged(self, n_rows: int, replace: bool, centre_wanted: bool) -> Array:
        """Move points on, and look anew, until no row ranges farther at these."""
        for _ in range(ROUNDS):
            centre = self._found(n_rows, replace, centre_wanted)
            moved = self._moved_on(centre)
            found = self.near.at(self.near.far, moved, centred=True) - self._centre_at(moved)
            farther = float(np.ptp(found, axis=1).max()) * (2 if replace else 1)
            enough = not farther > self.value * (1 + GAIN)
            self._add(moved)
            if enough:
                break
        centre = self._found(n_rows, replace, centre_wanted)
        self.value = max(self.value, farther)
        return centre

    def _found(self, n_rows: int, replace: bool, centre_wanted: bool) -> Array:
        try:
            self.value, self.size, centre = self.near.found(n_rows, replace=replace, centre_wanted=centre_wanted)
        except UnsupportedModelError:
            self._require_finite()
            raise
        return centre

    def _add(self, points: Array) -> None:
        """Look at more points, and at the rows that they were found for, from now on."""
        near = self.near
        near.points, near.leading = np.concatenate([points, near.points]), near.leading + len(points)
        rows = near.public.rows
        near.public.rows = {name: np.concatenate([near.far[name], values]) for name, values in rows.items()}

    def has_gradients(self) -> bool:
        """Whether gradients in the parameters are numbers at public rows and points, as floats return them."""
        try:
            found = grad(self.rows.logp, self.rows.at, disconnected_inputs="ignore", return_disconnected="zero")
        except Exception:  # of the graph alone: operations say in their own ways that they have none
            return False
        slopes = OfPublicRows(self.rows, found)
        rows = {name: values[:: max(1, len(values) // 48)] for name, values in self.near.public.rows.items()}
        points = self.near.points[:: max(1, len(self.near.points) // 48)]
        return all(np.isfinite(slopes.at(rows, point)).all() for point in points)

    # --- what is in the way -------------------------------------------------------------------------------------------

    def _infinite(self, points: Array) -> bool:
        return not np.isfinite(self.near.at(self.near.public.rows, points)).all()

    def _unbounded(self, bounded: bool) -> list[Problem]:
        """Name the parameters with which the range grows without bounds, far out or towards an end of their priors."""
        found, ends = dict[Prior, tuple[bool, bool]](), self.parameters
        inside = not self._infinite(ends.middle[None])  # else it is infinite whatever the parameters are
        for prior in self.priors if inside else ():
            low, high = (self._infinite(ends.at_end(prior, side)[None]) for side in (0, 1))
            if low or high:
                found[prior] = low, high
        for part in ends.loose:
            sizes = [self._spread(ends.moved_out(part.prior, reach)) for reach in (FAR, FARTHER)]
            grows = not (np.isfinite(sizes).all() and sizes[1] <= GROWS * sizes[0])
            if grows or (part.drawn and not bounded):
                found[part.prior] = True, True
        if not found:
            return []
        names, examples = (
            ", ".join(prior.name for prior in found),
            ", ".join(f"{prior.name!r}: {_example(prior, sides)}" for prior, sides in found.items()),
        )
        what = "one row can move its likelihood by any amount, far out or towards an end of what the prior allows"
        remedy = f"Truncate by public bounds, for example dp.truncate(model, {{{examples}}})."
        return [Problem(where=names, what=what, remedy=remedy)]

    def _spread(self, points: Array) -> float:
        """Return the largest range of a row over some points."""
        rows = self.near.public.rows
        found = self.near.at(rows, np.concatenate([self.parameters.middle[None], points]))
        return float(np.ptp(found, axis=1).max()) if np.isfinite(found).all() else np.inf

    def _require_finite(self) -> None:
        """Name the columns that make a number infinite or NaN, where some do."""
        middle = self.parameters.middle[None]
        rows, found = self.near.public.rows, list[str]()
        lost = ~np.isfinite(self.near.at(rows, middle)).all(axis=1)
        some = {name: values[lost] for name, values in rows.items()}
        for name, column in self.rows.columns.items() if lost.any() else ():
            low, high = self.rows.ends_of(name)
            other = {**some, name: np.broadcast_to((low / 2 + high / 2).astype(some[name].dtype), some[name].shape)}
            if not column.public and np.isfinite(self.near.at(other, middle)).all():
                found.append(column.name)
        if found:
            what = "its log-likelihood is infinite or NaN for some values that it may have"
            pairs = ", ".join(f"{name!r}: (low, high)" for name in found)
            remedy = f"Give narrower public bounds of its values, dp.Domain(bounds={{{pairs}}})."
            raise UnsupportedModelError([Problem(where=", ".join(found), what=what, remedy=remedy)])

    # --- points that are moved on -------------------------------------------------------------------------------------

    def _moved_on(self, centre: Array) -> Array:
        """Move the points between which the farthest rows range on to where these range farther."""
        rows, near = self.near.far, self.near
        found = near.at(rows, near.points, centred=True) - centre
        places = np.concatenate([found.argmax(axis=1), found.argmin(axis=1)])
        points, count = near.points[places], len(found)
        signs, own = np.repeat([1.0, -1.0], count), np.tile(np.arange(count), 2)

        def number(tried: Array) -> Array:
            """Of (2 count, times, n_scalars) points, each for its own row."""
            flat = tried.reshape(-1, tried.shape[-1])
            values = (near.at(rows, flat, centred=True) - self._centre_at(flat)).reshape(count, *tried.shape[:2])
            return np.asarray(signs[:, None] * values[own, np.arange(len(tried))])

        after, before = self.parameters.beside(points)
        moved = self.parameters.uphill(points, number(after) - number(before))
        both = np.stack([points, moved], axis=1)
        points = both[np.arange(len(both)), np.nan_to_num(number(both), nan=-np.inf).argmax(axis=1)]
        return self.parameters.swept(points, number)

    def _centre_at(self, points: Array) -> Array:
        some, shares = self.near.centre
        return np.asarray(shares @ self.near.at(some, points)) if len(shares) else np.zeros(len(points))

    def _worst(self, centre: Array) -> tuple[tuple[str, float], ...]:
        found = self.near.at(self.near.far, self.near.points, centred=True) - centre
        row = int(np.ptp(found, axis=1).argmax())
        named = [
            (column.name if column.width == 1 else f"{column.name}[{entry}]", float(value))
            for name, column in self.rows.columns.items()
            for entry, value in enumerate(np.ravel(self.near.far[name][row]))
        ]
        for word, place in (("highest", found[row].argmax()), ("lowest", found[row].argmin())):
            names = [
                prior.name if prior.size == 1 else f"{prior.name}[{entry}]"
                for prior in self.priors
                for entry in range(prior.size)
            ]
            named += [
                (f"{name} ({word})", float(value)) for name, value in zip(names, self.near.points[place], strict=True)
            ]
        return tuple(named)


@kept_while_shared
def found_range(inspection: RowInspection, prior_model: Model) -> FoundRange:
    """Find it, once where several steps are looked at."""
    return FoundRange(inspection, prior_model)


def infinite_ends(priors: Sequence[Prior], infinite: Callable[[Prior, int], bool]) -> list[Problem]:
    """Say towards which ends of the priors' supports one row moves its likelihood by any amount.

    Parameters
    ----------
    priors : sequence of Prior
    infinite : callable
        Whether numbers of rows are infinite with a prior at its lower (0) or upper (1) end.
    """
    found = []
    for prior in priors:
        ends = [infinite(prior, side) for side in (0, 1)]
        if any(ends):
            what = "one row can move its likelihood by any amount towards an end of the prior of this variable"
            remedy = f"Truncate it: dp.truncate(model, {{{prior.name!r}: {_example(prior, ends)}}})."
            found.append(Problem(where=prior.name, what=what, remedy=remedy))
    return found


def _example(prior: Prior, ends: Sequence[bool] = (True, True)) -> str:
    """Return bounds strictly inside of a support, at the ends that need them, of a size that many models would bear."""
    low, high = (
        float(end if bound is None else function(bound))
        for bound, end, function in ((prior.low, -np.inf, np.min), (prior.high, np.inf, np.max))
    )
    if prior.distribution == "dirichlet":
        return f"({INSIDE * (high - low) * min(1.0, 10 / prior.size):g}, None)"
    if np.isfinite([low, high]).all():
        width = INSIDE * (high - low)
        return f"({low + ends[0] * width:.6g}, {high - ends[1] * width:.6g})"
    if np.isfinite(low):
        return f"({low + 0.1 * ends[0]:g}, {low + 10:g})"
    return f"({high - 10:g}, {high - 0.1 * ends[1]:g})" if np.isfinite(high) else "(-10, 10)"


def _loose_columns(columns: Mapping[str, Column], bounded: bool) -> list[Problem]:
    """Name the private columns whose values have no bounds, unless the model clamps what they add."""
    loose = [
        one
        for one in columns.values()
        if not bounded and not one.public and one.norm is None and not np.isfinite(one.ends).all()
    ]
    return [
        Problem(
            where=one.name,
            what="its values have no bounds, and a row may move its likelihood by any amount",
            remedy=f"Give public bounds of its values, dp.Domain(bounds={{{one.name!r}: (low, high)}}); or bound every "
            "row's log-likelihood by dp.clamp(model, low, high).",
        )
        for one in loose
    ]


__all__ = ["FoundRange", "found_range", "infinite_ends"]
