"""While an engine runs nothing is logged or warned of, whatever loggers it has and however calls overlap."""

import logging
import warnings

import numpy as np
import pytest

import pymc_dp as dp
from pymc_dp.rows.engines.frames import Frame, Schema
from tests.release.test_beside import domain_of, model_of, table
from tests.rows.engines.engines import session

pl = pytest.importorskip("polars")
SECRET = "4711secret"


class Engine(Frame):
    """One that logs and warns while it counts, as PySpark does: by a logger with a level and a handler of its own."""

    engine = "Test"

    def __init__(self, between):
        self.between = between

    def schema(self, names):
        return Schema(dtypes={"y": np.dtype(float)}, texts=(), names=("y",), others={})

    def count(self):
        logger = logging.getLogger("DataFrameQueryContextLogger.child")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(handler := logging.StreamHandler())
        self.between()
        logger.critical(SECRET)
        warnings.warn(SECRET, stacklevel=1)
        logger.removeHandler(handler)
        return 1


Engine.__abstractmethods__ = frozenset()


def of_engine(between=lambda: None):
    held = dp.Table(pl.LazyFrame({"y": [1.0]}), {"y": "y"})
    held._frame = Engine(between)
    return held


def test_loggers_with_levels_and_handlers_of_their_own_are_silent(capfd, recwarn):
    assert of_engine().layouts()["y"].n_rows == 1
    assert SECRET not in "".join(capfd.readouterr()) and len(recwarn) == 0
    assert logging.root.manager.disable == logging.NOTSET


@pytest.mark.slow
@pytest.mark.spark
def test_loggers_of_spark_show_no_value(capfd, caplog):
    """What its Java process writes to the terminal is not ours; Python's loggers write JSON with their name."""
    query = f"select cast(t as double) as y from (select concat('{SECRET}', id) as t from range(1))"
    beside = dp.Table(session().sql(query), {"y": "y"}, assume_rows=True)
    with pytest.raises(dp.errors.PrivacyError, match="The engine failed") as caught:
        dp.privatize(model_of("one_cell", table(4)), epsilon=0.5, domain=domain_of("one_cell", "replace"), rows=beside)
    assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text  # where pytest has handlers, PySpark adds none of its own
    assert not any('"logger"' in line and SECRET in line for line in "".join(capfd.readouterr()).splitlines())
