"""Tables of PostgreSQL: names, transactions and cursors are of our own."""

import pytest

import pymc_dp as dp
from pymc_dp.rows.gate import opened_gate
from tests.rows.engines.engines import database

duckdb = pytest.importorskip("duckdb")


def test_only_connections_of_psycopg_are_taken():
    for other in (None, duckdb.connect(), "postgresql://server/db"):
        with pytest.raises(dp.errors.ArgumentError, match=r"must be a psycopg\.Connection"):
            dp.Table.sql(other, "survey", {"y": "y"})


@pytest.mark.slow
@pytest.mark.postgres
def test_names_are_quoted_and_queries_are_refused():
    connection = database()
    odd = 'a "quoted" name%s; drop'
    connection.execute('drop table if exists "My Table"; drop schema if exists other cascade; create schema other')
    connection.execute('create table "My Table" ("a ""quoted"" name%s; drop" float8)'.replace("%", "%%"), [])
    connection.execute("create table other.survey as select 1.0::float8 as y, 'ann' as name, 2.5 as price")
    assert dp.Table.sql(connection, "My Table", {"y": odd}).layouts()["y"].n_rows == 0
    assert dp.Table.sql(connection, "other.survey", {"y": "y"}).layouts()["y"].n_rows == 1
    for query in ("select y from other.survey", "(table survey)", "survey; drop table survey", "values (1)"):
        with pytest.raises(dp.errors.ArgumentError, match="got the text of a query"):
            dp.Table.sql(connection, query, {"y": "y"})
    for column, message in (("name", "'name' of type text"), ("price", "'price' of type numeric"), ("z", "no column")):
        with pytest.raises(dp.errors.ArgumentError, match=message):
            dp.Table.sql(connection, "other.survey", {"y": column}).layouts()
    with pytest.raises(dp.errors.PrivacyError, match="UndefinedTable"):
        dp.Table.sql(connection, "surveys", {"y": "y"}).layouts()


@pytest.mark.slow
@pytest.mark.postgres
def test_rows_are_read_in_a_transaction_of_our_own():
    psycopg = pytest.importorskip("psycopg")

    with psycopg.connect(database().info.dsn) as own:
        own.execute("create temporary table held as select 1.0::float8 as y")
        beside = dp.Table.sql(own, "held", {"y": "y"})
        with pytest.raises(dp.errors.ArgumentError, match="in the middle of a transaction"):
            beside.layouts()
        own.commit()
        assert beside.layouts()["y"].n_rows == 1
        assert own.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        own.execute("drop table if exists written; create table written (y float8)")
        own.execute(
            "create or replace function writes() returns float8 language sql as "
            "'insert into written values (2) returning y'"
        )
        own.execute("create or replace view writing as select writes() as y")
        own.commit()
        with pytest.raises(dp.errors.PrivacyError, match="ReadOnlySqlTransaction"), opened_gate():
            next(dp.Table.sql(own, "writing", {"y": "y"}).blocks(10))
        own.rollback()
