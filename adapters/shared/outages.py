"""Requests while the records are away: refused with 503, whoever sends them and whatever they ask for.

PostgreSQL is not there, or SQLite's disk is full or its file locked: then nothing can be kept, so nothing is
acknowledged. Handlers let such errors through, and what is here answers and says so in the log, once for each cause.
"""

from __future__ import annotations

from html import escape

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.records.database import is_outage
from bot.repeated_failures import RepeatedFailure
from bot.safe_text import visible_line
from translations import choose, in_language, language
from translations import gettext as _
from translations import marked as N_  # noqa: N812 - as gettext's readers look for it

AWAY = N_("Countersign can’t reach its database. Try again in a minute.")
"""What programs are told, and people in their language. It says nothing of what has become of what they did: of a
transaction whose answer is lost nobody knows."""
AGAIN_SECONDS = 5
"""Seconds after which programs are asked to try again; people read of a minute."""
LONGEST_ERROR = 200
"""Characters of what the database says, in the log."""
_REFUSED = web.RequestKey("refused_for", Exception)
_HEADERS = {
    "Retry-After": str(AGAIN_SECONDS),
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class RefusedInOwnForm(Exception):  # noqa: N818 (what became of the request)
    """The records are away (the cause says why), and whoever asks reads it in an answer of a form of its own."""

    def __init__(self, answer: web.Response) -> None:
        super().__init__(AWAY)
        self.answer = answer


def note_refusal(request: web.Request, error: Exception) -> None:
    """Has the log say that a request was refused because the records are away, where its handler answers it in a form
    of its own. `error`: what says so."""
    request[_REFUSED] = error


class OutageLog:
    """Says in the log why things that need the records do not work: each cause once, until one of those things works.
    What else works meanwhile may not need them."""

    def __init__(self, event: str, over: str = "") -> None:
        self._failure = RepeatedFailure(event, over)
        self._failing: set[str] = set()

    def failed(self, what: str, error: BaseException) -> None:
        """It did not work. No traceback: it may lead through what somebody has typed in."""
        self._failing.add(what)
        said = visible_line(str(getattr(error, "orig", None) or error), LONGEST_ERROR)
        self._failure.failed(error, what=what, says=said)

    def worked(self, what: str) -> None:
        """It worked."""
        if what in self._failing:
            self._failing.clear()
            self._failure.worked()


class OutageAnswers:
    """Refuses what cannot be done because the records are away."""

    def __init__(self) -> None:
        self._log = OutageLog("requests_refused", over="requests_taken_again")

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Around every route. Raises what is no outage."""
        what = f"{request.method} {_pattern(request)}"
        try:
            answer = await handler(request)
        except RefusedInOwnForm as refused:
            self._log.failed(what, refused.__cause__ or refused)
            return refused.answer
        except Exception as error:
            if not is_outage(error):
                raise
            self._log.failed(what, error)
            with in_language(choose(request.headers.get("Accept-Language"))):
                return refusal_for(request)
        if (refused_for := request.get(_REFUSED)) is not None:
            self._log.failed(what, refused_for)
        elif answer.status < web.HTTPBadRequest.status_code and not answer.prepared:  # a stream began long ago
            self._log.worked(what)
        return answer


def refusal_for(request: web.Request) -> web.Response:
    """Returns the answer, which browsers show as a page, and everything else reads as JSON."""
    if "text/html" in request.headers.get("Accept", ""):
        return web.Response(status=503, text=_page(), content_type="text/html", charset="utf-8", headers=_HEADERS)
    return web.json_response({"error": _(AWAY)}, status=503, headers=_HEADERS)


def _page() -> str:
    title = escape(_("Something went wrong"))
    return (
        f'<!doctype html><html lang="{language()}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title} – Countersign</title><main><h1>{title}</h1><p>{escape(_(AWAY))}</p></main></html>"
    )


def _pattern(request: web.Request) -> str:
    # Paths hold ids of people's things, queries might hold anything.
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else ""
