import sys

import pytest

import pymc_dp as dp
from pymc_dp import plots
from pymc_dp._optional import EXTRAS, require
from pymc_dp.rows.arrow_labels import arrow
from tests.project import PROJECT


@pytest.mark.parametrize("package", EXTRAS)
def test_a_package_that_lacks_is_named_with_the_extra_that_brings_it(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as refused:
        require(f"{package}.part", by="This")
    assert str(refused.value) == (
        f"This needs {package}, which cannot be imported. Install it: pip install 'pymc-dp[{EXTRAS[package]}]'"
    )
    assert any(one.startswith(package) for one in PROJECT["optional-dependencies"][EXTRAS[package]])


@pytest.mark.parametrize(
    ("package", "use"), [("matplotlib", lambda: plots.budget(dp.Ledger(1.0), backend="matplotlib")), ("pyarrow", arrow)]
)
def test_figures_and_stored_tables_say_what_they_need(package, use, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"needs {package}.*pip install 'pymc-dp"):
        use()
