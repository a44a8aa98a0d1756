"""A verdict on a posterior: whether its intervals can be relied on, by what was released alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, override

from pymc_dp.errors import TraceError

WORDS = ("ok", "wide but ok", "doubtful", "do not use")
"""From the best to the worst."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a posterior is not simply relied on.

    Attributes
    ----------
    word : {"wide but ok", "doubtful", "do not use"}
    what : str
    remedy : str
        What to do about it.
    """

    word: str
    what: str
    remedy: str

    @override
    def __str__(self) -> str:
        return f"{self.what}. {self.remedy}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether the intervals of a posterior can be relied on.

    Attributes
    ----------
    word : str
        The worst of the reasons': ``"do not use"``, an interval may be off by more than its width; ``"doubtful"``, a
        check fails that fails once in a hundred releases where all is well; ``"wide but ok"``, intervals are more than
        3 times as wide as without privacy, or mostly those of the prior; else ``"ok"``.
    reasons : tuple of Reason

    Notes
    -----
    **Guarantee.** Post-processing: it is computed from what was released and from public numbers.

    Examples
    --------
    >>> print(Verdict(reasons=()))
    ok
    """

    reasons: tuple[Reason, ...]

    @property
    def word(self) -> str:
        """The verdict in a word or three."""
        return max((one.word for one in self.reasons), key=WORDS.index, default="ok")

    @property
    def warns(self) -> bool:
        """Whether a warning goes with it."""
        return self.word in ("doubtful", "do not use")

    @override
    def __str__(self) -> str:
        if not self.reasons:
            return self.word
        ordered = sorted(self.reasons, key=lambda one: -WORDS.index(one.word))
        return f"{self.word}: {' '.join(map(str, ordered))}"

    def to_list(self) -> list[dict[str, str]]:
        """Return the reasons in JSON types."""
        return [{"word": one.word, "what": one.what, "remedy": one.remedy} for one in self.reasons]

    @classmethod
    def from_list(cls, written: Iterable[Mapping[str, Any]]) -> Verdict:
        """Return what `to_list` was made of.

        Raises
        ------
        TraceError
            If a word is none of `WORDS`.
        """
        found = []
        for one in written:
            if one.get("word") not in WORDS[1:]:
                raise TraceError(f"A verdict has the word {one.get('word')!r}; it must be one of {WORDS[1:]}.")
            found.append(Reason(word=str(one["word"]), what=str(one["what"]), remedy=str(one["remedy"])))
        return cls(reasons=tuple(found))


__all__ = ["WORDS", "Reason", "Verdict"]
