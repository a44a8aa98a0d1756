"""What importing the package brings in, and what a first release does."""

import subprocess
import sys


def printed(code: str) -> set[str]:
    """Words that the code prints in a process of its own."""
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_the_package_imports_nothing_heavy_that_pymc_has_not_imported():
    added = printed(
        "import sys, pymc; before = set(sys.modules); import pymc_dp;"
        "print(' '.join({m for m in set(sys.modules) - before if not m.startswith('pymc_dp')}))"
    )
    heavy = {"scipy.special", "scipy.optimize", "scipy.stats", "opendp", "dp_accounting", "matplotlib", "numba"}
    assert not heavy & added


def test_the_package_imports_almost_nothing_of_itself():
    loaded = printed("import sys, pymc_dp; print(' '.join(m for m in sys.modules if m.startswith('pymc_dp')))")
    assert loaded == {f"pymc_dp{name}" for name in ("", "._lazy", "._version", ".trace", ".trace.registered")}


def test_errors_and_events_of_the_kernel_come_without_compilers_and_accountants():
    loaded = printed("import sys, pymc_dp.errors, pymc_dp.kernel.accounting.totals; print(' '.join(sys.modules))")
    assert "pymc_dp.kernel.errors" in loaded
    assert not {"numba", "pytensor", "opendp", "dp_accounting", "randomgen", "pymc_dp.kernel.rowmap"} & loaded


RELEASE = """
import sys
import numpy as np, pymc as pm, pymc_dp as dp
with pm.Model() as model:
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.arange(20) % 2)
    dp.privatize(epsilon=1.0)
    dp.privatize(epsilon=1.0, delta=1e-6, statistics=dp.Statistics(noise="gaussian"))
print(" ".join(sys.modules))
"""


def test_noise_comes_from_opendp_without_what_its_prelude_imports():
    loaded = printed(RELEASE)
    assert "opendp.measurements" in loaded
    assert not {"opendp.prelude", "opendp.extras", "sklearn"} & loaded
