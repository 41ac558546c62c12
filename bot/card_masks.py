"""What people are shown of a call: secrets are masked, what is left out is counted, and no two calls look the same.

Tool results are masked before they are kept (`adapters/tool_servers/outcomes.py`, `outcome_of_result`). The arguments
of a call are kept as they are, since they are what is approved and what runs; they are masked wherever they are shown
or logged.

Values are shown so that no two of them read alike (`bot.safe_text.written_arguments`). What eyes cannot tell apart even
so (blanks at an end, tabs, letters that look like others, text from right to left) is not exact: the card then shows a
short keyed fingerprint, which tells the call from every other.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from bot.characters import reads_one_way
from bot.dates import number_in_words
from bot.domain import ApprovalView, ChangeView, ClarificationView, Content, GrantView, Hidden, OutcomeView, Post
from bot.readings import reads_exactly
from bot.settings import Settings
from policies.masking import Masked, Masker, exceeds
from policies.secret_shapes import EMAILS, GUIDS, TOKENS, SecretPattern
from translations import gettext as _
from translations import ngettext

PLAIN = Masker()
"""Masks what is masked whatever the settings say."""
_EXACT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")
_EXACT_TOOL = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")
_UNCLEAR = re.compile(r"\A\s|\s\Z|[^\S\n]{2}|[^\S\n ]|[^\S\n]\n|\n[^\S\n]|\n{3}|\{\{|&#?[A-Za-z0-9]+;")
"""Blanks that are not seen, or not told apart, what Teams may take for a function, and what Slack may take for a
character in another spelling (`&lt;`)."""
_DEEPEST = 70
"""Levels; what is masked for a card has fewer."""
_MOST_FOREIGN = 10_000
"""Characters of texts beyond ASCII that are looked at, some 10 ms; what has more is not on one card anyway."""
_LARGEST = 10**15
"""A whole number; beyond it, many readers of JSON round."""
_Shown = TypeVar("_Shown", bound=Content | GrantView)


# ------------------------------------------------------------------------------------------- what is masked
def masker_of(settings: Settings, values: Collection[str] = (), *, key: bytes | None = None) -> Masker:
    """Returns what masks people's view of calls and the results of tools.

    Args:
        values: secrets of this process beside those in the settings.
        key: of the fingerprints (`policies.masking.fingerprint_key`).
    """
    wanted = (*([GUIDS] if settings.redact_guids else []), *([EMAILS] if settings.redact_emails else []))
    return Masker((*TOKENS, *_own(settings), *wanted), settings.secret_values | set(values), key=key)


def log_masker_of(settings: Settings) -> Masker:
    """Returns what masks logs: the same but ids and addresses, by which people and threads are found in them."""
    return Masker((*TOKENS, *_own(settings)), settings.secret_values)


def masked(content: _Shown, masker: Masker) -> _Shown:
    """Returns a card as it may be shown: the secrets in the arguments, and in the words that asked for the call, are
    masked, with how many they are, and whether all else can be told from how it looks. What people wrote with
    their decisions is masked, too."""
    match content:
        case ApprovalView():
            shown = masker.for_card(_parts_of(content))
            arguments, asked, quote = shown.value
            reason, *words = masker.for_card(_words_of(content)).value
            is_clear = is_exact(content.server, content.tool, arguments)
            return replace(
                content,
                arguments=arguments,
                asked_arguments=asked,
                quote=quote,
                reason=reason,
                notes=tuple((name, said) for (name, _words), said in zip(content.notes, words, strict=True)),
                masks=len(shown.hidden),
                fingerprint=_fingerprint(content, masker),
                exact=is_clear
                and reads_exactly(arguments, content.presentation)
                and not _reads_ids(content, arguments, asked),
                confusing=not is_clear,
            )
        case OutcomeView() | ChangeView() | GrantView():
            shown = masker.for_card(content.arguments)
            is_clear = is_exact(content.server, content.tool, shown.value)
            return replace(
                content,
                arguments=shown.value,
                masks=len(shown.hidden),
                fingerprint=_fingerprint(content, masker),
                exact=is_clear
                and reads_exactly(shown.value, content.presentation)
                and not _reads_ids(content, shown.value),
                confusing=not is_clear,
            )
        case ClarificationView() if content.tool:
            arguments = masker.for_card(content.arguments).value
            return replace(content, arguments=arguments, fingerprint=_fingerprint(content, masker))
        case _:
            return content


def _reads_ids(call: ApprovalView | OutcomeView | ChangeView | GrantView, *shown: Mapping[str, Any] | None) -> bool:
    """Whether an id is shown by what it stands for: two things may have one title and time."""
    return any(call.presentation.known_in(arguments) for arguments in shown if arguments)


def _fingerprint(call: ApprovalView | ClarificationView | OutcomeView | ChangeView | GrantView, masker: Masker) -> str:
    return "" if call.unread else masker.fingerprint_of_call(call.server, call.tool, call.arguments)


async def masked_card(content: _Shown, masker: Masker) -> _Shown:
    """Returns `masked`; made in a thread where that takes long: a megabyte needs 0.1 s of CPU or more."""
    return await asyncio.to_thread(masked, content, masker) if _is_large(content) else masked(content, masker)


async def masked_post(post: Post, masker: Masker) -> Post:
    """Returns a post with its card as it may be shown; in a thread likewise."""
    return replace(post, content=await masked_card(post.content, masker))


async def masked_arguments(arguments: Mapping[str, Any], masker: Masker) -> Masked:
    """Returns arguments as a form shows them; in a thread likewise."""
    return await asyncio.to_thread(masker.for_card, arguments) if exceeds(arguments) else masker.for_card(arguments)


async def hidden_by_masks(view: ApprovalView, masker: Masker) -> Hidden:
    """Returns what the masks on an approval's card hide; in a thread likewise.

    Args:
        view: the card as it was before it was `masked`.
    """
    return await asyncio.to_thread(_hidden_in, view, masker) if _is_large(view) else _hidden_in(view, masker)


def _hidden_in(view: ApprovalView, masker: Masker) -> Hidden:
    hidden = masker.for_card(_parts_of(view)).hidden
    fingerprint = masker.fingerprint_of_call(view.server, view.tool, view.arguments)
    return Hidden(view.approval_id, view.server, view.tool, hidden, fingerprint)


def _is_large(content: Content | GrantView) -> bool:
    match content:
        case ApprovalView():
            return exceeds([_parts_of(content), _words_of(content)])
        case ClarificationView() | OutcomeView() | ChangeView() | GrantView():
            return exceeds(content.arguments)
        case _:
            return False


def _parts_of(view: ApprovalView) -> list[Any]:
    """What of an approval is masked, together, so that equal masks stand for equal secrets all over its card."""
    return [view.arguments, view.asked_arguments, view.quote]


def _words_of(view: ApprovalView) -> list[str]:
    """What people wrote with their decisions. They mean it for the requester or the assistant, and whoever sees the
    card reads it; nobody decides on it, so its masks are none of those that are counted."""
    return [view.reason, *(words for _name, words in view.notes)]


def _own(settings: Settings) -> tuple[SecretPattern, ...]:
    return tuple(SecretPattern(kind, regex) for kind, regex in settings.redact_patterns.items())


# ------------------------------------------------------------------------------------------- what cannot be seen
def is_exact(server: str, tool: str, arguments: Mapping[str, Any]) -> bool:
    """Returns whether all of a call, its secrets masked, can be told from how it looks. Raises nothing."""
    if not (_EXACT_TOOL.fullmatch(server) and _EXACT_TOOL.fullmatch(tool)):
        return False
    if not all(_EXACT_NAME.fullmatch(name) and _is_clear(value, _DEEPEST) for name, value in arguments.items()):
        return False
    foreign = [text for value in arguments.values() for text in _texts_in(value) if not text.isascii()]
    return sum(map(len, foreign)) <= _MOST_FOREIGN and all(map(reads_one_way, foreign))


def unseen_in_words(view: ApprovalView | OutcomeView | ChangeView | GrantView, left_out: str, advice: str = "") -> str:
    """Returns what of a call a card does not show letter by letter, as sentences; empty when it shows all of it.

    Args:
        left_out: what is not on the card for lack of space, in words; empty: nothing.
        advice: a sentence on where all of that is.
    """
    if view.unread:
        left_out = ngettext("{count} character hidden", "{count} characters hidden", view.unread).format(
            count=number_in_words(view.unread)
        )
    edited = isinstance(view, ApprovalView) and view.asked_arguments is not None
    if not left_out and not view.masks and view.exact and not edited:
        return ""
    parts = [f"{left_out}."] if left_out else []
    if left_out and advice:
        parts.append(advice)
    if view.masks:
        masked_parts = ngettext("{count} part is masked.", "{count} parts are masked.", view.masks)
        parts.append(masked_parts.format(count=number_in_words(view.masks)))
    if view.confusing and not parts:
        parts.append(_("Some characters are easily confused with others."))
    return " ".join([*parts, fingerprint_in_words(view)]).strip()


def fingerprint_in_words(view: ApprovalView | ClarificationView | OutcomeView | ChangeView | GrantView | Hidden) -> str:
    """Returns the call's fingerprint as a sentence; empty when none was made."""
    return _("Fingerprint: {fingerprint}.").format(fingerprint=view.fingerprint) if view.fingerprint else ""


def _texts_in(value: Any) -> Iterator[str]:
    """All texts, names included, of a value that is not too deep."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, item in value.items():
                yield str(name)
                yield from _texts_in(item)
        case list() | tuple():
            for item in value:
                yield from _texts_in(item)


def _is_clear(value: Any, levels: int) -> bool:
    match value:
        case str():
            return not _UNCLEAR.search(value)
        case None | bool():
            return True
        case int():
            return abs(value) <= _LARGEST
        case float():
            return True
        case Mapping():
            return levels > 0 and all(
                _is_clear(str(name), 0) and _is_clear(item, levels - 1) for name, item in value.items()
            )
        case list() | tuple():
            return levels > 0 and all(_is_clear(item, levels - 1) for item in value)
        case _:
            return False
