"""Which likelihoods have a family: those of the package, and those that were registered from outside."""

from __future__ import annotations

from pymc_dp.errors import ArgumentError
from pymc_dp.families.family import Family

FAMILIES: dict[str, Family] = {}
"""By the name of PyTensor's random operation. `register` adds to it; nobody else does."""


def register(*families: Family) -> None:
    """Make families known everywhere: to releases, samplers, ``dp.explain``, records and saved files.

    Parameters
    ----------
    *families : Family
        Each of a likelihood that has none yet.

    Raises
    ------
    ArgumentError
        If a likelihood has a family already. What is released of it must not depend on the order of imports.

    Notes
    -----
    **Guarantee.** That of sums does not rest on what a family says of its density: bounded features are clamped and
    rounded to integers, whatever they are. It does rest on `BoundedFeatures.pairing` and on the closed forms of ranges,
    where a family gives some: their proof is the family's own.
    """
    for family in families:
        if family.distribution in FAMILIES:
            known = type(FAMILIES[family.distribution]).__qualname__
            raise ArgumentError(
                f"The likelihood {family.distribution!r} has a family already, {known}. Register a family once, of a "
                "likelihood that has none."
            )
        FAMILIES[family.distribution] = family


def names() -> str:
    """Return the likelihoods by their names in PyMC, for texts."""
    return ", ".join(sorted(type(family).__name__ for family in FAMILIES.values()))


def with_closed_form(*, sizes: bool = False) -> frozenset[str]:
    """Return the likelihoods of which a closed form bounds how far one row moves them.

    Parameters
    ----------
    sizes : bool
        Only those of which it bounds the log-likelihood itself too, and not just its range over parameters.
    """
    forms = {name: family.closed_form for name, family in FAMILIES.items()}
    return frozenset(name for name, form in forms.items() if form and not (sizes and form.base is None))


__all__ = ["FAMILIES", "names", "register", "with_closed_form"]
