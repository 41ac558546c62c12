"""What entries of the audit log are found by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Filled while the program runs: that takes minutes for a log of a million entries."""
    op.create_table(
        "audit_terms",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "term", "at", "seq", name="pk_audit_terms"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_indexed",
        sa.Column("log", sa.Text(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("log", name="pk_audit_indexed"),
    )


def downgrade() -> None:
    """As before."""
    op.drop_table("audit_indexed")
    op.drop_table("audit_terms")
