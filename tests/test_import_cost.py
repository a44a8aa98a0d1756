"""What importing the package brings in."""

import subprocess
import sys


def test_the_package_imports_nothing_heavy_that_pymc_has_not_imported():
    code = (
        "import sys, pymc; before = set(sys.modules); import pymc_dp;"
        "print(' '.join({m for m in set(sys.modules) - before if not m.startswith('pymc_dp')}))"
    )
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"scipy.special", "scipy.optimize", "scipy.stats", "opendp", "dp_accounting", "matplotlib", "numba"}
    assert not heavy & set(added)
