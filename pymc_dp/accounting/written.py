"""How a durable ledger writes and reads what was charged: events, totals, and the account of a budget, in JSON types.

Fractions are written as "p/q", floats as they print, so that each is read as exactly what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError
from pymc_dp.kernel.accounting.adaptive_account import Account, Concentrated, OneSum, Rule
from pymc_dp.kernel.accounting.events import Event
from pymc_dp.kernel.accounting.events.base import KINDS
from pymc_dp.kernel.accounting.totals import Total


def event_from_dict(written: Mapping[str, Any]) -> Event:
    """Return the event that `Event.to_dict` wrote.

    Examples
    --------
    >>> event_from_dict({"kind": "pure", "epsilon": 0.5})
    PureEvent(epsilon=0.5)
    """
    given = dict(written)
    kind = _validate.choice("kind of event", given.pop("kind", None), KINDS)
    try:
        return KINDS[kind](**{name: _read(value) for name, value in given.items()})
    except TypeError:
        raise ArgumentError(f"An event of kind {kind!r} cannot have the fields {sorted(given)}.") from None


def _read(value: object) -> object:
    if isinstance(value, Mapping):
        return event_from_dict(value)
    return tuple(map(_read, value)) if isinstance(value, list) else value


def total_to_dict(total: Total) -> dict[str, str]:
    """Return a total in JSON types."""
    return {"epsilon": repr(total.epsilon), "delta": repr(total.delta), "accountant": total.accountant}


def total_from_dict(written: Mapping[str, str]) -> Total:
    """Return the total that `total_to_dict` wrote."""
    return Total(epsilon=float(written["epsilon"]), delta=float(written["delta"]), accountant=written["accountant"])


def account_to_dict(account: Account) -> dict[str, Any]:
    """Return an account in JSON types, exactly.

    Once a spend has failed with a probability, the sum of losses has another name: versions that know of no such spends
    would take all of delta for what follows, and do not find the name that they look for.
    """
    sums = {"added": str(account.added)}
    if account.failed:
        sums = {"added_failing": str(account.added), "failed": str(account.failed)}
    rules = [_rule_to_dict(rule) for rule in account.rules]
    return {"epsilon": repr(account.epsilon), "delta": repr(account.delta), **sums, "rules": rules}


def account_from_dict(written: Mapping[str, Any]) -> Account:
    """Return the account that `account_to_dict` wrote."""
    return Account(
        epsilon=float(written["epsilon"]),
        delta=float(written["delta"]),
        added=Fraction(written["added_failing" if "failed" in written else "added"]),
        failed=Fraction(written.get("failed", 0)),
        rules=tuple(_rule_from_dict(rule) for rule in written["rules"]),
    )


def _rule_to_dict(rule: Rule) -> dict[str, Any]:
    numbers = {"left": repr(rule.left), "delta": repr(rule.delta)}
    if isinstance(rule, OneSum):
        one = None if rule.one is None else total_to_dict(rule.one)
        return {**numbers, "losses": _fraction(rule.losses), "one": one}
    if isinstance(rule, Concentrated):
        numbers |= {"order": repr(rule.order), "divergence": repr(rule.divergence)}
        return {**numbers, "rho": _fraction(rule.rho)}
    raise ArgumentError(f"rule must be one that an account has, got a {type(rule).__name__}.")


def _rule_from_dict(written: Mapping[str, Any]) -> Rule:
    numbers = {name: float(written[name]) for name in ("left", "delta")}
    if "order" not in written:
        losses, one = written["losses"], written["one"]
        return OneSum(
            **numbers,
            losses=None if losses is None else Fraction(losses),
            one=None if one is None else total_from_dict(one),
        )
    return Concentrated(
        **numbers,
        order=float(written["order"]),
        rho=None if written["rho"] is None else Fraction(written["rho"]),
        divergence=float(written["divergence"]),
    )


def _fraction(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


__all__ = ["account_from_dict", "account_to_dict", "event_from_dict", "total_from_dict", "total_to_dict"]
