from __future__ import annotations

import heapq
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from adapters.shared.calls import RateLimits, Slot
from adapters.slack.web_api.client import BURST, INTERVAL, line_of, pace_of

LINE = line_of("T1", "chat.postMessage", "C1")
FAR = 1e9


def test_channels_workspaces_and_methods_do_not_wait_for_each_other() -> None:
    limits = RateLimits(pace_of)
    limits.pause(LINE, 0, 60)
    others = [("T2", "chat.postMessage", "C1"), ("T1", "chat.postMessage", "C2"), ("T1", "chat.update", "C1")]
    assert [limits.reserve(line_of(*other), 0, FAR).at for other in others] == [0, 0, 0]
    assert limits.reserve(LINE, 0, FAR).at == 60


def test_a_time_that_is_too_late_is_not_taken() -> None:
    limits = RateLimits(pace_of)
    for _ in range(BURST):
        limits.reserve(LINE, 0, FAR)
    assert [limits.reserve(LINE, 0, 0.5).at for _ in range(3)] == [INTERVAL] * 3
    assert limits.reserve(LINE, 0, FAR).at == INTERVAL


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    limits = RateLimits(pace_of)
    limits.pause(LINE, 0, 60)
    limits.pause(LINE, 1, 5)
    assert limits.reserve(LINE, 2, FAR).at == 60


def test_lines_that_lie_idle_are_forgotten_and_paused_ones_are_not() -> None:
    limits = RateLimits(pace_of)
    limits.pause(LINE, 0, 10_000)
    for number in range(5_000):
        limits.reserve(line_of("T1", "chat.postMessage", f"D{number}"), number, FAR)
    assert limits.reserve(LINE, 5, FAR).at == 10_000
    assert len(limits._states) < 2_000


def departures(arrivals: list[float], pauses: dict[float, float]) -> list[tuple[float, int]]:
    """When each caller goes out, by number, if pauses of so many seconds come at those times."""
    limits = RateLimits(pace_of)
    order = count()
    events: list[tuple[float, int, int | None, Slot | None]] = []
    for number, at in enumerate(arrivals):
        heapq.heappush(events, (at, next(order), number, None))
    for at in pauses:
        heapq.heappush(events, (at, next(order), None, None))
    left = []
    while events:
        now, _, caller, slot = heapq.heappop(events)
        if caller is None:
            limits.pause(LINE, now, pauses[now])
        elif slot is not None and not limits.is_void(LINE, slot):
            left.append((now, caller))
        else:
            given_slot = limits.reserve(LINE, now, FAR)
            heapq.heappush(events, (given_slot.at, next(order), caller, given_slot))
    return left


@given(
    st.lists(st.floats(0, 20), max_size=30),
    st.dictionaries(st.floats(0, 20), st.floats(0.1, 10), max_size=5),
)
def test_posts_leave_never_faster_than_slack_allows(arrivals: list[float], pauses: dict[float, float]) -> None:
    left = departures(sorted(arrivals), pauses)
    times = [at for at, _ in left]
    assert len(left) == len(arrivals)
    for began, seconds in pauses.items():
        assert not [at for at in times if began < at < began + seconds]
    for first, later in zip(times, times[BURST:], strict=False):
        assert later - first >= INTERVAL - 1e-6


def test_who_came_first_leaves_first_after_a_pause_too() -> None:
    left = departures([0.0] * (BURST + 6), {2.5: 3.0})
    assert [caller for _, caller in left] == list(range(BURST + 6))
    assert [at for at, _ in left] == [0] * BURST + [1, 2, 5.5, 6.5, 7.5, 8.5]
