"""A verdict on a posterior: whether its intervals can be relied on, by what was released and public numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, override

from pymc_dp._display import Listing, Page, Shown, shorten
from pymc_dp.errors import TraceError

WORDS = ("ok", "wide but ok", "not checked", "doubtful", "do not use")
"""From the best to the worst."""
NOISE = "noise_over_sampling"
"""Key of a table of sums in records: its noise over that of sampling, in a typical cell."""
VERDICT = "verdict"
"""Key of a table of gradients in records: what was found when it was released."""
WIDE = 3.0
"""Times as wide as without privacy, above which intervals are called wide."""
FEW = 30
"""Draws of a sampler that show an interval."""
NAMED = 6


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why the intervals of a posterior are not simply ok.

    Attributes
    ----------
    word : {"wide but ok", "not checked", "doubtful", "do not use"}
    what : str
        What was found.
    remedy : str
        What to do about it.
    release : str
        Label of the release that it is about, where there are several; else empty.

    Examples
    --------
    >>> print(Reason(word="wide but ok", what="Intervals are wide", remedy="Spend more", release="2025"))
    In release 2025: Intervals are wide. Spend more.
    """

    word: str
    what: str
    remedy: str
    release: str = ""

    @property
    def found(self) -> str:
        """What was found, and in which release."""
        return f"In release {self.release}: {self.what}" if self.release else self.what

    @override
    def __str__(self) -> str:
        return f"{_sentence(self.found)} {_sentence(self.remedy)}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(Shown):
    """Whether the intervals of a posterior can be relied on.

    It is ``idata.dp.verdict`` of a trace and ``dp.Release.of(private).verdict`` of a private model. ``str()`` has the
    word and every reason.

    Attributes
    ----------
    reasons : tuple of Reason
        The most serious ones first; none where all is ok.

    Notes
    -----
    **Guarantee.** Post-processing: it is computed from what was released and from public numbers.

    Examples
    --------
    >>> print(Verdict(reasons=()))
    ok
    >>> verdict = Verdict(reasons=(Reason(word="doubtful", what="Rows do not fit", remedy="Change the model"),))
    >>> print(verdict)
    doubtful: Rows do not fit. Change the model.
    >>> verdict.word, verdict.warns
    ('doubtful', True)
    """

    reasons: tuple[Reason, ...]

    def __post_init__(self) -> None:
        ordered = sorted(self.reasons, key=lambda one: -WORDS.index(one.word))
        object.__setattr__(self, "reasons", tuple(ordered))

    @classmethod
    def of(cls, record: Mapping[str, Any], draws: int | None = None) -> Verdict:
        """Return the verdict of a record: the worst of all releases in it.

        Parameters
        ----------
        record : mapping
            Of a release or a trace, in JSON types.
        draws : int, optional
            How many draws the trace holds, for a sampler that held the rows.

        Raises
        ------
        TraceError
            If the record holds a verdict of another form.
        """
        sources = record.get("sources") or ()
        if not sources:
            return cls(reasons=(*_of_release(record), *_of_sampler(record, draws)))
        tables = {table["name"]: table for table in record["tables"]}
        return cls(
            reasons=tuple(
                replace(reason, release=str(source["label"]))
                for source in sources
                for reason in _of_release({**source["record"], "tables": [tables[name] for name in source["names"]]})
            )
        )

    @property
    def word(self) -> str:
        """The verdict in a few words.

        ``"do not use"``: an interval may be off by more than its width. ``"doubtful"``: a check fails that fails once
        in a hundred releases where all is well, or no interval is calibrated. ``"not checked"``: nothing that was
        released says whether intervals are right. ``"wide but ok"``: intervals are more than 3 times as wide as
        without privacy, or mostly those of the prior. ``"ok"``: none of these.
        """
        return self.reasons[0].word if self.reasons else WORDS[0]

    @property
    def warns(self) -> bool:
        """Whether a warning goes with it."""
        return self.word in ("doubtful", "do not use")

    @property
    def lines(self) -> tuple[str, ...]:
        """One text for each reason; a remedy is said once."""
        found, said = [], set[str]()
        for one in self.reasons:
            found.append(_sentence(one.found) if one.remedy in said else str(one))
            said.add(one.remedy)
        return tuple(found)

    @override
    def __str__(self) -> str:
        return f"{self.word}: {' '.join(self.lines)}" if self.reasons else self.word

    @property
    @override
    def _page(self) -> Page:
        parts = [Listing(title="", lines=self.labelled)] if self.reasons else []
        return Page(title="Verdict on intervals", headline=self.word, good=not self.warns, parts=parts)

    @property
    def labelled(self) -> list[str]:
        """The lines, each with its own word."""
        return [f"{one.word}: {line}" for one, line in zip(self.reasons, self.lines, strict=True)]

    def to_list(self) -> list[dict[str, str]]:
        """Return the reasons in JSON types."""
        return [
            {
                "word": one.word,
                "what": one.what,
                "remedy": one.remedy,
                **({"release": one.release} if one.release else {}),
            }
            for one in self.reasons
        ]

    @classmethod
    def from_list(cls, written: Iterable[Mapping[str, Any]]) -> Verdict:
        """Return what `to_list` was made of.

        Raises
        ------
        TraceError
            If a reason is of another form, or its word is none of `WORDS`.
        """
        found = []
        for one in written:
            if one.get("word") not in WORDS[1:]:
                raise TraceError(f"A verdict has the word {one.get('word')!r}; it must be one of {WORDS[1:]}.")
            if not {"what", "remedy"} <= set(one):
                raise TraceError("A reason of a verdict must have what was found and a remedy.")
            what, remedy = str(one["what"]), str(one["remedy"])
            found.append(Reason(word=str(one["word"]), what=what, remedy=remedy, release=str(one.get("release", ""))))
        return cls(reasons=tuple(found))

    __repr__ = Shown.__repr__


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _of_release(record: Mapping[str, Any]) -> Iterator[Reason]:
    """Yield the reasons of the tables of one release."""
    tables = record["tables"]
    if not tables:
        return
    wide = _wide(tables)
    if not record["noise_aware"]:
        yield Reason(
            word="do not use" if wide else "doubtful",
            what="The posterior treats noised sums as exact, so that its intervals are too narrow",
            remedy="Fit the same release with noise_aware=True by dp.condition, at no cost",
        )
    elif wide:
        yield Reason(
            word="wide but ok",
            what=f"The noise on {', '.join(shorten(list(wide), NAMED))} makes intervals up to about "
            f"{max(wide.values()):.2g} times as wide as without privacy, if the prior is that wide",
            remedy="Fewer cells, narrower public bounds or a larger ε help; dp.explain shows the noise at each ε",
        )
    if (record.get("maker") or {}).get("postprocessed"):
        yield Reason(
            word="doubtful",
            what="Published values were changed after the noise was added, which the posterior does not know",
            remedy="Ask those who made the tables for the noisy values before these changes",
        )
    for table in tables:
        kind = table["plan"].get("kind")
        if kind == "gradients":
            yield from _of_gradients(table["plan"])


