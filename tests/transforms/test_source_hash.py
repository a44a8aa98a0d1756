"""Keys of compiled functions: they change with all that a function may run, and with the names of its files."""

import importlib
import sys

import numba
import pytest
from pytensor.scalar import float64

from pymc_dp.step_methods.langevin import kernels
from pymc_dp.step_methods.row_functions import summing_kernels
from pymc_dp.step_methods.row_functions.cached_loop import cache_key
from pymc_dp.transforms import draws_numba, jit
from pymc_dp.transforms.draws_numba import DRAWS, compiled
from pymc_dp.transforms.markov_states import MarkovStates
from pymc_dp.transforms.noised_count import NoisedCount
from pymc_dp.transforms.released_logp_numba import compiled as compiled_count
from pymc_dp.transforms.restricted_priors import NormalBall, TruncatedDirichlet
from pymc_dp.transforms.source_hash import source_hash
from tests.transforms import quadratic_kernel
from tests.transforms.quadratic_kernel import quadratic

HELPER = """
import numba

@numba.njit
def helper(x):
    return x + {number}
"""
LOOP = """
import numba
from made_up.{helpers} import helper
{numbers}

@numba.njit
def loop(x):
    return helper(x)

def with_a_number_of_its_own(number):
    @numba.njit
    def inner(x):
        return x + number
    return inner
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a package of a loop and of a helper in another file, and import it."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "made_up").mkdir()

    def write(number=1, numbers="", constants="SIZE = 3", helpers="helpers"):
        loops = LOOP.format(numbers=numbers, helpers="helpers").replace("helpers", helpers)
        files = {"__init__": "", helpers: HELPER.format(number=number), "loops": loops, "constants": constants}
        for name, text in files.items():
            (tmp_path / "made_up" / f"{name}.py").write_text(text)
        for name in [name for name in sys.modules if name.startswith("made_up")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        importlib.invalidate_caches()
        return importlib.import_module("made_up.loops")

    return write


def test_a_change_of_the_source_changes_the_hash(written):
    hashes = [
        source_hash(written(**changed).loop)
        for changed in (
            {},
            {"number": 2},
            {"numbers": "# another line"},
            {"numbers": "from made_up.constants import SIZE"},
            {"numbers": "from made_up.constants import SIZE", "constants": "SIZE = 4"},
        )
    ]
    assert len(set(hashes)) == len(hashes) and None not in hashes
    assert source_hash(written().loop) == hashes[0]


def test_so_does_another_name_of_a_file(tmp_path, written):
    """What Numba kept of the old file says its name, and fails to load where there is none."""
    before = written()
    known = source_hash(before.loop), source_hash(before.helper)
    (tmp_path / "made_up" / "loops.py").write_text((tmp_path / "made_up" / "helpers.py").read_text())
    importlib.invalidate_caches()
    renamed = importlib.reload(before).helper
    assert renamed.py_func.__code__.co_code == sys.modules["made_up.helpers"].helper.py_func.__code__.co_code
    assert source_hash(renamed) not in (None, *known)


def test_a_function_with_numbers_that_are_in_no_source_has_none(written):
    module = written()
    assert source_hash(module.with_a_number_of_its_own(1)) is None
    assert cache_key(module.loop, module.with_a_number_of_its_own(1)) is None
    scope = {}
    exec("def unknown(x): return x", {"__name__": "nowhere"}, scope)
    assert source_hash(numba.njit(scope["unknown"])) is None


@pytest.mark.parametrize("loop", [kernels.walk, kernels.add_clipped])
def test_the_hash_of_a_loop_covers_the_files_of_its_helpers(loop, monkeypatch):
    before = source_hash(loop)
    monkeypatch.setattr(summing_kernels, "SOME", 1)
    assert source_hash(loop) not in (None, before)


def test_a_kernel_is_known_by_its_options_and_by_what_it_reads(monkeypatch):
    known = source_hash(quadratic)
    assert source_hash(numba.njit(quadratic.py_func, fastmath=True)) != known
    monkeypatch.setattr(quadratic_kernel, "WEIGHT", 3.0)
    assert source_hash(quadratic) not in (None, known)


def test_intrinsics_have_one():
    assert source_hash(jit._bits) not in (None, source_hash(jit._float))


def test_random_variables_and_counts_are_kept_by_it(monkeypatch):
    """They were kept by the names of their classes alone: an update of the package found what no longer loads."""
    for variable in (
        NormalBall.dist([1.0, 1.0], 2.0),
        TruncatedDirichlet.dist([1.0, 1.0], lower=0.1),
        MarkovStates.dist([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], steps=3),
    ):
        node = variable.owner
        draw, key = compiled(node.op, node)
        assert draw is DRAWS[type(node.op)] and key == int(source_hash(draw), 16)
    known = source_hash(draws_numba.in_ball)
    monkeypatch.setattr(draws_numba, "INSIDE", 0.5)
    assert source_hash(draws_numba.in_ball) != known
    count = NoisedCount().make_node(*[float64() for _ in range(NoisedCount.nin)])
    assert compiled_count(count.op, count)[1] is not None
