"""Prepared statements give and take the same values as SQLAlchemy's own execution, and fail in the same way."""

from __future__ import annotations

import importlib
import pkgutil
import sqlite3
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import psycopg2

import bot.records
from bot.records import tables
from bot.records.database import Database, insert_new, upsert
from bot.records.locks import UNLOCKED
from bot.records.statements import MOST_LISTED, Prepared, PreparedForLists
from bot.records.tables import deliveries, posts, votes

DELIVERY = {
    "key": "k", "thread_id": "t", "kind": "message", "body": {"text": "ä", "list": [1, None]}, "urgent": True,
    "accepted_at": 1, "due_at": 2.5, "status": "waiting", "tries": 0,
}  # fmt: skip
POST = {
    "key": "k", "thread_id": "t", "lane": "t", "kind": "said", "revision": 1, "sent_revision": 0, "tries": 0, "at": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (deliveries, DELIVERY),
        (deliveries, {**DELIVERY, "body": None}),
        (deliveries, {**DELIVERY, "urgent": False, "body": []}),
        (posts, POST),
        (posts, {**POST, "place": None, "content": None}),
        (posts, {**POST, "place": {"key": "p"}, "content": {"text": "x"}, "reference": {}}),
    ],
)
async def test_what_is_kept_and_read_is_as_sqlalchemy_has_it(
    database: Database, table: sa.Table, row: dict[str, Any]
) -> None:
    kept = [sa.type_coerce(column, sa.Text).label(column.name) for column in table.c if column.name != "key"]
    async with database.writing(UNLOCKED) as tx:
        await tx.run(Prepared(sa.insert(table)), row)
        await tx.run(sa.insert(table), {**row, "key": "other"})
        ours, theirs = await tx.all(sa.select(*kept[1:]))
        assert tuple(ours) == tuple(theirs)  # as the database has them
        prepared = await tx.one(Prepared(sa.select(table).where(table.c.key == "k")))
        plain = await tx.one(sa.select(table).where(table.c.key == "k"))
        assert prepared._asdict() == plain._asdict()
        assert [type(value) for value in prepared] == [type(value) for value in plain]


async def test_a_row_is_inserted_once_and_then_updated_where_that_is_wanted(database: Database) -> None:
    place = {"place_key": "p", "place": {"key": "p"}, "arrived_at": 1.0}
    async with database.writing(UNLOCKED) as tx:
        assert await insert_new(tx, tables.places, place)
        assert not await insert_new(tx, tables.places, {**place, "arrived_at": 2.0})
        await upsert(tx, tables.places, {**place, "place": {"key": "new"}, "arrived_at": 3.0}, ["place"])
        assert tuple(await tx.one(sa.select(tables.places))) == ("p", {"key": "new"}, 1.0)
        await upsert(tx, tables.places, {**place, "arrived_at": 4.0})
        assert tuple(await tx.one(sa.select(tables.places))) == ("p", {"key": "p"}, 4.0)


@pytest.mark.parametrize("length", [0, 1, 2, MOST_LISTED, MOST_LISTED + 1])
async def test_a_list_of_any_length_is_found(database: Database, length: int) -> None:
    wanted = [f"k{number}" for number in range(length)]
    listed = PreparedForLists(lambda keys: sa.select(deliveries.c.key).where(deliveries.c.key.in_(keys)))
    async with database.writing(UNLOCKED) as tx:
        for key in [*wanted, "another"]:
            await tx.run(Prepared(sa.insert(deliveries)), {**DELIVERY, "key": key})
        assert sorted(row.key for row in await tx.all(*listed.of(wanted))) == sorted(wanted)


async def test_prepared_and_other_statements_are_one_transaction(database: Database) -> None:
    async def insert_both(*, whole: bool) -> None:
        async with database.writing(UNLOCKED) as tx:
            await tx.run(Prepared(sa.insert(deliveries)), DELIVERY)
            await tx.run(sa.insert(deliveries), {**DELIVERY, "key": "other"})
            if not whole:
                raise KeyError

    async def keys() -> list[str]:
        async with database.reading() as tx:
            return [row.key for row in await tx.all(Prepared(sa.select(deliveries.c.key).order_by(deliveries.c.key)))]

    with pytest.raises(KeyError):
        await insert_both(whole=False)
    assert await keys() == []
    await insert_both(whole=True)
    assert await keys() == ["k", "other"]


async def test_an_error_is_sqlalchemys_and_has_no_values(database: Database) -> None:
    vote = {"approval_id": "none", "person_id": "p", "name": "n", "verb": "approve", "reason": "secret", "at": 1.0}
    with pytest.raises(sa.exc.IntegrityError) as failure:
        async with database.writing(UNLOCKED) as tx:
            await tx.run(Prepared(sa.insert(votes)), {**vote, "authority": "a", "key": "k"})
    assert "secret" not in str(failure.value)
    assert "INSERT INTO votes" in str(failure.value)


@pytest.mark.sqlite
async def test_a_commit_that_fails_raises_sqlalchemys_error(database: Database) -> None:
    vote = {"approval_id": "none", "person_id": "p", "name": "n", "verb": "approve", "reason": "secret", "at": 1.0}
    with pytest.raises(sa.exc.IntegrityError):
        async with database.writing(UNLOCKED) as tx:
            await tx.run(Prepared(sa.text("PRAGMA defer_foreign_keys = ON")))
            await tx.run(Prepared(sa.insert(votes)), {**vote, "authority": "a", "key": "k"})
    async with database.writing(UNLOCKED) as tx:
        assert await tx.all(sa.select(votes)) == []


async def test_a_value_that_is_missing_is_told_before_anything_is_executed(database: Database) -> None:
    async with database.reading() as tx:
        with pytest.raises(TypeError, match="required for the parameter of"):
            await tx.one(Prepared(sa.select(deliveries).where(deliveries.c.key == sa.bindparam("of", required=True))))
        with pytest.raises(TypeError, match="depends on the values"):
            await tx.one(Prepared(sa.select(deliveries).where(deliveries.c.key.in_(["a"]))))


def test_every_prepared_statement_can_be_compiled_for_postgresql() -> None:
    """Its driver takes parameters by name."""
    dialect = psycopg2.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's
    dialect.dbapi = sqlite3  # for the class of its errors: a driver of PostgreSQL's is not needed
    found = 0
    for module_info in pkgutil.iter_modules(bot.records.__path__):
        module = importlib.import_module(f"bot.records.{module_info.name}")
        for name, prepared in vars(module).items():
            if isinstance(prepared, Prepared) and name != "_BEGIN":
                needed = prepared.statement_for(dialect).compile(dialect=dialect).binds
                values = {each: None for each, bind in needed.items() if bind.value is None}
                compiled = prepared.compiled(dialect, values)
                assert set(compiled.parameters(values)) == set(needed)
                found += 1
    assert found > 30


def test_partial_indexes_are_partial_on_postgresql_too() -> None:
    said: list[str] = []
    engine = sa.create_mock_engine(
        "postgresql+psycopg2://", lambda sql, *_: said.append(str(sql.compile(dialect=engine.dialect)))
    )
    tables.metadata.create_all(engine, checkfirst=False)  # type: ignore[arg-type]  # as SQLAlchemy documents it
    said_of = "\n".join(said)
    assert "CREATE INDEX ix_deliveries_waiting ON deliveries (due_at) WHERE status = 'waiting'" in said_of
    assert said_of.count(" WHERE ") == sum(
        "where" in i.info for t in tables.metadata.tables.values() for i in t.indexes
    )
