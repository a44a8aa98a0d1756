"""What is compiled is seen, once however much it compiles itself, and nothing else is."""

import pytensor
import pytensor.tensor as pt
from pytensor.compile.maker import FunctionMaker

from tests.gallery.timing import compiling


def test_a_function_that_is_compiled_is_seen_and_a_call_is_not():
    before, x = FunctionMaker.__init__, pt.dscalar("x")
    with compiling() as spent:
        made = pytensor.function([x], x + 1, mode="FAST_COMPILE")
    assert spent and min(spent) >= 0 and FunctionMaker.__init__ is before
    with compiling() as spent:
        made(1.0)
    assert spent == []
