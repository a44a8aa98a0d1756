import pytest

from pymc_dp.sensitivity import conditionals, proofs, search
from tests.step_methods.quick import interpreted

pytest_runtest_protocol = interpreted(__file__, slow=True)


@pytest.fixture
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of short searches are bounds as well."""
    for function in (search.maximise, proofs.prove_sums):
        monkeypatch.setitem(function.__kwdefaults__, "most", 5_000)
    monkeypatch.setattr(conditionals, "MOST_BOXES", 2_000)
    monkeypatch.setattr(search, "MOST_INFINITE", 2_000)
