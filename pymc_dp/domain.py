"""What is public about one row of the table: bounds, public columns, and what a neighbour is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from pymc_dp import _validate
from pymc_dp.errors import DomainError
from pymc_dp.metrics import Geographic, Metric

Neighbours = Literal["replace", "add_remove"]
NEIGHBOURS: tuple[Neighbours, ...] = ("replace", "add_remove")
PER_PERSON = "unit: "
"""What the relation of a guarantee begins with that is for a person with several rows."""
MOST_ROWS = 2**32
"""Rows that a table may have: none moves a sum by more than 2**30 steps, so that 64 bits cannot overflow."""
MOST_OF_ONE = 2**16
"""Rows of one person that may count in full."""


@dataclass(frozen=True)
class Unit:
    """Who ε protects, where a person may have several rows: all rows with the same value of a column.

    Parameters
    ----------
    column : str
        Name of a ``pm.Data`` of whole numbers with one entry per row, or of a column of ``rows=``, of whole numbers or
        texts: whose row it is. It is private, and reaches no likelihood. A number below 0 is nobody's. PyMC keeps whole
        numbers in 32 bits, and larger ones become others without a word: give codes below 2**31, such as
        ``pandas.factorize(ids)[0]``.
    max_rows : int
        How many rows of one person count in full, m. Exact sums keep at most m rows of each person, chosen at
        random, anew for each release; noised gradients use all rows, and weigh those of a person with more down to
        about m. The noise grows with m.

    Raises
    ------
    DomainError

    Notes
    -----
    **Guarantee.** None by itself: it says what ε is for, see `Domain`. A row whose person is missing, or has a number
    below 0, is left out. Two people who share a value of the column are protected as one: for one of them alone the
    loss is up to 2 ε. Someone with two values of it is protected as two people, each with the whole ε.

    Examples
    --------
    >>> Domain(neighbours="add_remove", n_max=400, unit=Unit("patient_id", max_rows=5)).most_rows
    2000
    """

    column: str
    max_rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise DomainError(
                f"Unit: column must be the name of the column that says whose row it is, got "
                f"{_validate.shown(self.column)}. Write dp.Unit('patient_id', max_rows=5)."
            )
        object.__setattr__(self, "max_rows", _validate.integer("max_rows", self.max_rows, 1, MOST_OF_ONE))

    @property
    def relation(self) -> str:
        """What a ledger calls a guarantee for one person; how many rows of each count makes no difference to it."""
        return f"{PER_PERSON}{self.column}"

    def __str__(self) -> str:
        return f"one person ({self.column}), at most {self.max_rows} row{'s' * (self.max_rows != 1)}"


@dataclass(frozen=True, init=False)
class Domain:
    """The public description of one row, fixed before the data are looked at.

    Parameters
    ----------
    rows : str, optional
        Name of the model dimension that counts rows. Without it, axis 0 of every observed variable.
    bounds : mapping of str to (low, high), optional
        Public range of each observed variable or ``pm.Data`` named. Values outside are clamped.
    norms : mapping of str to float, optional
        Public bound, in (1e-100, 1e100), on the Euclidean norm of a row of the named array of floats, which holds
        several values per row. Longer rows are scaled down, after values were clamped to bounds. For the predictors of
        a regression (bounds or a norm, not both), and for samplers that see rows one by one.
    public : iterable of str
        Names of ``pm.Data`` columns that need no protection (``neighbours="replace"`` only).
    neighbours : {"replace", "add_remove"}
        ``"replace"``: data sets differ in the private values of one row, the number of rows is public.
        ``"add_remove"``: one row more or fewer, the number of rows is private.
    n_max : int, optional
        Public bound on, and scale for, the number of rows; of persons, with a `unit`. Required under ``"add_remove"``.
    metric : Metric, optional
        A distance between rows (``dp.metrics``). ε is then the privacy loss **per unit of distance** instead of per
        row, ``"replace"`` only: rows that are near to each other are hard to tell apart, rows far apart less so. Every
        private column must be in it. `OPS`, `TemperedGibbs`, `BarkerMetropolis`, `find_map` and releases of sums of
        single columns support it; all others refuse.
    unit : Unit, optional
        Who ε protects, where a person may have several rows: ``dp.Unit("patient_id", max_rows=5)``. ``"add_remove"``
        only. Exact sums and noised gradients support it; all others refuse.
    weights : mapping of str to str, optional
        Survey weights: which column multiplies the log-likelihood of each row in an observed variable, ``{"y": "w"}``.
        A ``pm.Data`` of the model with one number per row, or a column of ``rows=``; private. Its `bounds`, at least
        0, are needed: larger weights are clamped, and the noise grows with the upper bound. The result is a
        pseudo-posterior; see Notes. Exact sums and noised gradients support it; all others refuse.

    Raises
    ------
    DomainError
        If the declaration contradicts itself.

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
    >>> from pymc_dp import metrics
    >>> Domain(bounds={"age": (0, 100)}, metric=metrics.L1({"age": 0.2})).relation
    'metric: 0.2 |Δage|'
    >>> Domain(bounds={"w": (0, 10)}, weights={"y": "w"})
    Domain(bounds={'w': (0.0, 10.0)}, neighbours='replace', weights={'y': 'w'})
    """

    rows: str | None
    bounds: Mapping[str, tuple[float, float]]
    norms: Mapping[str, float]
    public: frozenset[str]
    neighbours: Neighbours
    n_max: int | None = field(default=None)
    metric: Metric | None = field(default=None)
    unit: Unit | None = field(default=None)
    weights: Mapping[str, str] = field(default_factory=dict)

    def __init__(
        self,
        rows: str | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        norms: Mapping[str, float] | None = None,
        public: Iterable[str] = (),
        neighbours: Neighbours = "replace",
        n_max: int | None = None,
        metric: Metric | None = None,
        unit: Unit | None = None,
        weights: Mapping[str, str] | None = None,
    ) -> None:
        if rows is not None and not isinstance(rows, str):
            raise DomainError(f"rows must be the name of a dimension, got {_validate.shown(rows)}.")
        for argument, mapping in (("bounds", bounds), ("norms", norms), ("weights", weights)):
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
            if columns:
                raise DomainError(
                    f"public={sorted(columns)} cannot hold under neighbours='add_remove': the row that is added "
                    "brings its own values. Use neighbours='replace', or leave the columns private."
                )
        elif n_max is not None:
            raise DomainError(
                f"n_max={_validate.shown(n_max)} has no meaning under neighbours='replace', where the number of rows "
                "is public. Leave it out, or use neighbours='add_remove'."
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(
            self, "bounds", MappingProxyType({k: _interval(k, v) for k, v in dict(bounds or {}).items()})
        )
        object.__setattr__(self, "norms", MappingProxyType({k: _norm(k, v) for k, v in dict(norms or {}).items()}))
        object.__setattr__(self, "public", columns)
        object.__setattr__(self, "neighbours", relation)
        object.__setattr__(self, "metric", _metric(metric, relation, columns, self.bounds))
        object.__setattr__(self, "n_max", None if n_max is None else _validate.integer("n_max", n_max, 1, MOST_ROWS))
        object.__setattr__(self, "unit", _unit(unit, self.n_max))
        object.__setattr__(self, "weights", MappingProxyType(dict(weights or {})))
        for response, column in self.weights.items():
            _check_weight(self, response, column)

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
        return f"Domain({', '.join(parts)})"

    def __reduce__(self) -> tuple[object, ...]:
        known = (self.rows, dict(self.bounds), dict(self.norms), tuple(self.public))
        return Domain, (*known, self.neighbours, self.n_max, self.metric, self.unit, dict(self.weights))


def _interval(name: str, value: Any) -> tuple[float, float]:
    pair = _validate.pair(f"bounds[{name!r}]", value)
    low = _validate.number(f"bounds[{name!r}] low", pair[0])
    high = _validate.number(f"bounds[{name!r}] high", pair[1])
    if low >= high:
        raise DomainError(f"bounds[{name!r}] must have low < high, got ({low}, {high}).")
    return low, high


def _norm(name: str, value: object) -> float:
    result = _validate.number(f"norms[{name!r}]", value)
    if not 1e-100 < result < 1e100:
        raise DomainError(f"norms[{name!r}] must be > 0, in (1e-100, 1e100), got {result}. Use another unit.")
    return result


def _metric(
    metric: object, relation: str, public: frozenset[str], bounds: Mapping[str, tuple[float, float]]
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
        if isinstance(part, Geographic) and (ends := bounds.get(part.latitude)) and not -90 <= ends[0] < ends[1] <= 90:
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
            "then at most 2 ε."
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
    low, high = domain.bounds.get(column, (-1.0, -1.0))
    if low < 0 or not 1e-12 < high < 1e12:
        raise DomainError(
            f"weights names {column!r}, which needs bounds of at least 0, the upper one in (1e-12, 1e12), got "
            f"{domain.bounds.get(column, 'none')}. Declare a public range, bounds={{{column!r}: (0, 10)}}: larger "
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
