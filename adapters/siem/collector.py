"""An HTTP event collector: what takes JSON Lines in the body of a POST, as most SIEMs do."""

from __future__ import annotations

from adapters.shared.calls import CallFailed
from adapters.shared.http import Http, HttpAnswer, retry_after
from bot.audit.pushing import SENDING_SECONDS, NotTaken

_LATER = frozenset({408, 425, 429})
"""Refusals that pass by themselves (RFC 9110, RFC 8470, RFC 6585)."""


class EventCollector:
    """Sends events to one address. Fills `bot.audit.pushing.Siem`. `close` in the end.

    Args:
        url: where to.
        token: sent as a bearer token; with a word before it (`Splunk …`), as it is. `None`: none is sent.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/x-ndjson"}
        if token is not None:
            self._headers["Authorization"] = token if " " in token else f"Bearer {token}"
        self._http = Http()

    async def push(self, lines: bytes) -> None:
        """Returns once these events are taken. Raises `NotTaken`."""
        try:
            answer = await self._http.request(
                "audit push", "POST", self._url, seconds=SENDING_SECONDS, headers=self._headers, data=lines
            )
        except CallFailed as failure:
            raise NotTaken(_WORDS.get(failure.error, failure.error), refused=failure.error == "bad_address") from None
        if not 200 <= answer.status < 300:
            raise _refusal(answer)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _refusal(answer: HttpAnswer) -> NotTaken:
    wait = retry_after(answer.headers)
    if answer.status >= 500 or answer.status in _LATER:
        return NotTaken(f"it answered {answer.status}", retry_after=wait)
    if 300 <= answer.status < 400:
        return NotTaken(
            f"it answered {answer.status}: it is somewhere else, and redirects are not followed", refused=True
        )
    return NotTaken(f"it refused with {answer.status}", refused=True, too_large=answer.status == 413)


_WORDS = {
    "connection": "no connection can be made, or it was cut",
    "certificate": "its certificate is not trusted here",
    "timeout": "it did not answer in time",
    "bad_address": "its address is none",
    "bad_answer": "its answer is too long",
}
