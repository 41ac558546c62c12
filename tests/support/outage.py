"""What the records raise while they are away."""

from __future__ import annotations

import sqlite3

import psycopg
import sqlalchemy as sa

GONE = sa.exc.OperationalError("SELECT 1", {}, psycopg.OperationalError("connection refused"))
"""PostgreSQL's, when it is not there."""
FULL = sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))
"""SQLite's."""
LOCKED = sa.exc.OperationalError("INSERT", {}, sqlite3.OperationalError("database is locked"))
"""SQLite's, when somebody else holds its file for longer than is waited."""
AWAY = {"gone": GONE, "full": FULL, "locked": LOCKED}
