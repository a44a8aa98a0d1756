import pickle

import pytest

from pymc_dp.errors import BudgetExceeded
from pymc_dp.step_methods.funding import Claims


def test_as_many_chains_begin_as_were_paid_for():
    claims = Claims(2)
    claims.take(0, 10)
    claims.take(0, 10)
    with pytest.raises(BudgetExceeded, match="funded for 2 chains"):
        claims.take(0, 10)
    assert claims.taken() == [{"tune": 0, "draws": 10, "secure": True}] * 2


def test_copies_share_the_tokens():
    claims = Claims(1)
    pickle.loads(pickle.dumps(claims)).take(0, 5)
    with pytest.raises(BudgetExceeded):
        claims.take(0, 5)


def test_chains_of_another_length_are_refused():
    claims = Claims(2)
    claims.take(0, 10)
    with pytest.raises(BudgetExceeded, match="other numbers than tune=0, draws=1000"):
        claims.take(0, 1000)
