"""`/oauth/start` and `/oauth/callback…`: the routes of a sign-in and their pages.

The pages are small, readable on a phone, without scripts, and hold nothing of anybody else's.
"""

from __future__ import annotations

import secrets
import traceback
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from adapters.shared.outages import AWAY, RefusedInOwnForm
from bot.accounts.flow import PAGE, Connected, FlowProblem, GoTo, Offer, ShowCode, SignInFlow
from bot.records.database import is_outage
from bot.safe_text import visible_line
from translations import choose, in_language, language, ngettext
from translations import gettext as _

log = structlog.get_logger(__name__)
START, CALLBACK = "/oauth/start", "/oauth/callback"
COOKIE = "countersign-oauth"
COOKIE_SECONDS = 3600
"""Longer than any sign-in may take; the rows decide about that."""
VisitorOf = Callable[[web.Request], Awaitable[str | None]]
"""The person id that the web page's session cookie of a request proves; `None`: nobody's."""


class _RefusedError(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.page = refusal(status, sentence)


def sign_in_routes(flow: SignInFlow, page_visitor: VisitorOf, *, secure: bool) -> list[web.RouteDef]:
    """Returns the routes for the one aiohttp application. `secure`: whether people reach it over TLS. No HEAD: it would
    use a state up."""
    pages = _Pages(flow, page_visitor, secure=secure)
    return [
        web.get(START, pages.answering(pages.offer), allow_head=False),
        web.post(START, pages.answering(pages.start)),
        web.get(CALLBACK, pages.answering(pages.back), allow_head=False),
        web.get(CALLBACK + "/{connection}", pages.answering(pages.back), allow_head=False),
    ]


class _Pages:
    def __init__(self, flow: SignInFlow, page_visitor: VisitorOf, *, secure: bool) -> None:
        self._flow = flow
        self._page_visitor = page_visitor
        self._secure = secure
        # A cookie of the prefix, which has to be for all paths, cannot be set by a neighbour's subdomain: somebody who
        # could give their own to another browser would get what is consented to there.
        self._cookie, self._path = (f"__Host-{COOKIE}", "/") if secure else (COOKIE, "/oauth")

    async def offer(self, request: web.Request) -> PageAnswer:
        """`GET /oauth/start?s=…`."""
        token = _parameters(request).get("s", "")
        found = await self._flow.offered(token, visitor=await self._page_visitor(request))
        return offer(found, token) if isinstance(found, Offer) else found

    async def start(self, request: web.Request) -> PageAnswer:
        """`POST /oauth/start`, from the page's button and from nowhere else."""
        if not _is_from_our_page(request.headers, request.host):
            raise _RefusedError(403, _("This came from another site’s page. Open the link in the chat yourself."))
        token = _only_field(await _form(request))
        visitor = await self._page_visitor(request)
        return await self._flow.start(token, visitor=visitor, cookie=self._own_cookie(request))

    async def back(self, request: web.Request) -> PageAnswer:
        """`GET /oauth/callback/{connection}?…`, and without a connection for proofs of identity."""
        connection = request.match_info.get("connection", "")
        return await self._flow.back(_parameters(request), cookie=self._own_cookie(request), connection=connection)

    def answering(
        self, handler: Callable[[web.Request], Awaitable[PageAnswer]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler's answer as HTTP, whatever happens in it. Raises `RefusedInOwnForm` alone."""

        async def answer(request: web.Request) -> web.StreamResponse:
            with in_language(choose(request.headers.get("Accept-Language"))):
                return await answered(request)

        async def answered(request: web.Request) -> web.StreamResponse:
            try:
                return self._response(await handler(request))
            except _RefusedError as refused:
                return self._response(refused.page)
            except web.HTTPException:
                raise
            except Exception as error:  # the last resort of a request: a page, and the cause in the log
                if is_outage(error):
                    raise RefusedInOwnForm(self._response(refusal(503, _(AWAY)))) from error
                reference = secrets.token_hex(4)
                # Never the message or a traceback with values: either may hold a code, a token or the link.
                log.error(  # noqa: TRY400
                    "sign_in_page_failed", reference=reference, error=type(error).__name__, where=_where(error)
                )
                sentence = _("Something went wrong (reference {reference}). Ask the bot for a new link.")
                return self._response(refusal(500, sentence.format(reference=reference)))

        return answer

    def _response(self, found: PageAnswer) -> web.Response:
        match found:
            case GoTo():
                headers = security_headers(secure=self._secure) | {"Location": found.url}
                response = web.Response(status=303, headers=headers)
                if found.cookie is not None:
                    response.set_cookie(
                        self._cookie,
                        found.cookie,
                        max_age=COOKIE_SECONDS,
                        path=self._path,
                        httponly=True,
                        samesite="Lax",  # Strict would not come back with somebody whom a service sends
                        secure=self._secure,
                    )
                return response
            case Connected():
                shown = connected(found)
            case ShowCode():
                shown = show_code(found)
            case FlowProblem():
                shown = problem(found)
            case HtmlPage():
                shown = found
        headers = security_headers(secure=self._secure, has_form=shown.has_form)
        return web.Response(
            status=shown.status, text=shown.html, content_type="text/html", charset="utf-8", headers=headers
        )

    def _own_cookie(self, request: web.Request) -> str | None:
        value = request.cookies.get(self._cookie)
        return value if value and len(value) <= LONGEST_PARAMETER else None


LONGEST_PARAMETER = 4096
"""Characters; codes of big providers take some 1,500."""
MOST_PARAMETERS = 20
LONGEST_FORM = 8192
"""Bytes of the one form there is."""


def _parameters(request: web.Request) -> dict[str, str]:
    """The query, each parameter once: of two, a service and we might believe different ones."""
    query = request.query
    if len(query) > MOST_PARAMETERS or len(set(query)) != len(query):
        raise _RefusedError(400, _("This address isn’t one of ours. Ask the bot for a new link."))
    if any(len(value) > LONGEST_PARAMETER or "\x00" in value for value in query.values()):
        raise _RefusedError(400, _("This address isn’t one of ours. Ask the bot for a new link."))
    return dict(query)


async def _form(request: web.Request) -> bytes:
    if request.content_type != "application/x-www-form-urlencoded":
        raise _RefusedError(400, _("This didn’t come from the page’s button."))
    if (request.content_length or 0) > LONGEST_FORM:
        raise _RefusedError(413, _("That’s too long for this form."))
    return await request.read()


def _only_field(form: bytes) -> str:
    """`s`, and nothing but it."""
    try:
        fields = parse_qsl(form.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=2)
    except ValueError:  # more of them
        fields = []
    if len(fields) != 1 or fields[0][0] != "s" or len(fields[0][1]) > LONGEST_PARAMETER:
        raise _RefusedError(400, _("This didn’t come from the page’s button."))
    return fields[0][1]


def _is_from_our_page(headers: Mapping[str, str], host: str) -> bool:
    """Whether a browser says that it was our button: another page must not press it for somebody who has not read it.

    Browsers send `Sec-Fetch-Site` over TLS and on loopback, `Origin` everywhere; who sends neither is no browser.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("Origin")
    return origin is None or origin.partition("://")[2].lower() == host.lower()


def _where(error: BaseException) -> str:
    """File and line at which it happened, without any value."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


LONGEST_WORD = 200
"""Characters of a name that comes from elsewhere."""
MOST_SCOPES = 30
_PLAIN = {"platform", "minutes"}
"""Values of a sentence that are not in bold."""
_STATUS = {"unknown": 404, "used": 409, "expired": 410, "foreign": 403, "denied": 403, "service": 502}
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


def security_headers(*, secure: bool, has_form: bool = False) -> dict[str, str]:
    """Returns the headers of every answer. `secure`: whether people reach us over TLS. Nobody but ourselves ever sees a
    referrer.

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


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A page and its status."""

    status: int
    html: str
    has_form: bool = False
    """Whether its button has to tell us that it was ours (browsers without `Sec-Fetch-Site` say `Origin: null` where
    nobody may learn the referrer)."""


PageAnswer = GoTo | Connected | ShowCode | FlowProblem | HtmlPage


def offer(found: Offer, token: str) -> HtmlPage:
    """What a link is for, and the button that goes on."""
    words = {name: _word(text) for name, text in (("service", found.service), ("person", found.person))}
    words |= {"platform": _word(found.platform), "proof": _word(_("this page") if found.proof == PAGE else found.proof)}
    first = (
        _("First, {proof} confirms that you are {person}. Then {service} asks for your consent.")
        if found.proof
        else _("{service} asks for your consent. Then this page shows a code for you to send to the bot.")
    )
    shown = _page(
        200,
        _("Connect {service}").format(**words),
        _paragraph(_("The bot will use your {service} account for what {person} asks in {platform}."), words),
        _scopes(found.scopes),
        _paragraph(first, words),
        f'<form method="post" action="{START}"><input type="hidden" name="s" value="{escape(token)}">'
        f"<button>{escape(_('Continue'))}</button></form>",
        _paragraph(
            _(
                "Not {person}, or did someone send you this link? Close this page, or your account will be connected "
                "to theirs."
            ),
            words,
            kind="soft",
        ),
    )
    return replace(shown, has_form=True)


def connected(found: Connected) -> HtmlPage:
    """The end, as it should be."""
    words = {"service": _word(found.service), "person": _word(found.person), "account": _word(found.account)}
    words["platform"] = _word(found.platform)
    done = (
        _("Your {service} account {account} is connected for {person}.")
        if found.account
        else _("Your {service} account is connected for {person}.")
    )
    then = (
        _("You can close this page and return to {platform}. The bot will continue on its own.")
        if found.goes_on
        else _("You can close this page. The bot can now use this account for what you ask.")
    )
    title = _("{service} is connected").format(**words)
    return _page(200, title, _paragraph(done, words), _paragraph(then, words))


def show_code(found: ShowCode) -> HtmlPage:
    """Almost the end: the code that its owner sends."""
    account = f"{found.service} ({found.account})" if found.account else found.service
    words = {"account": _word(account), "minutes": str(found.minutes)}
    where = (
        _("To finish connecting {account}, send this code to the bot in the chat where you got the link:")
        if found.in_chat
        else _("To finish connecting {account}, enter this code where you got the link:")
    )
    until = ngettext("It expires in {minutes} minute.", "It expires in {minutes} minutes.", int(found.minutes))
    return _page(
        200,
        _("One more step"),
        _paragraph(where, words),
        f'<p class="code">{_word(found.code)}</p>',
        _paragraph(until, words),
        _paragraph(
            _(
                "Don’t share this code. Anyone who sends it to the bot connects your account to theirs. If someone "
                "sent you the link, close this page."
            ),
            {},
            kind="soft",
        ),
    )


def problem(found: FlowProblem) -> HtmlPage:
    """What went wrong, and that nothing came of it."""
    return _page(_STATUS[found.kind], _title(found), f"<p>{_sentence(_(found.sentence))}</p>")


def _title(found: FlowProblem) -> str:
    match found.kind:
        case "unknown":
            return _("Link not found")
        case "used":
            return _("This link was already used")
        case "expired":
            return _("This link has expired")
        case "foreign":
            return _("This link is not for you")
        case "denied":
            return _("Nothing was connected")
        case _:
            return _("Something went wrong")


def refusal(status: int, sentence: str) -> HtmlPage:
    """A request that cannot be what it should be."""
    return _page(status, _("Something went wrong"), f"<p>{_sentence(sentence)}</p>")


def _scopes(scopes: Sequence[str]) -> str:
    if not scopes:
        return ""
    shown = "".join(f"<li>{_word(scope)}</li>" for scope in scopes[:MOST_SCOPES])
    left = len(scopes) - MOST_SCOPES
    more = f"<li>{escape(_('… and {count} more').format(count=left))}</li>" if left > 0 else ""
    return f"<p>{escape(_('It asks for:'))}</p><ul>{shown}{more}</ul>"


def _word(text: str) -> str:
    return escape(visible_line(text, LONGEST_WORD))


def _paragraph(sentence: str, words: Mapping[str, str], kind: str = "") -> str:
    """A sentence with values that are escaped already, in bold where they are names."""
    named = {name: word if name in _PLAIN else f"<b>{word}</b>" for name, word in words.items()}
    return f"<p{f' class={kind!r}' if kind else ''}>{escape(sentence, quote=False).format(**named)}</p>"


def _sentence(text: str) -> str:
    return escape(visible_line(text, 1_000))


def _page(status: int, title: str, *parts: str) -> HtmlPage:
    return HtmlPage(
        status,
        "<!doctype html>"
        f'<html lang="{language()}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title} – Countersign</title><style>{_STYLE}</style>"
        f"<main><h1>{title}</h1>{''.join(parts)}</main></html>",
    )
