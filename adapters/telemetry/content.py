"""What traces say of the content of conversations, where an operator wants that: without secrets, links, codes in
links and tokens, and without what a tool returned for one person alone. Pure; takes milliseconds for a long text, so it
is not done in the event loop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bot.audit.entries import shortened
from bot.conversations import FOR_ONE_PERSON
from graph.ports import Failed, NotSent, OutcomeUnknown, Succeeded, ToolOutcome
from policies.masking import Masker, exceeds
from policies.model import canonical_json

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AnyMessage

LONGEST_TEXT = 4_000
"""Characters of one text. Our own choice: backends cut or refuse what is much longer."""
MOST_MESSAGES = 20
"""Of a conversation that are told: the newest."""
_COLON = r"(?::|\\{1,8}u003a|&#(?:58|x3a);|%(?:25){0,3}3a)"
_SLASH = r"(?:\\{0,8}/|\\{1,8}u002f|&#(?:47|x2f);|%(?:25){0,3}2f)"
"""As JSON, HTML and addresses may have them, also one within another."""
_ADDRESS = re.compile(
    rf"""([a-z][a-z0-9+.-]{{0,15}}){_COLON}{_SLASH}{{2}}(?:(?:[^\s/"\\<>?#]|\[secret: [a-z ]{{1,40}}\])*@)?"""
    r"""(\[[0-9a-f:.]*\]|[\w.-]*)[^\s"<>]*""",
    re.IGNORECASE,
)
"""Also where it stands directly after a letter or an emphasis mark, and with a password that is masked already. What
follows the host is left out, a port too: it may be the beginning of a password."""
_NAME = r"[^\W_][\w-]{0,62}"
_WITHOUT_SCHEME = re.compile(
    rf"""((?<![^\W_])(?:(?:{_NAME}\.){{1,8}}[^\W\d_][\w-]{{1,62}}\.?|[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}|localhost"""
    rf"""|(?![0-9]){_NAME}(?=:[0-9]{{2}}))|\[[0-9a-f:.]{{2,45}}\]|(?<=//)(?<![\w+/=]//){_NAME}(?=[:/]))(?::[0-9]{{1,5}})?"""
    rf"""({_SLASH}|\?|%3f)[^\s"<>]+""",
    re.IGNORECASE,
)
"""`www.example.com/share/…`, `localhost:3978/…`, `//intranet/…`: people and tools write addresses so, also directly
after an emphasis mark or what is signed in as. Letters are those of any script. Of a secret in Base64 no half may stay,
so two slashes count at the beginning of a word only."""
_QUERY = re.compile(r"""\?[\w.~-]{1,64}=[^\s"<>]*""")
"""Of an address that has no host: `/files/…?signature=…`."""
_LONGEST_WORD = 500
"""Characters without a blank that may be left out where a text is cut."""
_CUT_WORD = re.compile(r"\S+\Z")
_ROLES: Mapping[str, str] = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


class TracedContent:
    """Makes content fit to be told.

    Args:
        masker: knows what is a secret in values.
        mask: takes secrets out of a text, of whatever form.
    """

    def __init__(self, masker: Masker, mask: Callable[[str], str]) -> None:
        self._masker = masker
        self._mask = mask

    def text(self, text: str) -> str:
        """A text. Of links only their host stays."""
        # Cut once secrets are taken out: half a secret is not recognised. Nor is one at the end of what is looked at,
        # which can be told where links before it became short.
        looked_at = text[: 2 * LONGEST_TEXT]
        if len(looked_at) < len(text):
            looked_at = looked_at[:-_LONGEST_WORD] + _CUT_WORD.sub("…", looked_at[-_LONGEST_WORD:])
        return shortened(self._mask(_without_links(looked_at)), LONGEST_TEXT)

    def arguments(self, arguments: Mapping[str, Any]) -> str:
        """The arguments of a call, as JSON."""
        if exceeds(arguments, LONGEST_TEXT):
            return "[too large to be traced]"
        return self.text(canonical_json(self._masker.for_audit(dict(arguments)).value))

    def outcome(self, outcome: ToolOutcome | NotSent | None) -> str:
        """What a tool returned."""
        match outcome:
            case Succeeded() | Failed() | OutcomeUnknown() if outcome.owner is not None:
                return FOR_ONE_PERSON
            case Succeeded(text=text) | Failed(text=text) | OutcomeUnknown(text=text):
                return self.text(text)
            case _:
                return ""

    def question(self, messages: Sequence[AnyMessage]) -> str:
        """What a model was given, in the form of `gen_ai.input.messages`: the newest messages."""
        return _json([self._message(each) for each in messages[-MOST_MESSAGES:]])

    def answer(self, answer: AIMessage, finish_reason: str) -> str:
        """What it answered, in the form of `gen_ai.output.messages`."""
        return _json([{**self._message(answer), "finish_reason": finish_reason}])

    def said(self, role: str, text: str) -> str:
        """One message, in the same form."""
        return _json([{"role": role, "parts": [{"type": "text", "content": self.text(text)}]}])

    def _message(self, message: AnyMessage) -> dict[str, Any]:
        role, owner = _ROLES.get(message.type, message.type), message.additional_kwargs.get("owner")
        if message.type == "tool":
            result = FOR_ONE_PERSON if owner else self.text(message.text)
            called = getattr(message, "tool_call_id", "")
            return {"role": role, "parts": [{"type": "tool_call_response", "id": called, "response": result}]}
        parts: list[dict[str, Any]] = [{"type": "text", "content": self.text(message.text)}] if message.text else []
        for call in getattr(message, "tool_calls", ()):
            about = {"type": "tool_call", "id": call["id"], "name": self.text(call["name"])}
            parts.append({**about, "arguments": self.arguments(call["args"])})
        return {"role": role, "parts": parts}


def _without_links(text: str) -> str:
    """A text with the hosts of its links alone."""
    return _QUERY.sub("?…", _WITHOUT_SCHEME.sub(r"\1\2…", _ADDRESS.sub(r"\1://\2/…", text)))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
