"""Posts outside of the thread that they belong to, places the bot was brought to, comments on answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Every post so far stands in its own thread; nobody has commented yet."""
    op.drop_index("ix_posts_unsent", table_name="posts")
    with op.batch_alter_table("posts") as posts:
        posts.add_column(sa.Column("lane", sa.Text(), nullable=True))
        posts.add_column(sa.Column("place", sa.JSON(), nullable=True))
    op.execute("UPDATE posts SET lane = thread_id")
    with op.batch_alter_table("posts") as posts:
        posts.alter_column("lane", existing_type=sa.Text(), nullable=False)
    _index("ix_posts_unsent", "sent_revision < revision")
    _index("ix_posts_elsewhere", "place IS NOT NULL")
    with op.batch_alter_table("feedback") as feedback:
        feedback.add_column(sa.Column("comment", sa.Text(), nullable=True))
    op.execute("UPDATE feedback SET comment = ''")
    with op.batch_alter_table("feedback") as feedback:
        feedback.alter_column("comment", existing_type=sa.Text(), nullable=False)
    op.create_table(
        "places",
        sa.Column("place_key", sa.Text(), nullable=False),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("arrived_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("place_key", name=op.f("pk_places")),
    )


def downgrade() -> None:
    """Posts outside of their threads cannot be kept."""
    op.drop_table("places")
    with op.batch_alter_table("feedback") as feedback:
        feedback.drop_column("comment")
    op.drop_index("ix_posts_elsewhere", table_name="posts")
    op.drop_index("ix_posts_unsent", table_name="posts")
    op.execute("DELETE FROM posts WHERE place IS NOT NULL")
    with op.batch_alter_table("posts") as posts:
        posts.drop_column("place")
        posts.drop_column("lane")
    where = sa.text("sent_revision < revision")
    op.create_index("ix_posts_unsent", "posts", ["thread_id"], sqlite_where=where, postgresql_where=where)


def _index(name: str, where: str) -> None:
    op.create_index(name, "posts", ["lane"], sqlite_where=sa.text(where), postgresql_where=sa.text(where))
