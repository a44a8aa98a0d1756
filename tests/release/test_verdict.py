"""A verdict: the worst of its reasons, in words and in JSON."""

import pytest

from pymc_dp.errors import TraceError
from pymc_dp.release.verdict import WORDS, Reason, Verdict


def verdict(*words):
    return Verdict(reasons=tuple(Reason(word=word, what=f"What is {word}", remedy="Do this.") for word in words))


def test_it_is_the_worst_of_its_reasons_and_warns_from_doubtful_on():
    assert (verdict().word, str(verdict()), verdict().warns) == ("ok", "ok", False)
    for place, word in enumerate(WORDS[1:], 1):
        found = verdict(*WORDS[1 : place + 1], "wide but ok")
        assert found.word == word and found.warns == (word in ("doubtful", "do not use"))
    shown = str(verdict("wide but ok", "do not use", "doubtful"))
    assert shown.startswith("do not use: What is do not use. Do this. What is doubtful.")
    assert shown.endswith("What is wide but ok. Do this.")


def test_it_is_written_and_read_again():
    found = verdict("doubtful", "wide but ok")
    assert Verdict.from_list(found.to_list()) == found and Verdict.from_list([]) == verdict()
    for word in ("ok", "fine", None):
        with pytest.raises(TraceError, match="must be one of"):
            Verdict.from_list([{"word": word, "what": "", "remedy": ""}])
