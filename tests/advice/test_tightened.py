from __future__ import annotations

import pytest

from pymc_dp.advice.tightened import with_public
from pymc_dp.errors import PrivacyError
from pymc_dp.inspection.inspect import inspect
from pymc_dp.inspection.rows import UnreadColumn
from pymc_dp.rows.gate import read
from tests.advice.conftest import logistic


def test_a_column_taken_as_public_is_never_read():
    opened, names = with_public(inspect(*logistic()).rows)
    assert names == ("X",)
    column = next(column for column in opened.columns if column.name == "X")
    assert isinstance(column, UnreadColumn) and column.public and column.norm == 1.0
    with pytest.raises(PrivacyError, match="taken for public"):
        read(column)
