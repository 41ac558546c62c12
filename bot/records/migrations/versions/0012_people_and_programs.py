"""Who people of the page and programs are, and whose a conversation is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Conversations of the page become those of whoever asked there last: who began them was not kept."""
    op.create_table(
        "thread_owners",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("thread_id", name="pk_thread_owners"),
    )
    op.execute(
        "INSERT INTO thread_owners (thread_id, owner, since) "
        "SELECT thread_id, requester, created_at FROM threads WHERE platform = 'web' AND requester IS NOT NULL"
    )
    op.create_index("ix_thread_owners_owner_since", "thread_owners", ["owner", "since"])
    op.create_table(
        "users",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("registered", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
    op.create_table(
        "sessions",
        sa.Column("session_hash", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("begun_at", sa.Float(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("session_hash", name="pk_sessions"),
    )
    op.create_index("ix_sessions_person_id", "sessions", ["person_id"])
    op.create_index("ix_sessions_until", "sessions", ["until"])
    op.create_table(
        "login_attempts",
        sa.Column("state_hash", sa.Text(), nullable=False),
        sa.Column("browser_hash", sa.Text(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("state_hash", name="pk_login_attempts"),
    )
    op.create_index("ix_login_attempts_until", "login_attempts", ["until"])
    op.create_table(
        "service_tokens",
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float()),
        sa.Column("used_at", sa.Float()),
        sa.Column("revoked_at", sa.Float()),
        sa.PrimaryKeyConstraint("token_id", name="pk_service_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_service_tokens_token_hash"),
    )
    op.create_index("ix_service_tokens_person_id", "service_tokens", ["person_id"])
    op.create_table(
        "identities",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("said_at", sa.Float()),
        sa.PrimaryKeyConstraint("person_id", name="pk_identities"),
    )
    op.create_table(
        "conversation_numbers",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_conversation_numbers"),
        sa.UniqueConstraint("thread_id", name="uq_conversation_numbers_thread_id"),
    )


def downgrade() -> None:
    """Forgotten."""
    for table in (
        "conversation_numbers",
        "identities",
        "service_tokens",
        "login_attempts",
        "sessions",
        "users",
        "thread_owners",
    ):
        op.drop_table(table)
