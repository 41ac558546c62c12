"""What is known of a message when its turn begins: its author, its words with names, and earlier messages of its
thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import structlog

from adapters.shared.caches import Remembered
from adapters.shared.calls import CallFailed, failures_logged_as
from adapters.shared.people import user_of
from adapters.shared.sending import as_post_failures
from adapters.shared.untrusted_json import parts, words
from adapters.slack.ids import SlackLocation, location_of, slack_ts, ts_of
from adapters.slack.web_api.client import WebApi
from adapters.slack.web_api.people import SlackPeople
from adapters.slack.web_api.texts import is_from_a_person, mentioned, mentions, text_of, with_names
from bot.domain import Arrival, Clock, Introduction, Quote, Unwelcome, system_clock
from bot.safe_text import shorten, visible_line

log = structlog.get_logger(__name__)
MOST_QUOTES = 50
"""Messages that are quoted."""
MOST_CHARACTERS = 8_000
"""Characters of all quotes together."""
PAGE = 200
"""Messages asked for at once (Slack: "no more than 200" is recommended)."""
MOST_PAGES = 10
KEEP_CHANNELS = 3600.0
"""Seconds that a channel's name is kept."""
_LEAST_LEFT = 200
"""Characters below which a quote is left out rather than cut."""
SlackMessage = Mapping[str, Any]


class EarlierMessages:
    """Introduces messages (`bot.platform.Platform.introduce`). `close` in the end."""

    def __init__(self, api: WebApi, people: SlackPeople, *, clock: Clock = system_clock) -> None:
        self._api = api
        self._people = people
        self._channels: Remembered[tuple[str, str], str] = Remembered(keep=KEEP_CHANNELS, clock=clock)

    async def introduce(self, arrival: Arrival) -> Introduction | Unwelcome:
        """Who wrote it, what it says in words, and what people said in its thread since the bot last heard something.

        Raises `PostFailed` when the author cannot be found out. Names and background that cannot be read are left out.
        """
        message = arrival.message
        team = location_of(message.place).team
        user = user_of(message.author.person_id)
        with as_post_failures("cannot find out who wrote"):
            author = await self._people.admitted(team, user, str(message.origin.get("user_team", "")))
        if isinstance(author, Unwelcome):
            return author
        quoted = await self._said_before(arrival)
        texts = [message.text, *(text for _, text in quoted)]
        names = await self._names(team, texts, {str(said["user"]) for said, _ in quoted})
        quotes = [
            Quote(names.get(str(said["user"]), "somebody"), with_names(text, names), float(said["ts"]))
            for said, text in quoted
        ]
        return Introduction(author, with_names(message.text, names), _newest(quotes))

    async def close(self) -> None:
        """End the questions that are under way."""
        await self._channels.close()

    async def _said_before(self, arrival: Arrival) -> list[tuple[SlackMessage, str]]:
        """The messages and their words, oldest first, at most `MOST_QUOTES`."""
        message, location = arrival.message, location_of(arrival.message.place)
        if message.place.direct or location.thread_ts in ("", ts_of(message.key)):
            return []  # everything was said to us, or nothing was said before
        bot_user = str(message.origin.get("bot_user", ""))
        oldest = ts_of(arrival.heard) if arrival.heard else ""
        said = await self._replies(location, oldest, ts_of(message.key))
        among_people = [reply for reply in said if _is_among_people(reply, bot_user)]
        return [(reply, text_of(reply, bot_user)) for reply in among_people[-MOST_QUOTES:]]

    async def _replies(self, location: SlackLocation, oldest: str, latest: str) -> Sequence[SlackMessage]:
        """What stands in the thread between two messages, as far as it can be read."""
        asked = {"channel": location.channel, "ts": location.thread_ts, "limit": PAGE, "latest": latest}
        if oldest:
            asked["oldest"] = oldest
        read: dict[str, SlackMessage] = {}
        for _ in range(MOST_PAGES):
            try:
                page = await self._api.call(location.team, "conversations.replies", asked)
            except CallFailed as failure:
                log.warning(
                    "slack_background_not_read", team=location.team, channel=location.channel, error=failure.error
                )
                break
            # Slack begins every page with the first message of the thread, however old it is.
            read |= {str(reply["ts"]): reply for reply in parts(page, "messages") if _is_between(reply, oldest, latest)}
            cursor = words(page, "response_metadata", "next_cursor")
            if not cursor:
                break
            asked["cursor"] = cursor
        else:
            log.warning("slack_background_cut", team=location.team, channel=location.channel, messages=len(read))
        return list(read.values())

    async def _names(self, team: str, texts: Iterable[str], authors: Iterable[str]) -> Mapping[str, str]:
        """Names of the people and channels in the texts, by id."""
        found = [mentioned(text) for text in texts]
        users = frozenset(authors).union(*(users for users, _ in found))
        channels = frozenset[str]().union(*(channels for _, channels in found))
        names = dict(await self._people.names(team, users)) if users else {}
        for channel in sorted(channels):
            with failures_logged_as("slack_channel_not_named", team=team, channel=channel):
                names[channel] = await self._channels.get((team, channel), self._ask_name)
        return names

    async def _ask_name(self, key: tuple[str, str]) -> str:
        team, channel = key
        answer = await self._api.call(team, "conversations.info", {"channel": channel})
        return visible_line(words(answer, "channel", "name") or channel, 80)


def _is_between(reply: SlackMessage, oldest: str, latest: str) -> bool:
    return _moment(oldest) < _moment(slack_ts(reply, "ts")) < _moment(latest)


def _moment(ts: str) -> tuple[int, int]:
    """A timestamp to compare by; as a float its last digits would be lost."""
    seconds, _, fraction = ts.partition(".")
    return (int(seconds or 0), int(fraction or 0))


def _is_among_people(reply: SlackMessage, bot_user: str) -> bool:
    """A person wrote it, and not to us: what was said to us the agent has heard."""
    return is_from_a_person(reply, bot_user) and not mentions(reply, bot_user)


def _newest(quotes: Sequence[Quote]) -> tuple[Quote, ...]:
    """The newest quotes that fit, oldest first."""
    left = MOST_CHARACTERS
    kept: list[Quote] = []
    for quote in reversed(quotes):
        if left < min(len(quote.text), _LEAST_LEFT):
            break
        text = shorten(quote.text, left)
        kept.append(Quote(quote.author, text, quote.at))
        left -= len(text)
    return tuple(reversed(kept))
