"""The pages of a sign-in: small, readable on a phone, without scripts, and of nobody's making but ours. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape

from bot.accounts.pages import Connected, Offer, Problem, ShowCode
from bot.safe_text import visible_line

START = "/oauth/start"
LONGEST_WORD = 200
"""Characters of a name that comes from elsewhere."""
MOST_SCOPES = 30

_STATUS = {"unknown": 404, "used": 409, "expired": 410, "foreign": 403, "denied": 403, "service": 502}
_TITLES = {
    "unknown": "There is no such link",
    "used": "This link was used before",
    "expired": "This link is too old",
    "foreign": "This link is not for you",
    "denied": "Nothing was connected",
    "service": "That did not work",
}
_STYLE = """
:root{color-scheme:light dark;--ink:#1c2330;--soft:#59636f;--page:#f4f5f7;--card:#fff;--line:#d9dde3;
--go:#1f5fbf;--on:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e8ebf0;--soft:#a4adb9;--page:#14181f;--card:#1e242d;--line:#39424e;
--go:#7db0ff;--on:#10151c}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:1.0625rem/1.55 system-ui,sans-serif}
main{max-width:30rem;margin:8vh auto;padding:1.75rem 1.5rem;background:var(--card);border:1px solid var(--line);
border-radius:.9rem;overflow-wrap:anywhere}
@media(max-width:32rem){main{margin:0;min-height:100vh;border:0;border-radius:0}}
h1{font-size:1.4rem;line-height:1.25;margin:0 0 .8rem}
p,ul,form{margin:0 0 1rem}ul{padding-left:1.2rem}
.soft{color:var(--soft);font-size:.95rem}
.code{font:600 2rem/1.2 ui-monospace,monospace;letter-spacing:.08em;text-align:center;padding:1rem .5rem;
border:1px dashed var(--line);border-radius:.6rem;user-select:all}
button{width:100%;min-height:3rem;border:0;border-radius:.6rem;background:var(--go);color:var(--on);
font:600 1.0625rem/1.2 system-ui,sans-serif;cursor:pointer}
button:focus-visible{outline:3px solid var(--ink);outline-offset:2px}
"""
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()


@dataclass(frozen=True, slots=True)
class Page:
    """A page and its status."""

    status: int
    html: str
    has_form: bool = False
    """Whether its button has to tell us that it was ours (browsers without `Sec-Fetch-Site` say `Origin: null` where
    nobody may learn the referrer)."""


def security_headers(*, secure: bool, has_form: bool = False) -> dict[str, str]:
    """Of every answer. `secure`: whether people reach us over TLS. Nobody but ourselves ever sees a referrer.

    A form may lead on to https addresses: browsers hold the redirect that follows a form against `form-action`, and
    the service that it goes on to is not known before.
    """
    onward = "'self' https:" if secure else "'self' https: http:"
    return {
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {onward}; base-uri 'none'; "
            "frame-ancestors 'none'"
        ),
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin" if has_form else "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "X-Robots-Tag": "noindex, nofollow",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def offer(found: Offer, token: str) -> Page:
    """What a link is for, and the button that goes on."""
    service, person, platform = _word(found.service), _word(found.person), _word(found.platform)
    first = (
        f"<p>First, <b>{_word(found.proof)}</b> confirms that you are {person}. "
        f"Then {service} asks for your consent.</p>"
        if found.proof
        else f"<p>{service} asks for your consent. After that this page shows a code that you send to the bot.</p>"
    )
    shown = _page(
        200,
        f"Connect {service}",
        f"<p>The bot account of <b>{person}</b> in {platform} will be able to use your <b>{service}</b> account.</p>",
        _scopes(found.scopes),
        first,
        f'<form method="post" action="{START}"><input type="hidden" name="s" value="{escape(token)}">'
        "<button>Continue</button></form>",
        f'<p class="soft">Not {person}? Did somebody send you this link? Then close this page: it would connect your '
        "account to them.</p>",
    )
    return replace(shown, has_form=True)


def connected(found: Connected) -> Page:
    """The end, as it should be."""
    account = f" account <b>{_word(found.account)}</b>" if found.account else " account"
    return _page(
        200,
        f"{_word(found.service)} is connected",
        f"<p>Your {_word(found.service)}{account} is connected for <b>{_word(found.person)}</b>.</p>",
        f"<p>You can close this page and go back to {_word(found.platform)}: the bot goes on by itself.</p>",
    )


def show_code(found: ShowCode) -> Page:
    """Almost the end: the code that its owner sends."""
    account = f" (<b>{_word(found.account)}</b>)" if found.account else ""
    return _page(
        200,
        "One more step",
        f"<p>To finish connecting {_word(found.service)}{account}, send this code to the bot in the chat in which it "
        "gave you the link:</p>",
        f'<p class="code">{_word(found.code)}</p>',
        f"<p>It is good for {found.minutes} minutes.</p>",
        '<p class="soft">Give it to nobody else: whoever sends it gets your account connected to theirs. If somebody '
        "sent you the link, close this page.</p>",
    )


def problem(found: Problem) -> Page:
    """What went wrong, and that nothing came of it."""
    return _page(_STATUS[found.kind], _TITLES[found.kind], f"<p>{_sentence(found.sentence)}</p>")


def refusal(status: int, sentence: str) -> Page:
    """A request that cannot be what it should be."""
    return _page(status, "That did not work", f"<p>{_sentence(sentence)}</p>")


def _scopes(scopes: Sequence[str]) -> str:
    if not scopes:
        return ""
    shown = "".join(f"<li>{_word(scope)}</li>" for scope in scopes[:MOST_SCOPES])
    more = f"<li>… and {len(scopes) - MOST_SCOPES} more</li>" if len(scopes) > MOST_SCOPES else ""
    return f"<p>What it asks for:</p><ul>{shown}{more}</ul>"


def _word(text: str) -> str:
    return escape(visible_line(text, LONGEST_WORD))


def _sentence(text: str) -> str:
    return escape(visible_line(text, 1_000))


def _page(status: int, title: str, *parts: str) -> Page:
    return Page(
        status,
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title} – Countersign</title><style>{_STYLE}</style>"
        f"<main><h1>{title}</h1>{''.join(parts)}</main></html>",
    )
