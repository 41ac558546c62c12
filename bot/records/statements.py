"""Statements that turns and clicks execute: written once in SQLAlchemy Core, and compiled once for a dialect.

SQLAlchemy takes 25 to 40 µs to execute a statement that is there already, and 150 µs for one that is built each time;
SQLite takes 3 to 10 µs. A turn executes a dozen of them and a click three dozen, in the event loop. A prepared
statement goes to the driver as text, and its rows come back as plain tuples with names, with the same conversions of
values either way as by SQLAlchemy.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa

Values = Mapping[str, Any]
"""Parameter or column → value."""
MOST_LISTED = 16
"""Values of a list, for which a statement is prepared: each length is a text of its own."""
Fetched = TypeVar("Fetched")
MakeRow = Callable[[Sequence[Any]], Any]
"""Returns a row with names, as tables have its values, of one that the driver has fetched."""
_Process = Callable[[Any], Any]


class Prepared:
    """A statement that is composed once. Everything that differs from one execution to the next is a parameter.

    Args:
        statement: or, where it is written differently for each dialect, what makes it for one (by its name).
    """

    def __init__(self, statement: sa.Executable | Callable[[str], sa.Executable]) -> None:
        self._statement = statement
        self._compiled: dict[tuple[str, tuple[str, ...]], _Compiled] = {}

    def statement_for(self, dialect: sa.Dialect) -> Any:
        """Returns the statement as SQLAlchemy has it."""
        return self._statement(dialect.name) if callable(self._statement) else self._statement

    def execute(
        self, connection: sa.Connection, driver: Any, values: Values | None, fetch: Callable[[Any, MakeRow], Fetched]
    ) -> Fetched:
        """Executes it on the driver's own connection, and returns what `fetch` makes of the cursor.

        Raises the errors that SQLAlchemy raises, without the values of parameters.
        """
        compiled = self.compiled(connection.dialect, values or {})
        try:
            cursor = driver.execute(compiled.sql, compiled.parameters(values))
            try:
                return fetch(cursor, compiled.row_maker(cursor, connection.dialect))
            finally:
                cursor.close()  # an open one keeps its snapshot of the database
        except compiled.errors as error:  # here, and not by `raising_sqlalchemys`: SQLite takes hardly longer
            raise _as_sqlalchemys(error, connection.dialect, compiled.sql) from error

    def compiled(self, dialect: sa.Dialect, values: Values) -> _Compiled:
        """Returns it compiled, for parameters and columns of these names."""
        key = (dialect.name, tuple(values))
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = _Compiled(self.statement_for(dialect), dialect, key[1])
        return found


class PreparedForLists:
    """A statement about the values of a list, prepared once for each length that is common.

    Args:
        make: makes the statement for the values, or for as many parameters.
    """

    def __init__(self, make: Callable[[Sequence[Any]], sa.Executable]) -> None:
        self._make = make
        self._prepared: dict[int, Prepared] = {}

    def of(self, listed: Collection[Any]) -> tuple[Prepared | sa.Executable, Values | None]:
        """Returns the statement for these values, and its parameters."""
        if not 0 < len(listed) <= MOST_LISTED:
            return self._make(list(listed)), None
        names = [f"listed{number}" for number in range(len(listed))]
        prepared = self._prepared.get(len(listed))
        if prepared is None:
            prepared = self._prepared[len(listed)] = Prepared(self._make([sa.bindparam(name) for name in names]))
        return prepared, dict(zip(names, listed, strict=True))


class _Compiled:
    """A statement as text, and how the values of its parameters and columns are converted."""

    __slots__ = ("_binds", "_columns", "_make", "_names", "errors", "sql")

    def __init__(self, statement: Any, dialect: sa.Dialect, names: Sequence[str]) -> None:
        if isinstance(statement, sa.Insert) and not statement.exported_columns:
            statement = statement.inline()  # else PostgreSQL's dialect has the primary key returned, which nobody reads
        compiled = statement.compile(dialect=dialect, column_keys=list(names))
        if compiled.post_compile_params or compiled.literal_execute_params:
            raise TypeError(f"its text depends on the values of its parameters: {compiled.string}")
        self.sql: str = compiled.string
        self.errors: type[Exception] = _driver_of(dialect).Error
        order = compiled.positiontup if compiled.positional else list(compiled.binds)
        self._names = None if compiled.positional else order
        self._binds = [_bind(name, compiled.binds[name], dialect, given=name in names) for name in order]
        self._columns = getattr(statement, "exported_columns", {})
        self._make: MakeRow | None = None

    def parameters(self, values: Values | None) -> Any:
        """Returns the parameters as the driver takes them: by position, or by name."""
        given = [
            constant if name is None else values[name] if process is None else process(values[name])  # type: ignore[index]
            for name, process, constant in self._binds
        ]
        return given if self._names is None else dict(zip(self._names, given, strict=True))

    def row_maker(self, cursor: Any, dialect: sa.Dialect) -> MakeRow:
        """Returns what makes a row of one that the driver has fetched; the same for every execution."""
        if self._make is None:
            # As late as this: some drivers convert some types themselves, and say which they have returned.
            kinds = [column[1] for column in cursor.description or ()]
            types = [column.type.dialect_impl(dialect) for column in self._columns.values()] if kinds else []
            processes = [each.result_processor(dialect, kind) for each, kind in zip(types, kinds, strict=True)]
            self._make = _row_maker(tuple(self._columns.keys()), tuple(processes))
        return self._make


def no_row(_cursor: Any, _row: MakeRow) -> None:
    """For a statement whose rows nobody needs."""


def first_row(cursor: Any, row: MakeRow) -> Any:
    """Returns the first row, or none."""
    fetched = cursor.fetchone()
    return None if fetched is None else row(fetched)


def all_rows(cursor: Any, row: MakeRow) -> list[Any]:
    """Returns all rows."""
    return [row(fetched) for fetched in cursor.fetchall()]


def _as_sqlalchemys(error: Exception, dialect: sa.Dialect, sql: str = "") -> BaseException:
    """Returns what SQLAlchemy raises for an error of the driver. Parameters are not in it: what people wrote and tools
    returned is not for error messages, which end up in logs."""
    base = _driver_of(dialect).Error
    return sa.exc.DBAPIError.instance(sql, {}, error, base, hide_parameters=True, dialect=dialect)


@contextmanager
def raising_sqlalchemys(dialect: sa.Dialect, sql: str = "") -> Iterator[None]:
    """Within it the driver's errors are raised as SQLAlchemy raises them."""
    try:
        yield
    except _driver_of(dialect).Error as error:
        raise _as_sqlalchemys(error, dialect, sql) from error


def _driver_of(dialect: sa.Dialect) -> Any:
    return dialect.loaded_dbapi


def _bind(
    name: str, parameter: sa.BindParameter[Any], dialect: sa.Dialect, *, given: bool
) -> tuple[str | None, _Process | None, Any]:
    """Name and conversion of a parameter whose value is given at each execution, else its constant value."""
    process = parameter.type.dialect_impl(dialect).bind_processor(dialect)
    if given:
        return name, process, None
    if parameter.required:
        raise TypeError(f"a value is required for the parameter {name}")
    return None, None, parameter.value if process is None else process(parameter.value)


def _row_maker(names: tuple[str, ...], processes: tuple[_Process | None, ...]) -> MakeRow:
    # Columns without names are found by their places.
    make: MakeRow = namedtuple("Row", names, rename=True)._make  # type: ignore[attr-defined]  # mypy sees no names
    converted = [(at, process) for at, process in enumerate(processes) if process is not None]
    if not converted:
        return make

    def made(fetched: Sequence[Any]) -> Any:
        values = list(fetched)
        for at, process in converted:
            values[at] = process(values[at])
        return make(values)

    return made
