"""SciPy's special functions, imported when one of them is first called: they double the time to import the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Special:
    """``special.gammaln`` is a function that finds ``scipy.special.gammaln`` when it is called."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def function(*arguments: Any, **options: Any) -> Any:
            import scipy

            return getattr(scipy.special, name)(*arguments, **options)

        return function


special = _Special()

__all__ = ["special"]