def _of_gradients(plan: Mapping[str, Any]) -> Iterator[Reason]:
    if plan.get("momentum_steps"):
        yield Reason(
            word="doubtful",
            what="The posterior is local, not calibrated: it describes one mode of several",
            remedy="Use it for predictions, and no interval of a single parameter",
        )
    if VERDICT in plan:
        yield from Verdict.from_list(plan[VERDICT]).reasons
        return
    yield Reason(
        word="not checked",
        what="An earlier version of pymc_dp made this release, and did not check how well the model fits",
        remedy="Release again to have it checked; dp.rehearse(idata) shows at no cost whether intervals would cover",
    )


def _wide(tables: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return which sums have noise that makes intervals wide, and how wide: by the formulas of ``dp.explain``."""
    times = {table["name"]: sqrt(1 + float(table["plan"].get(NOISE, 0.0)) ** 2) for table in tables}
    return {name: one for name, one in times.items() if one > WIDE}


def _of_sampler(record: Mapping[str, Any], draws: int | None) -> Iterator[Reason]:
    """Yield the reasons of a sampler that held the rows."""
    sampler = record.get("sampler")
    if not sampler:
        return
    if draws is not None and draws < FEW:
        exact = sampler["name"] == "OPS" and draws > 1
        remedy = "dp.from_draws.draw_intervals gives intervals from them" if exact else "Use dp.sample for intervals"
        what = f"The trace holds {draws} draw{'s' * (draws != 1)} of a sampler, which {'are' if draws != 1 else 'is'}"
        yield Reason(word="doubtful", what=f"{what} too few to show an interval", remedy=remedy)
    elif record["guarantee"] != "exact":
        yield Reason(
            word="not checked",
            what="Nothing released says whether the chains have converged, or how far noise and clipping move them",
            remedy="Look at az.rhat and az.ess of the trace, and rehearse the sampler with dp.plan",
        )
    power = float(sampler.get("power", 1.0))
    if (times := 1 / sqrt(power)) > WIDE:
        yield Reason(
            word="wide but ok",
            what=f"Draws are of the likelihood to the power {power:.2g}: they spread about {times:.2g} times as far as "
            "without privacy, or as the prior does",
            remedy="A larger ε, fewer draws or fewer steps raise the power",
        )


__all__ = ["NOISE", "VERDICT", "WORDS", "Reason", "Verdict"]
