"""What statements look for has an index: open rows, an approval's requester, a post's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_AT_ONCE = 1_000
_OPEN, _PENDING, _WAITING = "status = 'open'", "status = 'pending'", "status = 'waiting'"
_UNDECIDED = "status = 'unknown' AND choice IS NULL"
_SETTLED = "settled_key IS NOT NULL"
_LENGTH = sa.text("length(thread_id)")

_NEW: tuple[tuple[str, str, list[Any], str | None], ...] = (
    ("ix_threads_session", "threads", ["place_key", _LENGTH, "thread_id"], None),
    ("ix_threads_session_of", "threads", ["place_key", "requester", _LENGTH, "thread_id"], None),
    ("ix_deliveries_waiting_in", "deliveries", ["thread_id", "seq"], _WAITING),
    ("ix_deliveries_work", "deliveries", ["thread_id", "seq"], f"{_WAITING} AND kind != 'timer'"),
    ("ix_deliveries_parked", "deliveries", ["thread_id"], "status = 'parked'"),
    ("ix_posts_elsewhere", "posts", ["lane", "seq"], "place IS NOT NULL"),
    ("ix_approvals_pending_since", "approvals", ["asked_at"], _PENDING),
    ("ix_approvals_approved", "approvals", ["thread_id", "settled_at"], "status = 'approved'"),
    ("ix_approvals_settled", "approvals", ["requester", "settled_at"], "settled_at IS NOT NULL"),
    ("ix_approvals_settled_key", "approvals", ["settled_key"], _SETTLED),
    ("ix_clarifications_open_for", "clarifications", ["requester"], _OPEN),
    ("ix_clarifications_settled_key", "clarifications", ["settled_key"], _SETTLED),
    ("ix_sign_ins_open_for", "sign_ins", ["person_id", "connection"], _OPEN),
    ("ix_sign_ins_settled_key", "sign_ins", ["settled_key"], _SETTLED),
    ("ix_attempts_undecided_for", "attempts", ["requester"], _UNDECIDED),
    ("ix_attempts_settled_key", "attempts", ["settled_key"], _SETTLED),
    ("ix_authorizations_code", "authorizations", ["began_at"], "sealed_code IS NOT NULL"),
    ("ix_authorizations_grant", "authorizations", ["code_until"], "sealed_grant IS NOT NULL"),
    ("ix_authorizations_settled_key", "authorizations", ["settled_key"], _SETTLED),
    ("ix_authorizations_began_at", "authorizations", ["began_at"], None),
    ("ix_connections_active", "connections", ["connection"], "status = 'active'"),
    ("ix_connections_ended", "connections", ["connection_id"], "status = 'ended'"),
)
_OLD: tuple[tuple[str, str, list[Any], str | None], ...] = (
    ("ix_posts_elsewhere", "posts", ["lane"], "place IS NOT NULL"),
    ("ix_approvals_thread_id", "approvals", ["thread_id"], None),
    ("ix_approvals_settled_at", "approvals", ["settled_at"], None),
    ("ix_sign_ins_person_id_connection", "sign_ins", ["person_id", "connection"], None),
)


def upgrade() -> None:
    """Reads every approval and post once."""
    op.add_column("approvals", sa.Column("requester", sa.Text(), nullable=True))
    approvals = sa.table("approvals", sa.column("requester", sa.Text), sa.column("requesters", sa.JSON))
    op.execute(sa.update(approvals).values(requester=approvals.c.requesters[0].as_string()))
    op.create_table(
        "post_messages",
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("post", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("message", "post", name=op.f("pk_post_messages")),
        sqlite_with_rowid=False,
    )
    _keep_messages()
    for name, table, _, _ in _OLD:
        op.drop_index(op.f(name), table_name=table)
    _make(_NEW)


def downgrade() -> None:
    """Nothing is lost: all of it is made from the rest."""
    for name, table, _, _ in reversed(_NEW):
        op.drop_index(op.f(name), table_name=table)
    _make(_OLD)
    op.drop_table("post_messages")
    with op.batch_alter_table("approvals") as approvals:
        approvals.drop_column("requester")


def _make(indexes: tuple[tuple[str, str, list[Any], str | None], ...]) -> None:
    for name, table, columns, condition in indexes:
        where = sa.text(condition) if condition else None
        op.create_index(op.f(name), table, columns, sqlite_where=where, postgresql_where=where)


def _keep_messages() -> None:
    posts = sa.table("posts", sa.column("seq", sa.Integer), sa.column("key", sa.Text), sa.column("reference", sa.JSON))
    kept = sa.table("post_messages", sa.column("message", sa.Text), sa.column("post", sa.Text))
    connection, last = op.get_bind(), 0
    while rows := connection.execute(
        sa.select(posts).where(posts.c.seq > last).order_by(posts.c.seq).limit(_AT_ONCE)
    ).all():
        pairs = {(message, row.key) for row in rows for message in _messages_in(row.reference)}
        if pairs:
            connection.execute(sa.insert(kept), [{"message": message, "post": post} for message, post in sorted(pairs)])
        last = rows[-1].seq


def _messages_in(reference: Any) -> Iterator[str]:
    """As `bot.records.posts.messages_in` did at this revision."""
    match reference:
        case dict():
            for value in reference.values():
                yield from _messages_in(value)
        case list():
            for value in reference:
                if isinstance(value, str):
                    yield value
                else:
                    yield from _messages_in(value)
