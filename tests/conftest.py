"""For every test: hypothesis tries the same inputs on every run, and a slow machine is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("countersign", deadline=None, derandomize=True)
settings.load_profile("countersign")
