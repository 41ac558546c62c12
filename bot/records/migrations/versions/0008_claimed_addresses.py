"""The addresses of whoever voted for which nobody vouches: two accounts that have one in common are one human."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing is known of the addresses of those who voted before."""
    with op.batch_alter_table("votes") as votes:
        votes.add_column(sa.Column("claimed", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Forgotten."""
    with op.batch_alter_table("votes") as votes:
        votes.drop_column("claimed")
