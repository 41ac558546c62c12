"""Files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What people hand over with their messages."""
    op.create_table(
        "files",
        sa.Column("file_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text()),
        sa.Column("message_key", sa.Text()),
        sa.Column("number", sa.Integer()),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("missing", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", name="pk_files"),
    )
    for name, columns, where, unique in (
        ("ix_files_unused", ["owner"], "thread_id IS NULL", False),
        ("ix_files_unused_since", ["created_at"], "thread_id IS NULL", False),
        ("ix_files_message", ["message_key", "number"], "message_key IS NOT NULL", True),
        ("ix_files_thread", ["thread_id"], "thread_id IS NOT NULL", False),
    ):
        condition = sa.text(where)
        op.create_index(name, "files", columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def downgrade() -> None:
    """As before."""
    op.drop_table("files")
