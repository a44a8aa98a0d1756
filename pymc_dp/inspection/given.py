"""Models as they are given: PyMC's own, or bambi's, which are written anew in PyMC from public numbers."""

from __future__ import annotations

from typing import Any

from pymc import Model

from pymc_dp import _validate
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.inspect import check_domain
from pymc_dp.inspection.of_context import context_model, is_bambi


def from_bambi(model: Any, domain: Domain | None = None) -> tuple[Model, Domain]:
    """Write a bambi model as a PyMC model of its rows, in which every other number is public.

    ``dp.privatize``, ``dp.sample``, ``dp.explain``, ``dp.plan`` and ``dp.sensitivity`` do so themselves; this is for
    whatever takes a PyMC model only.

    Parameters
    ----------
    model : bambi.Model
        Of any family and link, with one formula or several. It is not changed, and need not be built.
    domain : Domain, optional
        Bounds by the names of the *columns of the data frame*: every number in the formula needs them. Labels are
        declared by an ordered categorical dtype of the column.

    Returns
    -------
    pymc.Model
        Free variables, dims, labels and priors as bambi has them, one ``pm.Data`` of name ``<column>_data`` per column
        of the design and one of name ``<factor>_group`` per grouping factor, the response, and one for each column that
        it has beside: ``<column>_trials`` of ``p(y, n)``, ``<response>_total`` of ``counts(...)`` and limits of
        ``truncated(...)``.
    Domain
        Bounds of these, and what else `domain` says.

    Raises
    ------
    UnsupportedModelError
        With every problem found in the formula and in the data frame's dtypes, and its remedy.
    DomainError
        If `domain` names what is no column of the data frame.

    Notes
    -----
    Bambi learns levels, means for centring, automatic priors and numbers of transforms (``scale``, the knots of ``bs``,
    centre and boundary of ``hsgp``) from the table it is given. Here it is given a public one: numbers spread evenly
    between their bounds (mean their middle, standard deviation (high - low) / √12), every level as often. Predictors
    are centred there, of which ``Intercept_centred`` is the free variable. ``Intercept`` is that of the predictors as
    they are, as bambi reports it. Automatic priors are those of such a table: declare bounds no wider than needed, or
    give priors.

    Links and parameters are written as the family says; whether the likelihood can be released is found afterwards, as
    of any PyMC model. ``censored(...)``, potentials, ``dropna=True`` and ``set_priors`` are refused.

    ``weighted(y, w)`` as a response, or ``Domain(weights={"y": "w"})``, becomes the weights of the domain that comes
    back, of a column ``<w>_data``.

    Rows enter the columns of the design only. Values are clamped to the bounds first, NaN going to the middle and
    missing labels to the first one.

    **Guarantee.** Each row of each column is a function of that row of the data frame and of public numbers: formulas
    are limited to columns, interactions, arithmetic, elementwise NumPy functions, codings and the transforms named
    above. Nothing else of the result, and no error or warning, depends on a private value; public columns may be looked
    at. What bambi itself prints or raises while a user builds a model on rows is not covered.

    Examples
    --------
    >>> import bambi, pandas  # doctest: +SKIP
    >>> data = pandas.DataFrame({"y": [0.2, 1.4, 0.9], "age": [20, 61, 45]})  # doctest: +SKIP
    >>> model, domain = from_bambi(
    ...     bambi.Model("y ~ age", data), Domain(bounds={"y": (0, 2), "age": (17, 90)})
    ... )  # doctest: +SKIP
    >>> domain  # doctest: +SKIP
    Domain(bounds={'age_data': (17.0, 90.0), 'y': (0.0, 2.0)}, neighbours='replace')
    """
    check_domain(domain)
    if not is_bambi(model):
        raise ArgumentError(
            f"model must be a bambi.Model, got {_validate.shown(model)}. Build it by bambi.Model(formula, data)."
        )
    if domain is not None and domain.metric is not None:
        raise ArgumentError(
            "metric= names columns of a PyMC model, but a bambi model has other columns. Convert it first, model, "
            "domain = dp.models.from_bambi(model, domain), and use a domain with a metric from then on."
        )
    if domain is not None and domain.unit is not None:
        raise ArgumentError(
            "unit= names a pm.Data of a PyMC model, which a bambi model has not. Convert it first, model, domain = "
            "dp.models.from_bambi(model, domain), add the column, with model: pm.Data('patient_id', codes), and use a "
            "domain with a unit from then on."
        )
    # Bambi is no need of the package: whoever has a model of it has it too.
    from pymc_dp.inspection.formulas.from_bambi import convert

    return convert(model, domain or Domain())


def given_model(model: Any, domain: Domain | None) -> tuple[Model, Domain | None]:
    """Return `model`, or the model of the context where it is None, and the domain; both of PyMC."""
    check_domain(domain)
    return from_bambi(model, domain) if is_bambi(model) else (context_model(model), domain)


__all__ = ["from_bambi", "given_model"]
