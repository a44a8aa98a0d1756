import pytest

from pymc_dp.proofs import branch_and_bound, conditional_ranges, row_ranges
from tests.step_methods.quick import interpreted

pytest_runtest_protocol = interpreted(__file__, slow=True)


@pytest.fixture
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of short searches are bounds as well."""
    for function in (branch_and_bound.maximise, row_ranges.prove_sums):
        monkeypatch.setitem(function.__kwdefaults__, "most", 5_000)
    monkeypatch.setattr(conditional_ranges, "MOST_BOXES", 2_000)
    monkeypatch.setattr(branch_and_bound, "MOST_INFINITE", 2_000)
