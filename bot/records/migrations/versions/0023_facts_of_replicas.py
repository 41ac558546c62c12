"""How each replica is, for operators at any of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A program of before says nothing."""
    op.add_column("replicas", sa.Column("facts", sa.Text(), nullable=True))


def downgrade() -> None:
    """As before."""
    with op.batch_alter_table("replicas") as batch:
        batch.drop_column("facts")
