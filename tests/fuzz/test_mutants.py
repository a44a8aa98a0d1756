"""What a fuzzer is worth: it finds what the package once did wrong."""

from functools import partial

import pytest

from tests.fuzz.densities import ODD
from tests.fuzz.engine import fuzz
from tests.fuzz.mutants import Dropping, Unlimited, summed_by
from tests.fuzz.samplers import Annealed, Gibbs, OneSample

TRIED = [
    (Dropping, Gibbs, "log of a normal tail", 100),
    (Dropping, Annealed, "log of a normal tail", 100),
    (Dropping, Gibbs, "log of a normal tail, milder", 4),
    (Unlimited, Gibbs, "sigmoid times 1", 1.005),
    (Unlimited, partial(OneSample, grid=4096), "sigmoid times 1", 1.001),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("mutant", "kind", "name", "excess"), TRIED)
def test_what_was_wrong_is_found(mutant, kind, name, excess, seed):
    with summed_by(mutant):
        subject = kind(ODD[name].model(), ODD[name].domain())
        found = fuzz(subject, "replace", 5_000, seed)
    assert found.excess > excess and not found.holds
