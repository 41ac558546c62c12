"""What begins, counted in PostgreSQL for all processes: turns, sign-in links, sign-ins, guesses of a password.

One statement looks, counts and remembers who is told. It is a function in the database, since what is read after
waiting for others who count in the same windows has to be what they have left, and a statement sees nothing that was
written after it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import sqlalchemy as sa

from bot.limits import NO_LIMIT, Full, Window
from bot.records.statements import Prepared, Values
from bot.records.tables import beginnings

if TYPE_CHECKING:
    from bot.records.database import Transaction
    from bot.records.postgresql import PostgresDatabase

KEPT_SECONDS = 600.0
"""How long it is remembered that something was counted, after it counts no more: what is tried again until then is not
counted anew."""
_HAS_COUNTER = (
    "SELECT to_regprocedure('count_beginning(text, text[], integer[], double precision[], text)') IS NOT NULL"
)
_MAKE_COUNTER = """
CREATE FUNCTION count_beginning(
    IN _key text, IN _names text[], IN _most integer[], IN _seconds double precision[], IN _told text,
    OUT _full integer, OUT _wait double precision, OUT _is_first boolean
) LANGUAGE plpgsql AS $$
DECLARE
    _now double precision;
    _since double precision;
    _first text;
BEGIN
    -- In one order, so that nobody waits in a circle.
    PERFORM pg_advisory_xact_lock(hash)
    FROM (SELECT DISTINCT hashtextextended(name, 0) AS hash FROM unnest(_names) AS name ORDER BY 1) AS sorted;
    _now := extract(epoch FROM clock_timestamp());
    FOR number IN 1 .. cardinality(_names) LOOP
        CONTINUE WHEN EXISTS (SELECT FROM beginnings WHERE name = _names[number] AND key = _key);
        SELECT at INTO _since FROM beginnings
        WHERE name = _names[number] AND at > _now - _seconds[number]
        ORDER BY at DESC OFFSET _most[number] - 1 LIMIT 1;
        CONTINUE WHEN NOT FOUND;
        _full := number - 1;
        _wait := greatest(_since + _seconds[number] - _now, 0.001);
        IF _told != '' THEN
            SELECT key INTO _first FROM beginnings WHERE name = _told AND until > _now LIMIT 1;
            IF NOT FOUND THEN
                _first := _key;
                INSERT INTO beginnings (name, key, at, until) VALUES (_told, _key, _now, _now + _wait)
                ON CONFLICT (name, key) DO UPDATE SET at = excluded.at, until = excluded.until;
            END IF;
        END IF;
        _is_first := _told = '' OR _first = _key;
        RETURN;
    END LOOP;
    INSERT INTO beginnings (name, key, at, until)
    SELECT each.name, _key, _now, _now + each.seconds FROM unnest(_names, _seconds) AS each (name, seconds)
    ON CONFLICT (name, key) DO NOTHING;
END $$
"""
_COUNT = """
_full AS "full", _wait AS wait, _is_first AS is_first
FROM {also} count_beginning(:key, cast(:names AS text[]), cast(:most AS integer[]),
    cast(:seconds AS double precision[]), :told)
"""
_COLUMNS = sa.column("full", sa.Integer), sa.column("wait", sa.Float), sa.column("is_first", sa.Boolean)


def _counting(also: str) -> Prepared:
    return Prepared(sa.text(f"SELECT {_COUNT.format(also=also)}").columns(*_COLUMNS))


_COUNT_WITHIN = _counting("")
_COUNT_APART = _counting("set_config('synchronous_commit', 'off', true),")
"""By itself it need not wait for the disk: what a crash of the server loses of it is counted once more."""
_FORGET = Prepared(sa.delete(beginnings).where(beginnings.c.name == sa.bindparam("of")))
_FORGET_ONE = Prepared(
    sa.delete(beginnings).where(beginnings.c.name == sa.bindparam("of"), beginnings.c.key == sa.bindparam("one"))
)
_SWEEP = Prepared(
    sa.delete(beginnings).where(
        beginnings.c.until < sa.extract("epoch", sa.func.clock_timestamp()) - sa.literal_column(str(KEPT_SECONDS))
    )
)


def make_counter(connection: sa.Connection) -> None:
    """Make what counts, where it is missing. One that does it otherwise needs another name: processes of the version
    before may still run."""
    if not connection.exec_driver_sql(_HAS_COUNTER).scalar():
        connection.exec_driver_sql(_MAKE_COUNTER)


class SharedBeginnings:
    """Counts for all processes on one PostgreSQL, by its clock. Fills `bot.limits.Beginnings`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def count(
        self, key: str, windows: Sequence[Window], *, told: str = "", tx: Transaction | None = None
    ) -> Full | None:
        """Counts one more in all of these windows, or in none and returns the first that is full."""
        limited = [window for window in windows if window.most != NO_LIMIT]
        if not limited:
            return None
        values = {
            "key": key,
            "names": [window.name for window in limited],
            "most": [window.most for window in limited],
            "seconds": [window.seconds for window in limited],
            "told": told,
        }
        if tx is not None:
            return await _counted(tx, _COUNT_WITHIN, limited, values)
        async with self._database.at_once() as own:
            return await _counted(own, _COUNT_APART, limited, values)

    async def forget(self, window: Window, key: str = "") -> None:
        """Nothing has begun there; `key`: what is counted under it has not."""
        async with self._database.at_once() as tx:
            if key:
                await tx.run(_FORGET_ONE, {"of": window.name, "one": key})
            else:
                await tx.run(_FORGET, {"of": window.name})


async def _counted(tx: Transaction, statement: Prepared, windows: Sequence[Window], values: Values) -> Full | None:
    row = await tx.one(statement, values)
    if row is None:
        raise RuntimeError("a function that returns a row has returned none")
    return None if row.full is None else Full(windows[row.full], row.wait, row.is_first)


async def sweep(tx: Transaction) -> None:
    """Forgets what has not counted any more for a while."""
    await tx.run(_SWEEP)
