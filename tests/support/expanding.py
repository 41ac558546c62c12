"""What a statement of a migration may do to PostgreSQL's tables while the version before works with them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence

from alembic.migration import MigrationContext
from alembic.operations import Operations

_NAME = r'"?(?P<table>\w+)"?'
_COLUMN = r'"?\w+"? (?P<type>.+)'
_CONSTANT = re.compile(r"DEFAULT ('[^']*'|-?\d+(\.\d+)?|true|false)( |$)", re.IGNORECASE)


def statements_of(migrate: Callable[[], None]) -> list[str]:
    """The statements that a migration's `upgrade` would send to PostgreSQL, without a database. One that looks into the
    rows fails here, as it should: how long that takes depends on how many there are."""
    text = io.StringIO()
    context = MigrationContext.configure(
        dialect_name="postgresql", opts={"as_sql": True, "output_buffer": text, "literal_binds": True}
    )
    with Operations.context(context):
        migrate()
    return [" ".join(each.split()) for each in text.getvalue().split(";") if each.strip()]


def why_not_expanding(statements: Sequence[str]) -> list[str]:
    """Returns what speaks against these statements; empty: programs that do not know of them go on as before, and
    nobody waits for longer than a moment. Whatever is not known to be harmless speaks against them."""
    made: set[str] = set()
    return [f"{why}: {each}" for each in statements if (why := _objection(each, made))]


def _objection(statement: str, made: set[str]) -> str:
    if found := re.match(rf"CREATE TABLE {_NAME} \(", statement):
        made.add(found["table"])
        return ""
    if found := re.match(rf"CREATE (UNIQUE )?INDEX .* ON {_NAME} ", statement):
        return "" if found["table"] in made else "building an index keeps everybody from writing to a table"
    if found := re.match(rf"(ALTER TABLE|INSERT INTO|UPDATE|DELETE FROM|COMMENT ON TABLE) {_NAME}", statement):
        if found["table"] in made:
            return ""
        added = re.match(rf"ALTER TABLE {_NAME} ADD COLUMN {_COLUMN}$", statement)
        if added and not re.search(r", *(ADD|DROP|ALTER|RENAME|SET)\b", added["type"], re.IGNORECASE):
            return _objection_to_a_column(added["type"])
    return "not known to leave the version before alone"


def _objection_to_a_column(kind: str) -> str:
    if re.search(r"UNIQUE|REFERENCES|PRIMARY|CHECK|GENERATED|IDENTITY|SERIAL", kind, re.IGNORECASE):
        return "all rows are looked through while nobody may use the table"
    has_constant = _CONSTANT.search(kind)
    if "NOT NULL" in kind.upper() and not has_constant:
        return "rows of the version before do not have it"
    if "DEFAULT" in kind.upper() and not has_constant:
        return "all rows are written anew while nobody may use the table"
    return ""
