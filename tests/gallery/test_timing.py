"""What is compiled is seen, once however much it compiles itself, and nothing else is."""

import pytensor
import pytensor.tensor as pt
from pytensor.compile.maker import FunctionMaker

from tests.gallery import timing
from tests.gallery.models import GALLERY
from tests.gallery.timing import compiling, release_seconds


def test_a_function_that_is_compiled_is_seen_and_a_call_is_not():
    before, x = FunctionMaker.__init__, pt.dscalar("x")
    with compiling() as spent:
        made = pytensor.function([x], x + 1, mode="FAST_COMPILE")
    assert spent and min(spent) >= 0 and FunctionMaker.__init__ is before
    with compiling() as spent:
        made(1.0)
    assert spent == []


def test_what_is_kept_of_a_model_or_a_budget_helps_no_release_that_is_timed(monkeypatch):
    seen = []
    monkeypatch.setattr(timing.dp, "privatize", lambda model, **given: seen.append((model, given["epsilon"])))
    release_seconds(GALLERY["ab_test"])
    (first, second) = seen
    assert first[0] is not second[0] and first[1] != second[1]
