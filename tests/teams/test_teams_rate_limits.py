from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.shared.calls import RateLimits
from adapters.teams.connector.client import WINDOWS, Line, RateKind, pace_of
from tests.support.examples import examples

SENDING = Line("sending", "19:x")
FOREVER = float("inf")


def times(limits: RateLimits, calls: int, line: Line = SENDING, now: float = 0.0) -> list[float]:
    """When they go out, asked for one after the other without a pause."""
    made = []
    for _ in range(calls):
        now = limits.reserve(line, now, FOREVER).at
        made.append(now)
    return made


def test_seven_go_out_at_once_and_the_eighth_a_second_later() -> None:
    assert times(RateLimits(pace_of), 10) == [0] * 7 + [1, 2, 2]


def test_an_hour_takes_no_more_than_1800() -> None:
    made = times(RateLimits(pace_of), 1_801)
    assert made[1_799] < 3_600 <= made[1_800]


def test_reading_has_twice_as_much_room() -> None:
    assert times(RateLimits(pace_of), 15, Line("reading", "19:x")) == [0] * 14 + [1]


def test_every_thread_has_its_own_room() -> None:
    limits = RateLimits(pace_of)
    times(limits, 7)
    assert limits.reserve(Line("sending", "19:x;messageid=2"), 0, FOREVER).at == 0
    assert limits.reserve(Line("opening", "19:x"), 0, FOREVER).at == 0
    assert limits.reserve(SENDING, 0, FOREVER).at == 1


def test_who_will_not_wait_takes_no_room() -> None:
    limits = RateLimits(pace_of)
    times(limits, 7)
    assert limits.reserve(SENDING, 0, until=0.5).at == 1
    assert limits.reserve(SENDING, 0, until=0.5).at == 1


def test_a_pause_holds_for_all() -> None:
    limits = RateLimits(pace_of)
    limits.pause(SENDING, 0, 30)
    limits.pause(SENDING, 0, 10)
    assert limits.reserve(SENDING, 0, FOREVER).at == 30


def test_threads_that_lie_idle_are_forgotten_and_paused_ones_are_not() -> None:
    limits = RateLimits(pace_of)
    limits.pause(SENDING, 0, 5_000)
    for number in range(2_000):
        limits.reserve(Line("sending", f"19:{number}"), 0, FOREVER)
    limits.reserve(Line("sending", "19:late"), 4_000, FOREVER)
    assert len(limits._states) == 2
    assert limits.reserve(SENDING, 4_000, FOREVER).at == 5_000


@settings(max_examples=examples(20))
@given(
    st.sampled_from(sorted(WINDOWS)),
    st.lists(st.floats(0, 3, allow_subnormal=False) | st.just(0.0), min_size=1, max_size=150),
)
def test_however_calls_arrive_no_window_holds_too_many_and_none_overtakes(kind: RateKind, pauses: list[float]) -> None:
    limits, line, now = RateLimits(pace_of), Line(kind, "19:x"), 0.0
    made: list[float] = []
    for pause in pauses:
        now += pause
        made.append(limits.reserve(line, now, FOREVER).at)
    assert made == sorted(made)
    for most, seconds in WINDOWS[kind]:
        for first, beyond in zip(made, made[most:], strict=False):
            assert beyond - first >= seconds - 1e-9


@pytest.mark.parametrize("kind", sorted(WINDOWS))
def test_the_windows_are_in_order(kind: RateKind) -> None:
    assert list(WINDOWS[kind]) == sorted(WINDOWS[kind])
