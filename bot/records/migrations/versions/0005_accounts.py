"""People's accounts at outside services, what is on the way to one, and questions that tools ask."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_OPEN = "status = 'open'"
_KEPT = "status != 'ended'"


def upgrade() -> None:
    """Every question so far was the model's, and every sign-in had a link of its server's own."""
    _questions_of_tools()
    with op.batch_alter_table("sign_ins") as sign_ins:
        sign_ins.add_column(sa.Column("connection", sa.Text(), nullable=True))
        sign_ins.add_column(sa.Column("service", sa.Text(), nullable=True))
    op.execute("UPDATE sign_ins SET service = ''")
    with op.batch_alter_table("sign_ins") as sign_ins:
        sign_ins.alter_column("service", existing_type=sa.Text(), nullable=False)
    op.create_index(op.f("ix_sign_ins_person_id_connection"), "sign_ins", ["person_id", "connection"])
    _authorizations()
    _connections()
    op.create_table(
        "oauth_clients",
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=False),
        sa.Column("sealed_client", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("connection", "issuer", "redirect_uri", name=op.f("pk_oauth_clients")),
    )
    op.create_table(
        "catalogues",
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("tools", sa.JSON(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("server", name=op.f("pk_catalogues")),
    )


def downgrade() -> None:
    """Accounts, and questions of tools, cannot be kept."""
    for table in ("catalogues", "oauth_clients", "connections", "authorizations"):
        op.drop_table(table)
    op.drop_index(op.f("ix_sign_ins_person_id_connection"), table_name="sign_ins")
    with op.batch_alter_table("sign_ins") as sign_ins:
        for column in ("service", "connection"):
            sign_ins.drop_column(column)
    op.execute("DELETE FROM clarifications WHERE number > 0")
    op.drop_index("ix_clarifications_open", table_name="clarifications")
    with op.batch_alter_table("clarifications") as clarifications:
        clarifications.drop_constraint(op.f("uq_clarifications_call_id_number"), type_="unique")
        for column in ("schema", "server", "number"):
            clarifications.drop_column(column)
        clarifications.create_unique_constraint(op.f("uq_clarifications_call_id"), ["call_id"])
    _index("ix_clarifications_open", "clarifications", ["thread_id"], _OPEN)


def _questions_of_tools() -> None:
    op.drop_index("ix_clarifications_open", table_name="clarifications")
    with op.batch_alter_table("clarifications") as clarifications:
        clarifications.add_column(sa.Column("number", sa.Integer(), nullable=True))
        clarifications.add_column(sa.Column("server", sa.Text(), nullable=True))
        clarifications.add_column(sa.Column("schema", sa.JSON(), nullable=True))
    op.execute("UPDATE clarifications SET number = 0")
    with op.batch_alter_table("clarifications") as clarifications:
        clarifications.alter_column("number", existing_type=sa.Integer(), nullable=False)
        clarifications.drop_constraint(op.f("uq_clarifications_call_id"), type_="unique")
        clarifications.create_unique_constraint(op.f("uq_clarifications_call_id_number"), ["call_id", "number"])
    _index("ix_clarifications_open", "clarifications", ["thread_id"], _OPEN)


def _authorizations() -> None:
    op.create_table(
        "authorizations",
        sa.Column("authorization_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("challenge", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("began_at", sa.Float(), nullable=False),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("settled_key", sa.Text(), nullable=True),
        sa.Column("link_hash", sa.Text(), nullable=True),
        sa.Column("sealed_link", sa.Text(), nullable=True),
        sa.Column("link_until", sa.Float(), nullable=True),
        sa.Column("browser_hash", sa.Text(), nullable=True),
        sa.Column("step", sa.Text(), nullable=True),
        sa.Column("state_hash", sa.Text(), nullable=True),
        sa.Column("sealed_step", sa.Text(), nullable=True),
        sa.Column("step_until", sa.Float(), nullable=True),
        sa.Column("proven", sa.Boolean(), nullable=False),
        sa.Column("sealed_grant", sa.Text(), nullable=True),
        sa.Column("sealed_code", sa.Text(), nullable=True),
        sa.Column("code_until", sa.Float(), nullable=True),
        sa.Column("code_tries", sa.Integer(), nullable=False),
        sa.Column("code_key", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("authorization_id", name=op.f("pk_authorizations")),
        sa.UniqueConstraint("link_hash", name=op.f("uq_authorizations_link_hash")),
        sa.UniqueConstraint("state_hash", name=op.f("uq_authorizations_state_hash")),
    )
    _index("ix_authorizations_open", "authorizations", ["person_id", "connection"], _OPEN, unique=True)


def _connections() -> None:
    op.create_table(
        "connections",
        sa.Column("connection_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sealed_tokens", sa.Text(), nullable=False),
        sa.Column("since", sa.Float(), nullable=False),
        sa.Column("used_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("connection_id", name=op.f("pk_connections")),
    )
    _index("ix_connections_kept", "connections", ["person_id", "connection"], _KEPT, unique=True)


def _index(name: str, table: str, columns: list[str], condition: str, *, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=unique, sqlite_where=where, postgresql_where=where)
