from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.teams.config import service_url
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://smba.trafficmanager.net/teams", "https://smba.trafficmanager.net/teams/"),
        ("HTTPS://SMBA.trafficmanager.net:443/Teams/", "https://smba.trafficmanager.net/Teams/"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("http://localhost:9", "http://localhost:9/"),
        ("http://smba.trafficmanager.net/teams/", ""),
        ("https://user:word@smba.trafficmanager.net/", ""),
        ("https://smba.trafficmanager.net/?q=1", ""),
        ("https://smba.trafficmanager.net/{x}", ""),
        ("https://smba.trafficmanager.net\\@evil.example/", ""),
        ("https://host:port/", ""),
        ("file:///etc/passwd", ""),
        ("", ""),
    ],
)
def test_services_are_spoken_with_safely_or_not_at_all(url: str, read: str) -> None:
    assert service_url(url) == read


@settings(max_examples=examples(65))
@given(st.text(alphabet="htps:/.@[]{}1a%?#\\ é", max_size=30).map(lambda text: f"https://{text}"))
def test_an_address_that_is_read_twice_stays_the_same(url: str) -> None:
    read = service_url(url)
    assert service_url(read) == read
