"""How many examples hypothesis tries."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

FEW, MANY = "few", "many"
FACTOR = 25
"""So many times as many are tried by `make test-long`."""
SLOW_MACHINES = [HealthCheck.too_slow]

settings.register_profile(
    FEW, max_examples=40, deadline=None, derandomize=True, suppress_health_check=SLOW_MACHINES, database=None
)
settings.register_profile(
    MANY, max_examples=40 * FACTOR, deadline=None, print_blob=True, suppress_health_check=SLOW_MACHINES
)


def examples(few: int) -> int:
    """As `max_examples` of a test that does not try as many as the others."""
    return few * FACTOR if settings.get_current_profile_name() == MANY else few
