"""What is public about one row of the table: bounds, public columns, and what a neighbour is."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np

from pymc_dp import _validate
from pymc_dp._column_bounds import DeclaredBounds, GivenBounds, checked_bounds, hull_of, pairs_of
from pymc_dp._frames import Label, levels_of
from pymc_dp.errors import DomainError
from pymc_dp.metrics import Geographic, Metric
from pymc_dp.unit import Unit

Neighbours = Literal["replace", "add_remove"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace", "add_remove")
MOST_ROWS = 2**32
"""Rows that a table may have: none moves a sum by more than 2**30 steps, so that 64 bits cannot overflow."""


@dataclass(frozen=True, init=False)
class Domain:
    """The public description of one row, fixed before the data are looked at.

    Parameters
    ----------
    rows : str, optional
        Name of the model dimension that counts rows. Without it, axis 0 of every observed variable.
    bounds : mapping of str to (low, high), optional
        Public range of each observed variable or ``pm.Data`` named. Values outside are clamped. Of a ``pm.Data`` with
        several values per row, a design matrix, one pair for all of its k columns, or a pair for each: a list of k
        pairs, or a (k, 2) array. There alone low may equal high: of a column that is a public constant, as an intercept
        of ones, which is then set to that number in every row.
    norms : mapping of str to float, optional
        Public bound, in (1e-100, 1e100), on the Euclidean norm of a row of the named array of floats, which holds
        several values per row. Longer rows are scaled down, after values were clamped to bounds. For the predictors of
        a regression (bounds or a norm, not both), and for samplers that see rows one by one.
    public : iterable of str
        Names of ``pm.Data`` that need no protection. Every other ``pm.Data`` is private. Columns of the table can be
        public under ``"replace"`` only, other arrays (knots, a grid, an adjacency matrix) always. The name of a free
        variable stands for the unnamed arrays of its prior.
    neighbours : {"replace", "add_remove"}
        ``"replace"``: data sets differ in the private values of one row, the number of rows is public.
        ``"add_remove"``: one row more or fewer, the number of rows is private.
    n_max : int, optional
        Public bound on, and scale for, the number of rows; of persons, with a `unit`. Required under ``"add_remove"``.
    metric : Metric, optional
        A distance between rows (``dp.metrics``). ε is then the privacy loss **per unit of distance** instead of per
        row, ``"replace"`` only: rows that are near to each other are hard to tell apart, rows far apart less so. Every
        private column must be in it. Releases of sums of single columns support it, and `OPS` and `find_map` support
        ``L1`` of at most three columns; all others refuse.
    unit : Unit, optional
        Who ε protects, where a person may have several rows: ``dp.Unit("patient_id", max_rows=5)``. ``"add_remove"``
        only. Exact sums and noised gradients support it; all others refuse.
    weights : mapping of str to str, optional
        Survey weights: which column multiplies the log-likelihood of each row in an observed variable, ``{"y": "w"}``.
        A ``pm.Data`` of the model with one number per row, or a column of ``rows=``; private. Its `bounds`, at least
        0, are needed: larger weights are clamped, and the noise grows with the upper bound. The result is a
        pseudo-posterior; see Notes. Exact sums and noised gradients support it; all others refuse.
    levels : mapping of str to sequence of str or int, optional
        The public levels of columns of codes, in the order of the codes; ``dp.Levels`` will do. Codes of a ``pm.Data``
        or an observed variable of that name then need no bounds. Names that a model does not have play no part in it.

    Raises
    ------
    DomainError
        If the declaration contradicts itself.
    ArgumentError
        If an argument has another form than it should.

    Notes
    -----
    **Guarantee.** None by itself: everything declared here is taken as public. A bound computed from
    the rows would break the guarantee of every release that uses it.

    Under a metric ρ, a release is ε-private if for any two tables with equally many rows every conclusion is at most
    ``e^{ε Σ ρ(x_i, y_i)}`` times likelier under one than under the other (Chatzikokolakis et al. 2013; Dimitrakakis et
    al., 2017, definition 2). ρ is that of rows as they are used: clamped to the bounds and, except for `OPS`, rounded
    to a grid that the report names: rows that are nearer than a step of it may count as a step apart.

    With a `unit`, data sets are neighbours if one has the rows of one more person, any number of them. Persons are
    added and removed, never replaced: how many rows of each are kept is private whatever is public about their number,
    so that nothing is won by knowing it. For a person in another's place the loss is at most 2 ε.

    With `weights`, neighbours are as ever: a row has its weight in it. What a row adds to anything that is released is
    multiplied by its weight over the largest, a number between 0 and 1, and sums are in units of the largest. So no row
    adds more than one that counts once, and the noise is that many times larger. Sums of weights stand where numbers of
    rows would; the number of rows itself is as public, or as private, as without. Intervals are those of a survey with
    rows sampled independently where `Gradients` released it; exact sums claim no coverage.

    References
    ----------
    Skinner (1989), in Analysis of Complex Surveys (pseudo-likelihood); Savitsky, Toth (2016), doi 10.1214/16-EJS1153
    (pseudo-posteriors); Williams, Savitsky (2021), doi 10.1111/insr.12376 (their covariance).

    Examples
    --------
    >>> Domain(bounds={"age": (0, 100)})
    Domain(bounds={'age': (0.0, 100.0)}, neighbours='replace')
    >>> Domain(bounds={"X": [(1, 1), (0, 1), (-4, 4)]}).bounds["X"]
    ((1.0, 1.0), (0.0, 1.0), (-4.0, 4.0))
    >>> from pymc_dp import metrics
    >>> Domain(bounds={"age": (0, 100)}, metric=metrics.L1({"age": 0.2})).relation
    'metric: 0.2 |Δage|'
    >>> Domain(bounds={"w": (0, 10)}, weights={"y": "w"})
    Domain(bounds={'w': (0.0, 10.0)}, neighbours='replace', weights={'y': 'w'})
    """

    rows: str | None
    bounds: Mapping[str, DeclaredBounds]
    norms: Mapping[str, float]
    public: frozenset[str]
    neighbours: Neighbours
    n_max: int | None = field(default=None)
    metric: Metric | None = field(default=None)
    unit: Unit | None = field(default=None)
    weights: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)

    def __init__(
        self,
        rows: str | None = None,
        bounds: Mapping[str, GivenBounds] | None = None,
        norms: Mapping[str, float] | None = None,
        public: Iterable[str] = (),
        neighbours: Neighbours = "replace",
        n_max: int | None = None,
        metric: Metric | None = None,
        unit: Unit | None = None,
        weights: Mapping[str, str] | None = None,
        levels: Mapping[str, Sequence[Label]] | None = None,
    ) -> None:
        if rows is not None and not isinstance(rows, str):
            raise DomainError(f"rows must be the name of a dimension, got {_validate.shown(rows)}.")
        for argument, mapping in (("bounds", bounds), ("norms", norms), ("weights", weights), ("levels", levels)):
            if mapping is not None:
                _validate.mapping(argument, mapping)
        relation = _validate.choice("neighbours", neighbours, NEIGHBOURS)
        columns = frozenset(_validate.names("public", public))
        if relation == "add_remove":
            if n_max is None:
                raise DomainError(
                    "neighbours='add_remove' hides the number of rows, so a public bound on it is needed: "
                    "give n_max, for example the size of the population."
                )
        elif n_max is not None:
            raise DomainError(
                f"n_max={_validate.shown(n_max)} has no meaning under neighbours='replace', where the number of rows "
                "is public. Leave it out, or use neighbours='add_remove'."
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(
            self, "bounds", MappingProxyType({k: checked_bounds(k, v) for k, v in dict(bounds or {}).items()})
        )
        object.__setattr__(self, "norms", MappingProxyType({k: _norm(k, v) for k, v in dict(norms or {}).items()}))
        if both := sorted(name for name in self.norms if pairs_of(self.bounds.get(name, (0.0, 0.0)))):
            raise DomainError(
                f"bounds and norms both name {both[0]!r}, and a row that is scaled down to a norm may leave the bounds "
                "of its columns. Give only one of them."
            )
        object.__setattr__(self, "public", columns)
        object.__setattr__(self, "neighbours", relation)
        object.__setattr__(self, "metric", _metric(metric, relation, columns, self.bounds))
        object.__setattr__(self, "n_max", None if n_max is None else _validate.integer("n_max", n_max, 1, MOST_ROWS))
        object.__setattr__(self, "unit", _unit(unit, self.n_max))
        object.__setattr__(self, "weights", MappingProxyType(dict(weights or {})))
        object.__setattr__(self, "levels", MappingProxyType({k: _labels(k, v) for k, v in dict(levels or {}).items()}))
        for response, column in self.weights.items():
            _check_weight(self, response, column)

    @classmethod
    def of(
        cls,
        frame: object,
        *,
        bounds: Mapping[str, GivenBounds] | None = None,
        levels: Mapping[str, Sequence[Label]] | None = None,
        public_levels: Iterable[str] = (),
        columns: Iterable[str] | None = None,
        **declared: Any,
    ) -> Self:
        """Return the domain of a data frame: levels from the types of its columns, and nothing from its rows.

        Parameters
        ----------
        frame : data frame
            Of pandas, Polars (lazy ones too), PyArrow, a DuckDB relation, or of another kind that narwhals knows.
        bounds : mapping of str to (low, high), optional
            As of `Domain`, by the names of columns. Of a column of numbers nothing is read: without bounds it has none.
        levels : mapping of str to sequence of str or int, optional
            Public lists of levels, for columns of texts.
        public_levels : iterable of str
            Columns of pandas, or of what is like it, whose categories have no order, but were public before anybody
            looked at the rows.
        columns : iterable of str, optional
            Those that the model uses. Default: all.
        **declared
            Other arguments of `Domain`.

        Raises
        ------
        DomainError
            For texts and categories without public levels, each with the line to write; for other contradictions.

        Notes
        -----
        What is read are the types of a frame without its rows. Levels are those of an Enum of Polars or DuckDB, and of
        an ordered Categorical of pandas, in its order, and ``("False", "True")`` of booleans. A Categorical of Polars
        or PyArrow has the categories that occur; one of pandas without an order has those that were declared, or that
        occur (``astype("category")``), and does not know which: it is taken only by name, in `public_levels`.
        Intervals (``cut``, ``qcut`` without labels) are refused: their ends may be quantiles of the rows.

        **Guarantee.** None by itself, as of `Domain`. Assumed public, and listed so: levels and their order, that a
        column is boolean, and bounds. A type that was itself made of the rows is none: an Enum of ``unique()``,
        ``astype("category").cat.as_ordered()``, a type that was guessed from values, by a reader of CSV or by
        ``pandas.DataFrame(...)``, which makes floats of whole numbers where one is missing. Declare types where the
        file is read.

        Examples
        --------
        >>> import polars as pl
        >>> rating = pl.Series(["fair", "good"], dtype=pl.Enum(["bad", "fair", "good"]))
        >>> frame = pl.DataFrame({"rating": rating, "smokes": [True, False], "age": [31, 64]})
        >>> domain = Domain.of(frame, bounds={"age": (18, 95)})
        >>> domain.levels["rating"], domain.bounds["age"]
        (('bad', 'fair', 'good'), (18.0, 95.0))
        """
        given = {} if levels is None else {k: _labels(k, v) for k, v in _validate.mapping("levels", levels).items()}
        known, found = levels_of(frame, columns, given, _validate.names("public_levels", public_levels))
        for name in {} if bounds is None else _validate.mapping("bounds", bounds):
            if name not in known:
                raise DomainError(
                    f"bounds names {name!r}, which is no column of the data frame that columns= asks for (known: "
                    f"{', '.join(map(repr, known)) or 'none'}).{_validate.nearest(name, known)}"
                )
        return cls(bounds=bounds, levels=found, **declared)

    def of_columns(self, names: Container[str]) -> Self:
        """Return it with the range of their codes as bounds of those columns, among some, that have levels."""
        ends: dict[str, DeclaredBounds] = {
            name: (0.0, len(labels) - 1.0) for name, labels in self.levels.items() if len(labels) > 1
        }
        bounds = {name: pair for name, pair in ends.items() if name in names and name not in self.bounds}
        return replace(self, bounds={**self.bounds, **bounds}) if bounds else self

    @property
    def relation(self) -> str:
        """What ε is for: neighbours, a unit of the metric, or one person, by which a ledger keeps them apart."""
        other = self.metric or self.unit
        return self.neighbours if other is None else other.relation

    @property
    def most_rows(self) -> int | None:
        """Public bound on how many rows count; None where their number is public."""
        return None if self.n_max is None else self.n_max * self.rows_of_one

    @property
    def rows_of_one(self) -> int:
        """How many rows count at most of what ε protects: 1 without a `unit`."""
        return 1 if self.unit is None else self.unit.max_rows

    @property
    def protected(self) -> str:
        """Who or what ε protects, in words."""
        return "one row" if self.unit is None else str(self.unit)

    def __repr__(self) -> str:
        parts = [f"rows={self.rows!r}"] if self.rows else []
        parts += [f"bounds={dict(self.bounds)!r}"] if self.bounds else []
        parts += [f"norms={dict(self.norms)!r}"] if self.norms else []
        parts += [f"public={sorted(self.public)!r}"] if self.public else []
        parts += [f"neighbours={self.neighbours!r}"]
        parts += [f"n_max={self.n_max}"] if self.n_max is not None else []
        parts += [f"metric={self.metric!r}"] if self.metric is not None else []
        parts += [f"unit={self.unit!r}"] if self.unit is not None else []
        parts += [f"weights={dict(self.weights)!r}"] if self.weights else []
        parts += [f"levels={dict(self.levels)!r}"] if self.levels else []
        return f"Domain({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        known = (self.rows, dict(self.bounds), dict(self.norms), tuple(self.public))
        named = (dict(self.weights), dict(self.levels))
        return Domain, (*known, self.neighbours, self.n_max, self.metric, self.unit, *named)


def _labels(name: str, value: Any) -> tuple[Label, ...]:
    argument = f"levels[{name!r}]"
    several = _validate.several(argument, getattr(value, "labels", value))
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in several)
    if not labels or not all(isinstance(label, str | int) and not isinstance(label, bool) for label in labels):
        raise DomainError(f"{argument} must be texts or whole numbers, one at least, got {_validate.shown(value)}.")
    if len(set(labels)) < len(labels):
        raise DomainError(f"{argument} must differ from each other, got {_validate.shown(value)}. Name each once.")
    return labels


def _norm(name: str, value: object) -> float:
    result = _validate.number(f"norms[{name!r}]", value)
    if not 1e-100 < result < 1e100:
        raise DomainError(f"norms[{name!r}] must be > 0, in (1e-100, 1e100), got {result}. Use another unit.")
    return result


def _metric(
    metric: object, relation: str, public: frozenset[str], bounds: Mapping[str, DeclaredBounds]
) -> Metric | None:
    if metric is None:
        return None
    if not isinstance(metric, Metric):
        raise DomainError(
            f"metric must be one of dp.metrics, got {_validate.shown(metric)}. Write metric=dp.metrics.L1('age')."
        )
    if relation != "replace":
        raise DomainError(
            "metric= has no meaning under neighbours='add_remove': tables of different lengths have no distance. Use "
            "neighbours='replace'."
        )
    if both := sorted(public & set(metric.columns)):
        raise DomainError(f"public={both} are in the metric too. A public column needs no protection: leave it out.")
    for part in metric.parts:
        if not isinstance(part, Geographic) or (ends := bounds.get(part.latitude)) is None:
            continue
        if not -90 <= hull_of(ends)[0] <= hull_of(ends)[1] <= 90:
            raise DomainError(f"bounds[{part.latitude!r}] must be latitudes within (-90, 90), got {ends}.")
    return metric


def _unit(unit: object, n_max: int | None) -> Unit | None:
    if unit is None:
        return None
    if not isinstance(unit, Unit):
        raise DomainError(
            f"unit must be a dp.Unit, got {_validate.shown(unit)}. Write unit=dp.Unit('patient_id', max_rows=5)."
        )
    if n_max is None:
        raise DomainError(
            "unit= needs neighbours='add_remove', and n_max, a public bound on the number of persons: how many rows of "
            "each are kept is private, so that the number of rows is too. For a person in another's place the loss is "
            f"then at most 2 ε. Write dp.Domain(unit=dp.Unit({unit.column!r}, max_rows={unit.max_rows}), neighbours="
            "'add_remove', n_max=1000), with your own n_max."
        )
    if n_max * unit.max_rows > MOST_ROWS:
        raise DomainError(
            f"n_max={n_max} persons with max_rows={unit.max_rows} rows of each are more than {MOST_ROWS} rows. Lower "
            "one of them."
        )
    return unit


def _check_weight(domain: Domain, response: str, column: object) -> None:
    """Raise for weights of which it is not public that they are not negative, and at most how large."""
    if not isinstance(column, str) or not column:
        raise DomainError(
            f"weights[{response!r}] must be the name of a column, got {_validate.shown(column)}. Write "
            f"weights={{{response!r}: 'w'}}."
        )
    given = domain.bounds.get(column, (-1.0, -1.0))
    low, high = (-1.0, -1.0) if pairs_of(given) else hull_of(given)
    if low < 0 or not 1e-12 < high < 1e12:
        raise DomainError(
            f"weights names {column!r}, which needs bounds of at least 0, the upper one in (1e-12, 1e12), got "
            f"{domain.bounds.get(column, 'none')}. Declare a public range, bounds={{{column!r}: (0, high)}}: larger "
            "weights are clamped, and the noise grows with the upper bound."
        )
    if column in domain.public or column in domain.norms:
        raise DomainError(
            f"weights names {column!r}, which is private, and a number with bounds. Leave it out of public and norms."
        )
    for name, other in (("metric", domain.metric), ("unit", domain.unit)):
        if other is not None:
            raise DomainError(
                f"weights= and {name}= do not go together: what a weighted row adds is accounted for one row. Leave "
                "one of them out."
            )
