"""For every test: hypothesis tries the same inputs on every run, and a slow machine is no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("countersign", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("countersign")
